//! Loop-invariant code motion (LICM).
//!
//! Instructions without effects are total, so they may be executed speculatively. Reads of a
//! variable are hoisted if the loop does not assign it; loads of read-only memory only if the
//! address is in bounds before the loop: either the loop executes the load in its first iteration
//! unconditionally, or an instruction clamps the index to the memory's length. A condition around
//! the load is no proof, since the load is hoisted out of it; therefore this pass precedes
//! bounds-check elimination.
//!
//! Expensive functions are not hoisted out of the branch of an `If`, which may never be executed.

use super::super::{
    AddressSpace, BinaryOp, Block, Inst, Kir, Label, Place, Stmt, Type, UnaryOp, Value,
};
use super::value_map::{Assigned, escapes};

/// Hoists the invariants of a kernel's loops.
pub(super) fn hoist(kir: &mut Kir) {
    let mut body = std::mem::take(&mut kir.body);
    let assigned = Assigned::new(&body);
    let level = vec![0; kir.values.len()];
    let mut licm = Licm { kir, assigned, level, loops: Vec::new(), certain: 0, branch: 0 };
    licm.block(&mut body);
    kir.body = body;
}

struct Licm<'a> {
    kir: &'a Kir,
    assigned: Assigned,
    /// The loop depth at which each value is now computed.
    level: Vec<usize>,
    /// The enclosing loops, and the code hoisted before each.
    loops: Vec<(Label, Block)>,
    /// The least loop depth from which the statement is certainly reached in the first iteration.
    certain: usize,
    /// Like `certain`, but considers only branches, not earlier exits.
    branch: usize,
}

impl Licm<'_> {
    fn block(&mut self, block: &mut Block) {
        let mut out = Vec::with_capacity(block.len());
        for mut stmt in block.drain(..) {
            self.stmt(&mut stmt, &mut out);
            let moved = matches!(stmt, Stmt::Let(value) if self.moves(value));
            if !moved {
                out.push(stmt);
            }
        }
        *block = out;
    }

    /// Processes the blocks of a statement.
    fn stmt(&mut self, stmt: &mut Stmt, out: &mut Block) {
        let (certain, branch) = (self.certain, self.branch);
        let leaves = match stmt {
            Stmt::Loop { label, body, finite } => {
                self.loops.push((*label, Vec::new()));
                self.block(body);
                let (_, before) = self.loops.pop().expect("it was pushed above");
                out.extend(before);
                !*finite
            }
            Stmt::If { then_block, else_block, .. } => {
                (self.certain, self.branch) = (self.loops.len(), self.loops.len());
                self.block(then_block);
                self.block(else_block);
                false
            }
            Stmt::Scope { body, .. } => {
                self.block(body);
                false
            }
            _ => return,
        };
        let passed = !leaves && !escapes(stmt);
        (self.certain, self.branch) = (if passed { certain } else { self.loops.len() }, branch);
    }

    /// Hoists a value if it is invariant; returns whether it was.
    fn moves(&mut self, value: Value) -> bool {
        let depth = self.loops.len();
        let level = self.earliest(value).min(depth);
        self.level[value.index()] = level;
        let results = self.kir.inst(value).results() as usize;
        self.level[value.index()..][..results].fill(level);
        if level < depth {
            self.loops[level].1.push(Stmt::Let(value));
        }
        level < depth
    }

    /// Returns the least loop depth at which a value can be computed.
    fn earliest(&self, value: Value) -> usize {
        let inst = self.kir.inst(value);
        let mut operands = 0;
        inst.for_each_operand(|operand| operands = operands.max(self.level[operand.index()]));
        match *inst {
            Inst::Get(var) => {
                let assigns = |(label, _): &(Label, Block)| self.assigned.count(*label, var) > 0;
                self.loops.iter().rposition(assigns).map_or(0, |last| last + 1)
            }
            Inst::Load { place, count } if self.stays_the_same(place.space) => {
                let clamped = self.is_clamped(place, self.kir.ty(value), count);
                operands.max(if clamped { 0 } else { self.certain })
            }
            inst if !inst.is_pure() => usize::MAX,
            inst if is_costly(self.kir, inst) => operands.max(self.branch),
            _ => operands,
        }
    }

    fn stays_the_same(&self, space: AddressSpace) -> bool {
        match space {
            AddressSpace::Binding(binding) => !self.kir.buffers[binding as usize].writable,
            AddressSpace::Immediate => true,
            AddressSpace::Workgroup(_) | AddressSpace::Local(_) => false,
        }
    }

    /// Returns whether a place is in bounds regardless of enclosing conditions.
    fn is_clamped(&self, place: Place, ty: Type, count: u8) -> bool {
        let size = ty.size() * u32::from(count);
        let known = match place.space {
            AddressSpace::Immediate => u64::from(self.kir.immediates),
            AddressSpace::Binding(binding) => self.kir.buffers[binding as usize].size,
            AddressSpace::Workgroup(_) | AddressSpace::Local(_) => 0,
        };
        let end = |index: u64| {
            index * u64::from(place.stride) + u64::from(place.offset) + u64::from(size)
        };
        match (place.index, place.space) {
            (None, _) => end(0) <= known,
            (Some(index), space) => {
                self.largest(index).is_some_and(|largest| end(largest) <= known)
                    || matches!(space, AddressSpace::Binding(binding)
                        if self.below_length(binding, index, place, size))
            }
        }
    }

    /// Returns the constant that an index is clamped to.
    fn largest(&self, index: Value) -> Option<u64> {
        let Inst::Binary(BinaryOp::Min, a, b) = *self.kir.inst(index) else { return None };
        self.kir.constant(a).or(self.kir.constant(b)).map(|constant| constant.bits)
    }

    /// Returns whether an index is `min(_, arrayLength - 1)`, for the array that is accessed.
    fn below_length(&self, binding: u32, index: Value, place: Place, size: u32) -> bool {
        let Inst::Binary(BinaryOp::Min, a, b) = *self.kir.inst(index) else { return false };
        let fits = |last: Value| match self.before_last(last) {
            Some(Inst::ArrayLength { binding: array, offset, stride }) => {
                let within = place.offset.checked_sub(offset).and_then(|at| at.checked_add(size));
                (array, stride) == (binding, place.stride)
                    && within.is_some_and(|end| end <= stride)
            }
            _ => false,
        };
        fits(a) || fits(b)
    }

    /// Returns the instruction that defines `x`, if the value is `x - 1`.
    fn before_last(&self, value: Value) -> Option<Inst> {
        let Inst::Binary(BinaryOp::Sub, length, one) = *self.kir.inst(value) else { return None };
        let is_one = self.kir.constant(one).is_some_and(|constant| constant.bits == 1);
        is_one.then(|| *self.kir.inst(length))
    }
}

/// Returns whether an instruction costs much more than a branch around it.
pub(super) fn is_costly(kir: &Kir, inst: Inst) -> bool {
    match inst {
        Inst::Binary(BinaryOp::Div | BinaryOp::Rem, a, _) => kir.ty(a).is_integer(),
        Inst::Binary(op, ..) => matches!(op, BinaryOp::Pow | BinaryOp::Atan2),
        Inst::Unary(op, _) => is_transcendental(op),
        _ => false,
    }
}

fn is_transcendental(op: UnaryOp) -> bool {
    (UnaryOp::Exp..=UnaryOp::Atanh).contains(&op)
}
