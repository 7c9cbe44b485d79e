//! Loop-invariant code motion (LICM).
//!
//! Instructions without effects are total, so they may be executed speculatively. Reads of a
//! variable are hoisted if the loop does not assign it. Loads of read-only memory are hoisted only
//! if the address is in bounds before the loop: the loop executes the load unconditionally in its
//! first iteration, or the load has no index and is within the memory's minimum size, or an
//! instruction clamps the index to the memory's length or to a constant within the minimum size. A
//! condition around the load proves nothing, since the load is hoisted out of it. Therefore this
//! pass precedes bounds-check elimination.
//!
//! Expensive functions are not hoisted out of the branch of an `If`, which may never be executed.

use super::super::{
    AddressSpace, BinaryOp, Block, Inst, Kir, Label, Place, Stmt, Type, UnaryOp, Value,
};
use super::value_map::{LoopAssignments, may_exit};

/// Hoists the invariants of a kernel's loops.
pub(super) fn hoist(kir: &mut Kir) {
    let mut body = std::mem::take(&mut kir.body);
    let assignments = LoopAssignments::new(&body);
    let depths = vec![0; kir.values.len()];
    let (unconditional_depth, branch_depth) = (0, 0);
    let loops = Vec::new();
    let mut licm = Licm { kir, assignments, depths, loops, unconditional_depth, branch_depth };
    licm.block(&mut body);
    kir.body = body;
}

struct Licm<'a> {
    kir: &'a Kir,
    assignments: LoopAssignments,
    /// The loop depth at which each value is now computed; 0 is outside of all loops.
    depths: Vec<usize>,
    /// The enclosing loops, and the code hoisted before each.
    loops: Vec<(Label, Block)>,
    /// The minimum loop depth from which execution always reaches the current statement, in the
    /// first iteration of each deeper loop. An instruction that is hoisted no further is executed
    /// only if the statement is.
    unconditional_depth: usize,
    /// The same, but ignoring exits before the statement: the loop depth of the innermost enclosing
    /// branch.
    branch_depth: usize,
}

