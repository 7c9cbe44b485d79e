//! Intervals of induction variables.
//!
//! At the start of each iteration, a variable with one assignment in the loop has either its
//! initial value, from before the loop, or the assigned value. So an interval is sound for all
//! iterations if it contains the initial values and the assignment maps it into itself. Candidates
//! are: the values of a few iterations, all values from the minimum initial value up (an increasing
//! counter), and all values up to the maximum initial value (a decreasing counter). An `if !(i < n)
//! { break }` at the start of the loop narrows the interval at a later assignment, provided that
//! the assignment is executed once per iteration.

use super::super::{BinaryOp, Block, Inst, Label, Stmt, Type, UnaryOp, Value, Var};
use super::bounds::{Bounds, negate_comparison, satisfying_range, swap_comparison};
use super::range::{self, Range};
use super::value_map::always_exits;

/// Maximum depth of the expression that computes the assigned value, and of a condition.
const MAX_STEPS: u32 = 4;
/// Maximum number of iterations that are evaluated to find all values of a variable.
const MAX_EVALUATED_ITERATIONS: u32 = 3;
/// Maximum number of guards of a loop that are considered.
const MAX_GUARDS: usize = 8;

/// The only assignment of a variable in a loop.
#[derive(Clone, Copy)]
struct Update {
    value: Value,
    /// Index in the loop's body of the statement that contains it.
    index: usize,
    /// Whether it is in an inner loop, which may repeat it.
    repeated: bool,
}

/// Returns an interval of each variable that a loop assigns. It contains the variable's values at
/// the start of each iteration, after the loop, and at every other read in the loop.
pub(super) fn loop_ranges(bounds: &Bounds<'_>, label: Label, body: &Block) -> Vec<(Var, Range)> {
    let vars = bounds.assignments.distinct_in(label);
    let mut updates = Updates { found: vec![None; vars.len()], vars: &vars };
    for (index, stmt) in body.iter().enumerate() {
        updates.collect(stmt, index, false);
    }
    let guards = guards(body);
    let var_range = |(var, update): (&Var, &Option<Option<Update>>)| {
        let (var, update) = (*var, update.flatten());
        let range =
            update.and_then(|update| Induction { bounds, guards: &guards, var, update }.range());
        (var, range.unwrap_or(Range::full(bounds.kir.vars[var.index()])))
    };
    vars.iter().zip(&updates.found).map(var_range).collect()
}

/// The assignments of variables in a loop.
struct Updates<'a> {
    /// The variables assigned, sorted.
    vars: &'a [Var],
    /// For each variable, its only assignment so far; `Some(None)` if there are several.
    found: Vec<Option<Option<Update>>>,
}

impl Updates<'_> {
    /// Collects the assignments in a statement, which is or is nested in statement `index` of the
    /// loop's body.
    fn collect(&mut self, stmt: &Stmt, index: usize, repeated: bool) {
        if let Stmt::Set(var, value) = stmt
            && let Ok(var_index) = self.vars.binary_search(var)
        {
            let first = self.found[var_index].is_none();
            let update = Update { value: *value, index, repeated };
            self.found[var_index] = Some(first.then_some(update));
        }
        let repeated = repeated || matches!(stmt, Stmt::Loop { .. });
        for stmt in stmt.blocks().flatten() {
            self.collect(stmt, index, repeated);
        }
    }
}

/// A branch of a loop's body one of whose blocks always exits. After it, the condition has a known
/// value.
struct Guard {
    /// Index of the branch in the body.
    index: usize,
    condition: Value,
    /// The value of the condition after the branch.
    is_true: bool,
}

/// Returns the first guards of a loop.
fn guards(body: &Block) -> Vec<Guard> {
    let guard = |(index, stmt): (usize, &Stmt)| match stmt {
        Stmt::If { condition, then_block, else_block, .. } => {
            let (then_exits, else_exits) = (always_exits(then_block), always_exits(else_block));
            let guard = Guard { index, condition: *condition, is_true: else_exits };
            (then_exits || else_exits).then_some(guard)
        }
        _ => None,
    };
    body.iter().enumerate().filter_map(guard).take(MAX_GUARDS).collect()
}

/// A variable with one assignment in a loop.
struct Induction<'a> {
    bounds: &'a Bounds<'a>,
    guards: &'a [Guard],
    var: Var,
    update: Update,
}

