//! Bounds-check elimination by interval analysis.
//!
//! Traverses the kernel with an interval for each value and variable. In a block that is guarded by
//! a condition, and after a branch that exits otherwise, the condition narrows the intervals of its
//! operands to the end of the block. A value whose interval is a single number becomes a constant;
//! `min(i, n)` becomes `i` where `i <= n` is proven.
//!
//! Lengths of arrays are unknown at compile time; for these the pass keeps less-than facts between
//! values.

use super::super::{
    BinaryOp, Block, Const, Definition, Inst, Kir, Stmt, Type, UnaryOp, Value, Var,
};
use super::range::{self, Range};
use super::value_map::{LoopAssignments, ValueMap, always_exits};
use super::{induction, order_facts};

/// Maximum depth of the expressions whose intervals are recomputed for a proof.
const PROOF_DEPTH: u32 = 3;

/// Removes redundant clamps of a kernel.
pub(super) fn remove_clamps(kir: &mut Kir) {
    let body = std::mem::take(&mut kir.body);
    let mut bounds = Bounds {
        map: ValueMap::new(kir.values.len()),
        ranges: vec![None; kir.values.len()],
        range_trail: Vec::new(),
        less_than: Vec::new(),
        less_equal: Vec::new(),
        vars: vec![Range::new(0, 0); kir.vars.len()],
        var_trail: Vec::new(),
        sets: Vec::new(),
        assignments: LoopAssignments::new(&body),
        current: Value(0),
        kir,
    };
    for (index, ty) in bounds.kir.vars.iter().enumerate() {
        if !range::is_tracked(*ty) {
            bounds.vars[index] = Range::full(*ty);
        }
    }
    let body = bounds.block(body);
    kir.body = body;
}

/// The analysis state at a statement.
pub(super) struct Bounds<'a> {
    pub kir: &'a mut Kir,
    map: ValueMap,
    /// For each value computed so far, its current interval.
    pub ranges: Vec<Option<Range>>,
    /// Undo log of intervals of values that conditions narrowed.
    range_trail: Vec<(Value, Option<Range>)>,
    /// Pairs `(a, b)` for which a condition implies `a < b`.
    pub less_than: Vec<(Value, Value)>,
    /// Pairs `(a, b)` for which a condition implies `a <= b`.
    pub less_equal: Vec<(Value, Value)>,
    /// The current interval of each variable.
    pub vars: Vec<Range>,
    /// Undo log of intervals of variables.
    var_trail: Vec<(Var, Range)>,
    /// Assignments to variables, in order.
    sets: Vec<(Var, Range)>,
    pub assignments: LoopAssignments,
    /// The value being processed, whose source position new constants inherit.
    current: Value,
}

/// Lengths of the undo logs and of the lists of pairs, to restore a state.
#[derive(Clone, Copy)]
struct Mark {
    range_trail: usize,
    var_trail: usize,
    less_than: usize,
    less_equal: usize,
}

