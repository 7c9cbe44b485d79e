//! Atomic operations, executed lane by lane.

use scry_ir::kir::{AtomicOp, Type};

use super::frame::Frame;
use super::indices::each;
use super::memory::place;
use super::workgroup_memory::{InShared, cell};
use crate::code::{Atomic, MemorySpace};
use crate::lanes::{BLOCK, Lane};

/// The new value for an old one and an operand.
type Change<B> = fn(B, B) -> B;

impl Frame<'_> {
    pub(super) fn atomic(&self, atomic: &Atomic) {
        match atomic.ty {
            Type::I32 => self.atomic_of(atomic, change_i32(atomic.op)),
            Type::U32 => self.atomic_of(atomic, change_u32(atomic.op)),
            Type::F32 => self.atomic_of(atomic, change_f32(atomic.op)),
            Type::I64 => self.atomic_of(atomic, change_i64(atomic.op)),
            Type::U64 => self.atomic_of(atomic, change_u64(atomic.op)),
            other => debug_assert!(false, "there are no atomics of {other}"),
        }
    }

    fn atomic_of<B: InShared>(&self, atomic: &Atomic, change: Change<B>) {
        let file = B::file(self.files());
        let pattern = self.pattern(&atomic.address.index);
        for block in self.blocks() {
            let indices = each(self.indices(&pattern, block));
            let active = self.active(block);
            let values = file[atomic.value.at(block)].get();
            let compare = file[atomic.compare.at(block)].get();
            let mut results = [B::ZERO; BLOCK];
            for lane in (0..BLOCK).filter(|lane| active[*lane] != 0) {
                let (value, compare) = (values[lane], compare[lane]);
                let byte = self.own_place::<B>(
                    atomic.address.space,
                    block,
                    place(&atomic.address, indices[lane]),
                );
                results[lane] = match atomic.op {
                    AtomicOp::Load => self.atomic_load(atomic.address.space, byte),
                    AtomicOp::Store => self.atomic_store(atomic.address.space, byte, value),
                    AtomicOp::CompareExchange => {
                        let replace = |old| if old == compare { value } else { old };
                        self.update(atomic.address.space, byte, replace)
                    }
                    _ => self.update(atomic.address.space, byte, |old| change(old, value)),
                };
            }
            file[atomic.d as usize + block].set(results);
        }
    }

    fn atomic_load<B: InShared>(&self, space: MemorySpace, place: u64) -> B {
        match space {
            MemorySpace::Binding(binding) => self.regions[binding as usize].get(place),
            _ => self.update(space, place, |old| old),
        }
    }

    fn atomic_store<B: InShared>(&self, space: MemorySpace, place: u64, value: B) -> B {
        match space {
            MemorySpace::Binding(binding) => self.regions[binding as usize].set(place, value),
            _ => {
                self.update(space, place, |_| value);
            }
        }
        B::ZERO
    }

    /// Updates an element, and returns its previous value.
    fn update<B: InShared>(&self, space: MemorySpace, place: u64, change: impl Fn(B) -> B) -> B {
        match space {
            MemorySpace::Binding(binding) => self.regions[binding as usize].update(place, change),
            MemorySpace::Shared(start) => {
                let cells = B::cells(&self.scratch.shared);
                let Some(cell) = cell(cells, u64::from(start) + place) else {
                    return B::ZERO;
                };
                let old = cell.get();
                cell.set(change(old));
                old
            }
            MemorySpace::Local { .. } => B::ZERO,
        }
    }
}

fn change_u32(op: AtomicOp) -> Change<u32> {
    match op {
        AtomicOp::Add => u32::wrapping_add,
        AtomicOp::Sub => u32::wrapping_sub,
        AtomicOp::Min => |old, value| old.min(value),
        AtomicOp::Max => |old, value| old.max(value),
        AtomicOp::And => |old, value| old & value,
        AtomicOp::Or => |old, value| old | value,
        AtomicOp::Xor => |old, value| old ^ value,
        _ => |_, value| value,
    }
}

fn change_i32(op: AtomicOp) -> Change<u32> {
    match op {
        AtomicOp::Min => |old, value| i32::of(old).min(i32::of(value)).bits(),
        AtomicOp::Max => |old, value| i32::of(old).max(i32::of(value)).bits(),
        other => change_u32(other),
    }
}

fn change_f32(op: AtomicOp) -> Change<u32> {
    match op {
        AtomicOp::Add => |old, value| (f32::of(old) + f32::of(value)).bits(),
        AtomicOp::Sub => |old, value| (f32::of(old) - f32::of(value)).bits(),
        AtomicOp::Min => |old, value| f32::of(old).min(f32::of(value)).bits(),
        AtomicOp::Max => |old, value| f32::of(old).max(f32::of(value)).bits(),
        other => change_u32(other),
    }
}

fn change_u64(op: AtomicOp) -> Change<u64> {
    match op {
        AtomicOp::Add => u64::wrapping_add,
        AtomicOp::Sub => u64::wrapping_sub,
        AtomicOp::Min => |old, value| old.min(value),
        AtomicOp::Max => |old, value| old.max(value),
        AtomicOp::And => |old, value| old & value,
        AtomicOp::Or => |old, value| old | value,
        AtomicOp::Xor => |old, value| old ^ value,
        _ => |_, value| value,
    }
}

fn change_i64(op: AtomicOp) -> Change<u64> {
    match op {
        AtomicOp::Min => |old, value| i64::of(old).min(i64::of(value)).bits(),
        AtomicOp::Max => |old, value| i64::of(old).max(i64::of(value)).bits(),
        other => change_u64(other),
    }
}
