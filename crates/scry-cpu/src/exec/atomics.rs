//! Atomic operations, executed lane by lane.

use scry_ir::kir::{AtomicOp, Type};

use super::frame::Frame;
use super::indices::lane_indices;
use super::memory::element_offset;
use super::workgroup_memory::{WorkgroupBits, cell};
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

    fn atomic_of<B: WorkgroupBits>(&self, atomic: &Atomic, change: Change<B>) {
        let file = B::file(self.files());
        let pattern = self.pattern(&atomic.address.index);
        for block in self.blocks() {
            let indices = lane_indices(self.indices(&pattern, block));
            let active = self.active(block);
            let values = file[atomic.value.at(block)].get();
            let compare = file[atomic.compare.at(block)].get();
            let mut results = [B::ZERO; BLOCK];
            for lane in (0..BLOCK).filter(|lane| active[*lane] != 0) {
                let (value, compare) = (values[lane], compare[lane]);
                let offset = self.workgroup_offset::<B>(
                    atomic.address.space,
                    block,
                    element_offset(&atomic.address, indices[lane]),
                );
                results[lane] = match atomic.op {
                    AtomicOp::Load => self.atomic_load(atomic.address.space, offset),
                    AtomicOp::Store => self.atomic_store(atomic.address.space, offset, value),
                    AtomicOp::CompareExchange => {
                        let replace = |old| if old == compare { value } else { old };
                        self.update(atomic.address.space, offset, replace)
                    }
                    _ => self.update(atomic.address.space, offset, |old| change(old, value)),
                };
            }
            file[atomic.d as usize + block].set(results);
        }
    }

    fn atomic_load<B: WorkgroupBits>(&self, space: MemorySpace, offset: u64) -> B {
        match space {
            MemorySpace::Binding(binding) => self.regions[binding as usize].get(offset),
            _ => self.update(space, offset, |old| old),
        }
    }

    fn atomic_store<B: WorkgroupBits>(&self, space: MemorySpace, offset: u64, value: B) -> B {
        match space {
            MemorySpace::Binding(binding) => self.regions[binding as usize].set(offset, value),
            _ => {
                self.update(space, offset, |_| value);
            }
        }
        B::ZERO
    }

    /// Updates an element, and returns its previous value.
    fn update<B: WorkgroupBits>(
        &self,
        space: MemorySpace,
        offset: u64,
        change: impl Fn(B) -> B,
    ) -> B {
        match space {
            MemorySpace::Binding(binding) => self.regions[binding as usize].update(offset, change),
            MemorySpace::Shared(start) => {
                let cells = B::cells(&self.scratch.shared);
                let Some(cell) = cell(cells, u64::from(start) + offset) else {
                    return B::ZERO;
                };
                let old = cell.get();
                cell.set(change(old));
                old
            }
            // WGSL has no atomics in private memory.
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
        AtomicOp::Min => |old, value| i32::from_bits(old).min(i32::from_bits(value)).to_bits(),
        AtomicOp::Max => |old, value| i32::from_bits(old).max(i32::from_bits(value)).to_bits(),
        other => change_u32(other),
    }
}

fn change_f32(op: AtomicOp) -> Change<u32> {
    match op {
        AtomicOp::Add => |old, value| (f32::from_bits(old) + f32::from_bits(value)).to_bits(),
        AtomicOp::Sub => |old, value| (f32::from_bits(old) - f32::from_bits(value)).to_bits(),
        AtomicOp::Min => |old, value| f32::from_bits(old).min(f32::from_bits(value)).to_bits(),
        AtomicOp::Max => |old, value| f32::from_bits(old).max(f32::from_bits(value)).to_bits(),
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
        AtomicOp::Min => |old, value| i64::from_bits(old).min(i64::from_bits(value)).to_bits(),
        AtomicOp::Max => |old, value| i64::from_bits(old).max(i64::from_bits(value)).to_bits(),
        other => change_u64(other),
    }
}