impl Bounds<'_> {
    fn mark(&self) -> Mark {
        Mark {
            range_trail: self.range_trail.len(),
            var_trail: self.var_trail.len(),
            less_than: self.less_than.len(),
            less_equal: self.less_equal.len(),
        }
    }

    /// Restores the state at a mark.
    fn restore(&mut self, mark: Mark) {
        for (value, before) in self.range_trail.drain(mark.range_trail..).rev() {
            self.ranges[value.index()] = before;
        }
        self.less_than.truncate(mark.less_than);
        self.less_equal.truncate(mark.less_equal);
        for (var, before) in self.var_trail.drain(mark.var_trail..).rev() {
            self.vars[var.index()] = before;
        }
    }

    fn set_var(&mut self, var: Var, range: Range) {
        let before = std::mem::replace(&mut self.vars[var.index()], range);
        self.var_trail.push((var, before));
    }

    fn block(&mut self, block: Block) -> Block {
        let mut out = Vec::with_capacity(block.len());
        for stmt in block {
            self.stmt(stmt, &mut out);
        }
        out
    }

    fn stmt(&mut self, mut stmt: Stmt, out: &mut Block) {
        self.map.rename_stmt(&mut stmt);
        match &mut stmt {
            Stmt::Let(value) => return self.value(*value, out),
            Stmt::Set(var, value) => {
                let range = self.range(*value);
                self.set_var(*var, range);
                self.sets.push((*var, range));
            }
            Stmt::If { condition, then_block, else_block, .. } => {
                *condition = self.fold_condition(*condition, out);
                self.branch(*condition, then_block, else_block);
            }
            Stmt::Loop { label, body, .. } => {
                // These intervals hold at the start of each iteration and after the loop.
                let ranges = induction::loop_ranges(self, *label, body);
                self.set_vars(&ranges);
                self.nested(body, None);
                self.set_vars(&ranges);
            }
            Stmt::Scope { body, .. } => {
                let first = self.sets.len();
                self.nested(body, None);
                self.join_sets(first, self.sets.len());
            }
            _ => {}
        }
        out.push(stmt);
    }

    fn set_vars(&mut self, vars: &[(Var, Range)]) {
        for (var, range) in vars {
            self.set_var(*var, *range);
        }
    }

    /// Processes a nested block, in which a condition has the given value, and restores the state.
    fn nested(&mut self, block: &mut Block, condition: Option<(Value, bool)>) {
        let mark = self.mark();
        if let Some((condition, is_true)) = condition {
            self.assume(condition, is_true);
        }
        *block = self.block(std::mem::take(block));
        self.restore(mark);
    }

    fn branch(&mut self, condition: Value, then_block: &mut Block, else_block: &mut Block) {
        let first = self.sets.len();
        self.nested(then_block, Some((condition, true)));
        let second = self.sets.len();
        self.nested(else_block, Some((condition, false)));
        if always_exits(then_block) {
            self.assume(condition, false);
        } else {
            self.join_sets(first, second);
        }
        if always_exits(else_block) {
            self.assume(condition, true);
        } else {
            self.join_sets(second, self.sets.len());
        }
    }

    /// Joins the intervals of the variables with those of the assignments `first..end`, which a
    /// block may have executed.
    fn join_sets(&mut self, first: usize, end: usize) {
        for index in first..end {
            let (var, range) = self.sets[index];
            self.set_var(var, self.vars[var.index()].join(range));
        }
    }

    /// Returns the current interval of a value.
    pub fn range(&self, value: Value) -> Range {
        self.ranges[value.index()].unwrap_or(Range::full(self.kir.ty(value)))
    }

    /// Returns the interval of a value, recomputed from the intervals of its operands up to `depth`
    /// instructions deep: conditions may have narrowed these since the value was computed.
    pub fn refined_range(&self, value: Value, depth: u32) -> Range {
        let range = self.range(value);
        let Definition { ty, inst } = self.kir.values[value.index()];
        if depth == 0 || !inst.is_pure() {
            return range;
        }
        let mut get = |operand| self.refined_range(operand, depth - 1);
        range.meet(range::of(self.kir, ty, &inst, &mut get))
    }

    fn value(&mut self, value: Value, out: &mut Block) {
        self.current = value;
        let mut inst = self.kir.values[value.index()].inst;
        self.map.rename(&mut inst);
        self.kir.values[value.index()].inst = inst;
        let ty = self.kir.ty(value);
        if let Some(operand) = self.equal_operand(&inst) {
            return self.map.replace(value, operand);
        }
        let range = match inst {
            Inst::Get(var) => self.vars[var.index()],
            Inst::Binary(BinaryOp::Sub, a, b) if order_facts::is_less_equal(self, b, a) => {
                range::difference(ty, self.range(a), self.range(b))
            }
            _ => range::of(self.kir, ty, &inst, &mut |operand| self.range(operand)),
        };
        self.ranges[value.index()] = Some(range);
        if let Some(point) = range.point()
            && range::is_tracked(ty)
            && (inst.is_pure() || matches!(inst, Inst::Get(_)))
        {
            self.kir.values[value.index()].inst = Inst::Const(Const::int(ty, point));
        } else if let Some(inst) = self.reduce_division(&inst, out) {
            self.kir.values[value.index()].inst = inst;
        }
        out.push(Stmt::Let(value));
    }

    /// Adds a constant to a block.
    fn constant(&mut self, constant: Const, out: &mut Block) -> Value {
        self.kir.values.push(Definition { ty: constant.ty, inst: Inst::Const(constant) });
        self.ranges.push(Some(Range::new(constant.as_i64(), constant.as_i64())));
        let value = Value(self.kir.values.len() as u32 - 1);
        self.kir.source.inherit(value, self.current);
        out.push(Stmt::Let(value));
        value
    }

    /// Returns the operand that is proven to equal the result, such as `i` of `min(i, n)` if `i <=
    /// n`.
    fn equal_operand(&self, inst: &Inst) -> Option<Value> {
        let Inst::Binary(op, a, b) = *inst else { return None };
        if !range::is_tracked(self.kir.ty(a)) {
            return None;
        }
        match op {
            BinaryOp::Min if self.at_most(a, b) => Some(a),
            BinaryOp::Min if self.at_most(b, a) => Some(b),
            BinaryOp::Max if self.at_most(b, a) => Some(a),
            BinaryOp::Max if self.at_most(a, b) => Some(b),
            BinaryOp::And if self.is_mask_redundant(a, b) => Some(a),
            BinaryOp::Rem => {
                let (a_range, b_range) =
                    (self.refined_range(a, PROOF_DEPTH), self.refined_range(b, PROOF_DEPTH));
                (a_range.lo >= 0 && a_range.hi < b_range.lo).then_some(a)
            }
            _ => None,
        }
    }

    /// Returns whether `a <= b` is proven.
    fn at_most(&self, a: Value, b: Value) -> bool {
        self.refined_range(a, PROOF_DEPTH).hi <= self.refined_range(b, PROOF_DEPTH).lo
            || order_facts::is_at_most_last(self, a, b)
    }

    /// Returns whether `a & mask` is `a`: `mask` is a constant `2^n - 1`, and `a` is in `0..=mask`.
    fn is_mask_redundant(&self, a: Value, mask: Value) -> bool {
        let Some(mask) = self.kir.constant(mask) else { return false };
        let is_low_mask = mask.ty.is_integer() && (mask.bits + 1).is_power_of_two();
        is_low_mask && self.refined_range(a, PROOF_DEPTH).is_within(Range::new(0, mask.bits as i64))
    }

    /// Returns the shift or mask that is equivalent to a division of a signed number by a power of
    /// two, if the number is proven to be non-negative.
    fn reduce_division(&mut self, inst: &Inst, out: &mut Block) -> Option<Inst> {
        let Inst::Binary(op @ (BinaryOp::Div | BinaryOp::Rem), a, b) = *inst else { return None };
        let divisor = self.kir.constant(b)?;
        let is_power =
            divisor.ty.is_signed() && divisor.as_i64() > 0 && divisor.bits.is_power_of_two();
        if !is_power || !range::is_tracked(divisor.ty) || self.refined_range(a, PROOF_DEPTH).lo < 0
        {
            return None;
        }
        Some(if op == BinaryOp::Div {
            let amount = self.constant(Const::u32(divisor.bits.trailing_zeros()), out);
            Inst::Binary(BinaryOp::Shr, a, amount)
        } else {
            let mask = self.constant(Const { bits: divisor.bits - 1, ..divisor }, out);
            Inst::Binary(BinaryOp::And, a, mask)
        })
    }

    /// Returns a constant for a condition whose value is proven, else the condition.
    fn fold_condition(&mut self, condition: Value, out: &mut Block) -> Value {
        match self.refined_range(condition, PROOF_DEPTH).point() {
            Some(bit) if self.kir.constant(condition).is_none() => {
                self.constant(Const::bool(bit != 0), out)
            }
            _ => condition,
        }
    }

    /// Narrows intervals and records relations, given the value of a condition to the end of the
    /// block.
    fn assume(&mut self, condition: Value, is_true: bool) {
        let bit = i64::from(is_true);
        // A condition that is an operand of several others is processed once.
        if self.range(condition).point() == Some(bit) {
            return;
        }
        self.narrow(condition, Range::new(bit, bit));
        match *self.kir.inst(condition) {
            Inst::Unary(UnaryOp::Not, inverse) => self.assume(inverse, !is_true),
            Inst::Binary(BinaryOp::And, a, b) if is_true && self.kir.ty(a) == Type::Bool => {
                self.assume(a, true);
                self.assume(b, true);
            }
            Inst::Binary(BinaryOp::Or, a, b) if !is_true && self.kir.ty(a) == Type::Bool => {
                self.assume(a, false);
                self.assume(b, false);
            }
            Inst::Binary(op, a, b) if op.is_comparison() && is_tracked_number(self.kir.ty(a)) => {
                self.relate(if is_true { op } else { negate_comparison(op) }, a, b);
            }
            _ => {}
        }
    }

    /// Records that `a op b` is true, and narrows the intervals of both.
    fn relate(&mut self, op: BinaryOp, a: Value, b: Value) {
        let (a_range, b_range) = (self.refined_range(a, 2), self.refined_range(b, 2));
        match op {
            BinaryOp::Lt => self.less_than.push((a, b)),
            BinaryOp::Gt => self.less_than.push((b, a)),
            BinaryOp::Le => self.less_equal.push((a, b)),
            BinaryOp::Ge => self.less_equal.push((b, a)),
            BinaryOp::Eq => self.less_equal.extend([(a, b), (b, a)]),
            _ => {}
        }
        self.narrow(a, satisfying_range(op, b_range));
        self.narrow(b, satisfying_range(swap_comparison(op), a_range));
        if op == BinaryOp::Ne {
            self.exclude(a, b_range);
            self.exclude(b, a_range);
        }
    }

    /// Narrows the interval of a value, and that of the value of which it is a bitcast.
    fn narrow(&mut self, value: Value, to: Range) {
        let before = self.ranges[value.index()];
        let range = self.range(value).meet(to);
        self.range_trail.push((value, before));
        self.ranges[value.index()] = Some(range);
        if let Inst::Bitcast(source) = *self.kir.inst(value)
            && is_tracked_number(self.kir.ty(source))
            && range.lo >= 0
            && range.is_within(Range::full(self.kir.ty(source)))
        {
            self.narrow(source, range);
        }
    }

    /// Removes a number, the only one in `excluded`, from the ends of a value's interval.
    fn exclude(&mut self, value: Value, excluded: Range) {
        let Some(point) = excluded.point() else { return };
        let mut range = self.range(value);
        range.lo += i64::from(range.lo == point);
        range.hi -= i64::from(range.hi == point);
        self.narrow(value, range);
    }
}