impl Licm<'_> {
    fn block(&mut self, block: &mut Block) {
        let mut out = Vec::with_capacity(block.len());
        for mut stmt in block.drain(..) {
            self.stmt(&mut stmt, &mut out);
            let hoisted = matches!(stmt, Stmt::Let(value) if self.try_hoist(value));
            if !hoisted {
                out.push(stmt);
            }
        }
        *block = out;
    }

    /// Processes the blocks of a statement.
    fn stmt(&mut self, stmt: &mut Stmt, out: &mut Block) {
        let (unconditional_depth, branch_depth) = (self.unconditional_depth, self.branch_depth);
        match stmt {
            Stmt::Loop { label, body, .. } => {
                self.loops.push((*label, Vec::new()));
                self.block(body);
                let (_, before) = self.loops.pop().expect("it was pushed above");
                out.extend(before);
            }
            Stmt::If { then_block, else_block, .. } => {
                self.unconditional_depth = self.loops.len();
                self.branch_depth = self.loops.len();
                self.block(then_block);
                self.block(else_block);
            }
            Stmt::Scope { body, .. } => self.block(body),
            _ => return,
        }
        let completes = !may_not_terminate(stmt) && !may_exit(stmt);
        self.unconditional_depth = if completes { unconditional_depth } else { self.loops.len() };
        self.branch_depth = branch_depth;
    }

    /// Hoists a value if it is invariant; returns whether it was.
    fn try_hoist(&mut self, value: Value) -> bool {
        let current_depth = self.loops.len();
        let depth = self.min_depth(value).min(current_depth);
        let results = self.kir.inst(value).results() as usize;
        self.depths[value.index()..][..results].fill(depth);
        if depth < current_depth {
            self.loops[depth].1.push(Stmt::Let(value));
        }
        depth < current_depth
    }

    /// Returns the minimum loop depth at which a value can be computed.
    fn min_depth(&self, value: Value) -> usize {
        let inst = self.kir.inst(value);
        let mut operands = 0;
        inst.for_each_operand(|operand| operands = operands.max(self.depths[operand.index()]));
        match *inst {
            Inst::Get(var) => {
                let assigns = |(label, _): &(Label, Block)| self.assignments.count(*label, var) > 0;
                self.loops.iter().rposition(assigns).map_or(0, |last| last + 1)
            }
            Inst::Load { place, count } if self.is_read_only(place.space) => {
                let in_bounds = self.is_always_in_bounds(place, self.kir.ty(value), count);
                operands.max(if in_bounds { 0 } else { self.unconditional_depth })
            }
            inst if !inst.is_pure() => usize::MAX,
            inst if is_costly(self.kir, inst) => operands.max(self.branch_depth),
            _ => operands,
        }
    }

    fn is_read_only(&self, space: AddressSpace) -> bool {
        match space {
            AddressSpace::Binding(binding) => !self.kir.buffers[binding as usize].writable,
            AddressSpace::Immediate => true,
            AddressSpace::Workgroup(_) | AddressSpace::Local(_) => false,
        }
    }

    /// Returns whether an access is in bounds regardless of enclosing conditions.
    fn is_always_in_bounds(&self, place: Place, ty: Type, count: u8) -> bool {
        let size = ty.size() * u32::from(count);
        let min_size = match place.space {
            AddressSpace::Immediate => u64::from(self.kir.immediates),
            AddressSpace::Binding(binding) => self.kir.buffers[binding as usize].min_size,
            AddressSpace::Workgroup(_) | AddressSpace::Local(_) => 0,
        };
        let end = |index: u64| {
            index * u64::from(place.stride) + u64::from(place.offset) + u64::from(size)
        };
        match (place.index, place.space) {
            (None, _) => end(0) <= min_size,
            (Some(index), space) => {
                self.clamp_limit(index).is_some_and(|limit| end(limit) <= min_size)
                    || matches!(space, AddressSpace::Binding(binding)
                        if self.is_clamped_to_length(binding, index, place, size))
            }
        }
    }

    /// Returns the constant that an index is clamped to.
    fn clamp_limit(&self, index: Value) -> Option<u64> {
        let Inst::Binary(BinaryOp::Min, a, b) = *self.kir.inst(index) else { return None };
        self.kir.constant(a).or(self.kir.constant(b)).map(|constant| constant.bits)
    }

    /// Returns whether an index is `min(_, arrayLength - 1)`, for the array that is accessed.
    fn is_clamped_to_length(&self, binding: u32, index: Value, place: Place, size: u32) -> bool {
        let Inst::Binary(BinaryOp::Min, a, b) = *self.kir.inst(index) else { return false };
        let is_last_index = |last: Value| match self.minuend_of_minus_one(last) {
            Some(Inst::ArrayLength { binding: array, offset, stride }) => {
                let within = place.offset.checked_sub(offset).and_then(|at| at.checked_add(size));
                (array, stride) == (binding, place.stride)
                    && within.is_some_and(|end| end <= stride)
            }
            _ => false,
        };
        is_last_index(a) || is_last_index(b)
    }

    /// Returns the instruction that defines `x`, if the value is `x - 1`.
    fn minuend_of_minus_one(&self, value: Value) -> Option<Inst> {
        let Inst::Binary(BinaryOp::Sub, length, one) = *self.kir.inst(value) else { return None };
        let is_one = self.kir.constant(one).is_some_and(|constant| constant.bits == 1);
        is_one.then(|| *self.kir.inst(length))
    }
}

/// Returns whether a statement is or contains a loop that is not claimed to be finite.
fn may_not_terminate(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::Loop { finite: false, .. })
        || stmt.blocks().flatten().any(may_not_terminate)
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
    // The variants from `Exp` to `Atanh`, in the order of their declaration: exponentials,
    // logarithms, trigonometric and hyperbolic functions.
    (UnaryOp::Exp..=UnaryOp::Atanh).contains(&op)
}
