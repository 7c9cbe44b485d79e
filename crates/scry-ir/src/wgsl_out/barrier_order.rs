//! What barriers order.
//!
//! KIR has one barrier for all memory, WGSL one for workgroup memory and one for storage. The
//! latter is written only where storage is accessed before and after it.

use crate::kir::{AddressSpace, Barrier, Block, Inst, Kir, Stmt, needs_barriers};

/// The barriers of a kernel.
pub(super) struct Barriers {
    /// For each barrier in the order of the text, whether it orders storage.
    storage: Vec<bool>,
    next: usize,
    pub(super) workgroup: bool,
}

impl Barriers {
    pub(super) fn new(kir: &Kir) -> Self {
        let mut order = Order::default();
        order.block(kir, &kir.body, None);
        let storage = order.barriers.iter().map(|at| order.is_between(*at)).collect();
        Self { storage, next: 0, workgroup: !kir.workgroup.is_empty() }
    }

    /// Whether the next barrier orders storage.
    pub(super) fn take(&mut self) -> bool {
        self.next += 1;
        self.storage.get(self.next - 1).copied().unwrap_or(true)
    }
}

/// Where a statement is: its number in the text, and its outermost loop.
#[derive(Debug, Clone, Copy)]
struct At {
    nth: usize,
    repeated: Option<usize>,
}

/// The order of barriers and of accesses to buffers that are written.
#[derive(Debug, Default)]
struct Order {
    statements: usize,
    barriers: Vec<At>,
    accesses: Vec<(u32, At)>,
}

impl Order {
    fn block(&mut self, kir: &Kir, block: &Block, repeated: Option<usize>) {
        for (nth, stmt) in block.iter().enumerate() {
            self.statements += 1;
            let at = At { nth: self.statements, repeated };
            let space = match stmt {
                Stmt::Barrier(Barrier::Workgroup, _) => {
                    self.barriers.push(at);
                    None
                }
                Stmt::Store { place, .. } => Some(place.space),
                Stmt::Let(value) => match kir.inst(*value) {
                    Inst::WorkgroupUniformLoad { .. } => {
                        let needed = needs_barriers(kir, block, nth);
                        self.barriers.extend(needed.into_iter().filter(|it| *it).map(|_| at));
                        None
                    }
                    Inst::Load { place, .. } | Inst::Atomic { place, .. } => Some(place.space),
                    _ => None,
                },
                _ => None,
            };
            if let Some(AddressSpace::Binding(nth)) = space
                && kir.buffers[nth as usize].writable
            {
                self.accesses.push((nth, at));
            }
            let own_loop = matches!(stmt, Stmt::Loop { .. }).then_some(at.nth);
            stmt.blocks().for_each(|inner| self.block(kir, inner, repeated.or(own_loop)));
        }
    }

    /// Whether a buffer that is written may be accessed before a barrier and after it.
    fn is_between(&self, barrier: At) -> bool {
        let shares_loop = |at: &At| barrier.repeated.is_some() && at.repeated == barrier.repeated;
        let before = |at: &At| at.nth < barrier.nth || shares_loop(at);
        let after = |at: &At| at.nth > barrier.nth || shares_loop(at);
        self.accesses.iter().any(|(buffer, at)| {
            before(at) && self.accesses.iter().any(|(other, at)| other == buffer && after(at))
        })
    }
}