/// Returns whether a type is an integer type whose intervals are tracked.
fn is_tracked_number(ty: Type) -> bool {
    range::is_tracked(ty) && ty != Type::Bool
}

/// Returns the interval of the numbers `x` for which `x op y` is true for some `y` in `other`.
pub(super) fn satisfying_range(op: BinaryOp, other: Range) -> Range {
    match op {
        BinaryOp::Lt => Range::new(i64::MIN, other.hi - 1),
        BinaryOp::Le => Range::new(i64::MIN, other.hi),
        BinaryOp::Gt => Range::new(other.lo + 1, i64::MAX),
        BinaryOp::Ge => Range::new(other.lo, i64::MAX),
        BinaryOp::Eq => other,
        _ => Range::new(i64::MIN, i64::MAX),
    }
}

/// Returns the negated comparison of integers.
pub(super) fn negate_comparison(op: BinaryOp) -> BinaryOp {
    match op {
        BinaryOp::Lt => BinaryOp::Ge,
        BinaryOp::Le => BinaryOp::Gt,
        BinaryOp::Gt => BinaryOp::Le,
        BinaryOp::Ge => BinaryOp::Lt,
        BinaryOp::Eq => BinaryOp::Ne,
        _ => BinaryOp::Eq,
    }
}

/// Returns the equivalent comparison with swapped operands.
pub(super) fn swap_comparison(op: BinaryOp) -> BinaryOp {
    match op {
        BinaryOp::Lt => BinaryOp::Gt,
        BinaryOp::Le => BinaryOp::Ge,
        BinaryOp::Gt => BinaryOp::Lt,
        BinaryOp::Ge => BinaryOp::Le,
        same => same,
    }
}
