//! Determines which barriers must order accesses to storage buffers.
//!
//! KIR has one barrier for all memory, WGSL one for workgroup memory and one for storage. The
//! latter is written only if the kernel needs it ([`Kir::storage_barriers`]), and where storage may
//! be accessed both before and after it.

use crate::kir::{AddressSpace, Barrier, Block, Inst, Kir, Stmt, needs_barriers};

/// The barriers of a kernel.
pub(super) struct Barriers {
    /// For each barrier, in the order of the text, whether it orders accesses to storage buffers.
    orders_storage: Vec<bool>,
    /// Index of the next barrier to be written.
    next: usize,
    /// Whether the kernel has workgroup memory.
    pub(super) has_workgroup_memory: bool,
}

impl Barriers {
    pub(super) fn new(kir: &Kir) -> Self {
        let mut order = Order::default();
        order.block(kir, &kir.body, None);
        let orders_storage = |at: &Position| kir.storage_barriers && order.is_between(*at);
        let orders_storage = order.barriers.iter().map(orders_storage).collect();
        Self { orders_storage, next: 0, has_workgroup_memory: !kir.workgroup.is_empty() }
    }

    /// Returns whether the next barrier orders storage, and advances to the one after it.
    pub(super) fn next_orders_storage(&mut self) -> bool {
        self.next += 1;
        self.orders_storage.get(self.next - 1).copied().unwrap_or(true)
    }
}

/// The position of a statement: its number in the text, and that of the outermost loop around it.
#[derive(Debug, Clone, Copy)]
struct Position {
    number: usize,
    outer_loop: Option<usize>,
}

/// The order of barriers and of accesses to buffers that are written.
#[derive(Debug, Default)]
struct Order {
    statements: usize,
    barriers: Vec<Position>,
    accesses: Vec<(u32, Position)>,
}

impl Order {
    fn block(&mut self, kir: &Kir, block: &Block, outer_loop: Option<usize>) {
        for (i, stmt) in block.iter().enumerate() {
            self.statements += 1;
            let at = Position { number: self.statements, outer_loop };
            let space = match stmt {
                Stmt::Barrier(Barrier::Workgroup, _) => {
                    self.barriers.push(at);
                    None
                }
                Stmt::Store { place, .. } => Some(place.space),
                Stmt::Let(value) => match kir.inst(*value) {
                    Inst::WorkgroupUniformLoad { .. } => {
                        let needed = needs_barriers(kir, block, i);
                        self.barriers.extend(needed.into_iter().filter(|it| *it).map(|_| at));
                        None
                    }
                    Inst::Load { place, .. } | Inst::Atomic { place, .. } => Some(place.space),
                    _ => None,
                },
                _ => None,
            };
            if let Some(AddressSpace::Binding(i)) = space
                && kir.buffers[i as usize].writable
            {
                self.accesses.push((i, at));
            }
            let own_loop = matches!(stmt, Stmt::Loop { .. }).then_some(at.number);
            stmt.blocks().for_each(|inner| self.block(kir, inner, outer_loop.or(own_loop)));
        }
    }

    /// Returns whether a buffer that is written may be accessed before a barrier and after it.
    fn is_between(&self, barrier: Position) -> bool {
        let shares_loop =
            |at: &Position| barrier.outer_loop.is_some() && at.outer_loop == barrier.outer_loop;
        let before = |at: &Position| at.number < barrier.number || shares_loop(at);
        let after = |at: &Position| at.number > barrier.number || shares_loop(at);
        self.accesses.iter().any(|(buffer, at)| {
            before(at) && self.accesses.iter().any(|(other, at)| other == buffer && after(at))
        })
    }
}
