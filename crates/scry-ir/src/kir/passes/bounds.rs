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
use super::value_map::{Assigned, ValueMap, diverges};
use super::{induction, order_facts};

/// Removes redundant clamps of a kernel.
pub(super) fn bounds(kir: &mut Kir) {
    let body = std::mem::take(&mut kir.body);
    let mut bounds = Bounds {
        map: ValueMap::new(kir.values.len()),
        ranges: vec![None; kir.values.len()],
        narrowed: Vec::new(),
        less: Vec::new(),
        ordered: Vec::new(),
        vars: vec![Range::new(0, 0); kir.vars.len()],
        var_trail: Vec::new(),
        sets: Vec::new(),
        assigned: Assigned::new(&body),
        current: Value(0),
        kir,
    };
    for (nth, ty) in bounds.kir.vars.iter().enumerate() {
        if !range::is_tracked(*ty) {
            bounds.vars[nth] = Range::full(*ty);
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
    /// Undo log of intervals that conditions narrowed.
    narrowed: Vec<(Value, Option<Range>)>,
    /// Pairs of values of which the first is less than the second, and less than or equal.
    pub less: Vec<(Value, Value)>,
    pub ordered: Vec<(Value, Value)>,
    pub vars: Vec<Range>,
    /// Undo log of intervals of variables.
    var_trail: Vec<(Var, Range)>,
    /// Assignments to variables, in order.
    sets: Vec<(Var, Range)>,
    pub assigned: Assigned,
    /// The value being replaced.
    current: Value,
}

/// Lengths of the logs and fact lists, to restore a state.
#[derive(Clone, Copy)]
struct Mark(usize, usize, usize, usize);

impl Bounds<'_> {
    fn mark(&self) -> Mark {
        Mark(self.narrowed.len(), self.less.len(), self.var_trail.len(), self.ordered.len())
    }

    /// Restores the state at a mark.
    fn back_to(&mut self, mark: Mark) {
        for (value, before) in self.narrowed.drain(mark.0..).rev() {
            self.ranges[value.index()] = before;
        }
        self.less.truncate(mark.1);
        self.ordered.truncate(mark.3);
        for (var, before) in self.var_trail.drain(mark.2..).rev() {
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
                *condition = self.decided(*condition, out);
                self.branch(*condition, then_block, else_block);
            }
            Stmt::Loop { label, body, .. } => {
                let heads = induction::heads(self, *label, body);
                self.assign(&heads);
                self.nested(body, None);
                self.assign(&heads);
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

    fn assign(&mut self, vars: &[(Var, Range)]) {
        for (var, range) in vars {
            self.set_var(*var, *range);
        }
    }

    /// Processes a block under a condition that holds or does not.
    fn nested(&mut self, block: &mut Block, condition: Option<(Value, bool)>) {
        let mark = self.mark();
        if let Some((condition, holds)) = condition {
            self.assume(condition, holds);
        }
        *block = self.block(std::mem::take(block));
        self.back_to(mark);
    }

    fn branch(&mut self, condition: Value, then_block: &mut Block, else_block: &mut Block) {
        let first = self.sets.len();
        self.nested(then_block, Some((condition, true)));
        let second = self.sets.len();
        self.nested(else_block, Some((condition, false)));
        if diverges(then_block) {
            self.assume(condition, false);
        } else {
            self.join_sets(first, second);
        }
        if diverges(else_block) {
            self.assume(condition, true);
        } else {
            self.join_sets(second, self.sets.len());
        }
    }

    /// Joins the intervals of variables that a block may have assigned with those before it.
    fn join_sets(&mut self, first: usize, end: usize) {
        for nth in first..end {
            let (var, range) = self.sets[nth];
            self.set_var(var, self.vars[var.index()].join(range));
        }
    }

    /// Returns the current interval of a value.
    pub fn range(&self, value: Value) -> Range {
        self.ranges[value.index()].unwrap_or(Range::full(self.kir.ty(value)))
    }

    /// Returns the interval of a value, recomputed from those of its operands, which conditions may
    /// have narrowed.
    pub fn range_now(&self, value: Value, depth: u32) -> Range {
        let known = self.range(value);
        let Definition { ty, inst } = self.kir.values[value.index()];
        if depth == 0 || !inst.is_pure() {
            return known;
        }
        let now = range::of(self.kir, ty, &inst, &mut |operand| self.range_now(operand, depth - 1));
        known.meet(now)
    }

    fn value(&mut self, value: Value, out: &mut Block) {
        self.current = value;
        let mut inst = self.kir.values[value.index()].inst;
        self.map.rename(&mut inst);
        self.kir.values[value.index()].inst = inst;
        let ty = self.kir.ty(value);
        if let Some(same) = self.redundant(&inst) {
            return self.map.replace(value, same);
        }
        let range = match inst {
            Inst::Get(var) => self.vars[var.index()],
            Inst::Binary(BinaryOp::Sub, a, b) if order_facts::is_ordered(self, b, a) => {
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
        } else if let Some(inst) = self.of_naturals(&inst, out) {
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

    /// Returns the operand that equals the result, whatever the other operand is.
    fn redundant(&self, inst: &Inst) -> Option<Value> {
        let Inst::Binary(op, a, b) = *inst else { return None };
        if !range::is_tracked(self.kir.ty(a)) {
            return None;
        }
        match op {
            BinaryOp::Min if self.at_most(a, b) => Some(a),
            BinaryOp::Min if self.at_most(b, a) => Some(b),
            BinaryOp::Max if self.at_most(b, a) => Some(a),
            BinaryOp::Max if self.at_most(a, b) => Some(b),
            BinaryOp::And if self.is_masked(a, b) => Some(a),
            BinaryOp::Rem => {
                let (a_now, b_now) = (self.range_now(a, 3), self.range_now(b, 3));
                (a_now.lo >= 0 && a_now.hi < b_now.lo).then_some(a)
            }
            _ => None,
        }
    }

    fn at_most(&self, a: Value, b: Value) -> bool {
        self.range_now(a, 3).hi <= self.range_now(b, 3).lo || order_facts::at_most(self, a, b)
    }

    /// Returns whether all bits that may be set in `a` are set in `mask`, a constant.
    fn is_masked(&self, a: Value, mask: Value) -> bool {
        let Some(mask) = self.kir.constant(mask) else { return false };
        let all = mask.ty.is_integer() && (mask.bits + 1).is_power_of_two();
        all && self.range_now(a, 3).is_within(Range::new(0, mask.bits as i64))
    }

    /// Replaces a division of a non-negative signed number by a power of two by a shift or mask.
    fn of_naturals(&mut self, inst: &Inst, out: &mut Block) -> Option<Inst> {
        let Inst::Binary(op @ (BinaryOp::Div | BinaryOp::Rem), a, b) = *inst else { return None };
        let by = self.kir.constant(b)?;
        let power = by.ty.is_signed() && by.as_i64() > 0 && by.bits.is_power_of_two();
        if !power || !range::is_tracked(by.ty) || self.range_now(a, 3).lo < 0 {
            return None;
        }
        Some(if op == BinaryOp::Div {
            let by = self.constant(Const::u32(by.bits.trailing_zeros()), out);
            Inst::Binary(BinaryOp::Shr, a, by)
        } else {
            let mask = self.constant(Const { bits: by.bits - 1, ..by }, out);
            Inst::Binary(BinaryOp::And, a, mask)
        })
    }

    /// Replaces a condition with a known result by a constant.
    fn decided(&mut self, condition: Value, out: &mut Block) -> Value {
        match self.range_now(condition, 3).point() {
            Some(holds) if self.kir.constant(condition).is_none() => {
                self.constant(Const::bool(holds != 0), out)
            }
            _ => condition,
        }
    }

    /// Assumes a condition to the end of the block.
    fn assume(&mut self, condition: Value, holds: bool) {
        let truth = i64::from(holds);
        // A condition that is an operand of several others is processed once.
        if self.range(condition).point() == Some(truth) {
            return;
        }
        self.narrow(condition, Range::new(truth, truth));
        match *self.kir.inst(condition) {
            Inst::Unary(UnaryOp::Not, inverse) => self.assume(inverse, !holds),
            Inst::Binary(BinaryOp::And, a, b) if holds && self.kir.ty(a) == Type::Bool => {
                self.assume(a, true);
                self.assume(b, true);
            }
            Inst::Binary(BinaryOp::Or, a, b) if !holds && self.kir.ty(a) == Type::Bool => {
                self.assume(a, false);
                self.assume(b, false);
            }
            Inst::Binary(op, a, b) if op.compares() && is_small(self.kir.ty(a)) => {
                self.relate(if holds { op } else { opposite(op) }, a, b);
            }
            _ => {}
        }
    }

    /// Records a relation that holds.
    fn relate(&mut self, op: BinaryOp, a: Value, b: Value) {
        let (a_range, b_range) = (self.range_now(a, 2), self.range_now(b, 2));
        match op {
            BinaryOp::Lt => self.less.push((a, b)),
            BinaryOp::Gt => self.less.push((b, a)),
            BinaryOp::Le => self.ordered.push((a, b)),
            BinaryOp::Ge => self.ordered.push((b, a)),
            BinaryOp::Eq => self.ordered.extend([(a, b), (b, a)]),
            _ => {}
        }
        self.narrow(a, allowed(op, b_range));
        self.narrow(b, allowed(mirrored(op), a_range));
        if op == BinaryOp::Ne {
            self.differ(a, b_range);
            self.differ(b, a_range);
        }
    }

    /// Narrows the interval of a value, and of the value that it was converted from.
    fn narrow(&mut self, value: Value, to: Range) {
        let before = self.ranges[value.index()];
        let range = self.range(value).meet(to);
        self.narrowed.push((value, before));
        self.ranges[value.index()] = Some(range);
        if let Inst::Bitcast(same) = *self.kir.inst(value)
            && is_small(self.kir.ty(same))
            && range.lo >= 0
            && range.is_within(Range::full(self.kir.ty(same)))
        {
            self.narrow(same, range);
        }
    }

    /// Removes a number from the ends of an interval.
    fn differ(&mut self, value: Value, from: Range) {
        let Some(point) = from.point() else { return };
        let mut range = self.range(value);
        range.lo += i64::from(range.lo == point);
        range.hi -= i64::from(range.hi == point);
        self.narrow(value, range);
    }
}

/// Returns whether intervals of a type are tracked.
fn is_small(ty: Type) -> bool {
    range::is_tracked(ty) && ty != Type::Bool
}

/// Returns the interval of numbers that satisfy a comparison with some number of an interval.
pub(super) fn allowed(op: BinaryOp, to: Range) -> Range {
    match op {
        BinaryOp::Lt => Range::new(i64::MIN, to.hi - 1),
        BinaryOp::Le => Range::new(i64::MIN, to.hi),
        BinaryOp::Gt => Range::new(to.lo + 1, i64::MAX),
        BinaryOp::Ge => Range::new(to.lo, i64::MAX),
        BinaryOp::Eq => to,
        _ => Range::new(i64::MIN, i64::MAX),
    }
}

/// Returns the negated comparison of integers.
pub(super) fn opposite(op: BinaryOp) -> BinaryOp {
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
pub(super) fn mirrored(op: BinaryOp) -> BinaryOp {
    match op {
        BinaryOp::Lt => BinaryOp::Gt,
        BinaryOp::Le => BinaryOp::Ge,
        BinaryOp::Gt => BinaryOp::Lt,
        BinaryOp::Ge => BinaryOp::Le,
        same => same,
    }
}