impl Induction<'_> {
    /// Returns an interval that contains the variable's values at the start of each iteration.
    fn range(&self) -> Option<Range> {
        let ty = self.bounds.kir.vars[self.var.index()];
        if !range::is_tracked(ty) || ty == Type::Bool {
            return None;
        }
        let (full, initial) = (Range::full(ty), self.bounds.vars[self.var.index()]);
        self.cycle_range(initial)
            .or_else(|| self.reachable_range(initial, Range { hi: full.hi, ..initial }))
            .or_else(|| self.reachable_range(initial, Range { lo: full.lo, ..initial }))
    }

    /// Returns the interval of a variable that cycles through a few values, such as a toggle.
    fn cycle_range(&self, initial: Range) -> Option<Range> {
        let mut range = initial;
        for _ in 0..MAX_EVALUATED_ITERATIONS {
            let next = self.evaluate(self.update.value, self.narrow_by_guards(range), MAX_STEPS);
            if next.is_within(range) {
                return Some(range);
            }
            range = range.join(next);
        }
        None
    }

    /// Returns the interval of the values reachable from `initial`, if all are within `candidate`.
    fn reachable_range(&self, initial: Range, candidate: Range) -> Option<Range> {
        let before_update = self.narrow_by_guards(candidate);
        if before_update.is_empty() {
            return Some(initial);
        }
        let next = self.evaluate(self.update.value, before_update, MAX_STEPS);
        next.is_within(candidate).then(|| initial.join(next))
    }

    /// Narrows an interval of the variable by the guards before the assignment.
    fn narrow_by_guards(&self, range: Range) -> Range {
        if self.update.repeated {
            return range;
        }
        let before = self.guards.iter().take_while(|guard| guard.index < self.update.index);
        before.fold(range, |range, guard| {
            self.narrow_by(guard.condition, guard.is_true, range, MAX_STEPS)
        })
    }

    /// Narrows an interval of the variable, given the value of a condition.
    fn narrow_by(&self, condition: Value, is_true: bool, range: Range, steps: u32) -> Range {
        let Some(steps) = steps.checked_sub(1) else { return range };
        match *self.bounds.kir.inst(condition) {
            Inst::Unary(UnaryOp::Not, inverse) => self.narrow_by(inverse, !is_true, range, steps),
            Inst::Binary(op, a, b) if op.is_comparison() => {
                let op = if is_true { op } else { negate_comparison(op) };
                if self.is_current(a) {
                    range.meet(satisfying_range(op, self.bounds.range(b)))
                } else if self.is_current(b) {
                    range.meet(satisfying_range(swap_comparison(op), self.bounds.range(a)))
                } else {
                    range
                }
            }
            Inst::Binary(BinaryOp::And, a, b) if is_true => {
                let range = self.narrow_by(a, is_true, range, steps);
                self.narrow_by(b, is_true, range, steps)
            }
            Inst::Binary(BinaryOp::Or, a, b) if !is_true => {
                let range = self.narrow_by(a, is_true, range, steps);
                self.narrow_by(b, is_true, range, steps)
            }
            _ => range,
        }
    }

    /// Returns whether a value is the variable's value in the current iteration.
    fn is_current(&self, value: Value) -> bool {
        self.is_computed_in_loop(value) && *self.bounds.kir.inst(value) == Inst::Get(self.var)
    }

    /// Returns whether a value is computed in the loop. The loop has not been processed yet, so its
    /// values have no interval.
    fn is_computed_in_loop(&self, value: Value) -> bool {
        self.bounds.ranges[value.index()].is_none()
    }

    /// Returns the interval of a value, given the variable's interval `var_range`.
    fn evaluate(&self, value: Value, var_range: Range, steps: u32) -> Range {
        let kir = &*self.bounds.kir;
        let inst = kir.inst(value);
        if !self.is_computed_in_loop(value) {
            self.bounds.range(value)
        } else if self.is_current(value) {
            var_range
        } else if steps == 0 || !inst.is_pure() {
            Range::full(kir.ty(value))
        } else {
            let mut get = |operand| self.evaluate(operand, var_range, steps - 1);
            range::of(kir, kir.ty(value), inst, &mut get)
        }
    }
}
