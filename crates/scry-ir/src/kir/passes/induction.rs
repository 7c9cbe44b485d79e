//! Intervals of induction variables.
//!
//! At the start of each iteration, a variable with one assignment in the loop has its value from
//! before the loop or the assigned one. So an interval is sound for all iterations if it contains
//! the former, and the assignment maps it into itself. Candidates are: the values of a few
//! iterations, all values from the minimum initial value up (an increasing counter), and all up to
//! the maximum (a decreasing one). An `if !(i < n) { leave }` at the start of the loop narrows the
//! interval at a later assignment, provided that the assignment is executed once per iteration.

use super::super::{BinaryOp, Block, Inst, Label, Stmt, Type, UnaryOp, Value, Var};
use super::bounds::{Bounds, allowed, mirrored, opposite};
use super::range::{self, Range};
use super::value_map::diverges;

/// Maximum instructions between a variable's value and the assigned one.
const MAX_STEPS: u32 = 4;
/// Number of iterations that are evaluated to find all values of a variable.
const ITERATIONS: u32 = 3;
/// Maximum number of exit conditions at the start of a loop.
const MAX_GUARDS: usize = 8;

/// The only assignment of a variable in a loop.
#[derive(Clone, Copy)]
struct Update {
    value: Value,
    /// Index of its statement in the loop's body.
    at: usize,
    /// Whether an inner loop may repeat it.
    repeated: bool,
}

/// Returns, for the variables that a loop assigns, sound intervals at the start of each iteration,
/// after the loop, and wherever else the loop reads them.
pub(super) fn heads(bounds: &Bounds<'_>, label: Label, body: &Block) -> Vec<(Var, Range)> {
    let vars = bounds.assigned.within_once(label);
    let mut updates = Updates { found: vec![None; vars.len()], vars: &vars };
    for (at, stmt) in body.iter().enumerate() {
        updates.collect(stmt, at, false);
    }
    let guards = guards(body);
    let head = |(var, update): (&Var, &Option<Option<Update>>)| {
        let (var, update) = (*var, update.flatten());
        let known =
            update.and_then(|update| Induction { bounds, guards: &guards, var, update }.range());
        (var, known.unwrap_or(Range::full(bounds.kir.vars[var.index()])))
    };
    vars.iter().zip(&updates.found).map(head).collect()
}

/// The assignments of variables in a loop.
struct Updates<'a> {
    /// The variables assigned, sorted.
    vars: &'a [Var],
    /// For each variable its only assignment, or `Some(None)` if there are several.
    found: Vec<Option<Option<Update>>>,
}

impl Updates<'_> {
    /// Collects assignments of variables that have only one.
    fn collect(&mut self, stmt: &Stmt, at: usize, repeated: bool) {
        if let Stmt::Set(var, value) = stmt
            && let Ok(place) = self.vars.binary_search(var)
        {
            let first = self.found[place].is_none();
            let update = Update { value: *value, at, repeated };
            self.found[place] = Some(first.then_some(update));
        }
        let repeated = repeated || matches!(stmt, Stmt::Loop { .. });
        for stmt in stmt.blocks().flatten() {
            self.collect(stmt, at, repeated);
        }
    }
}

/// A condition that holds after a statement of a loop's body, because the loop is left or continued
/// otherwise.
struct Guard {
    at: usize,
    condition: Value,
    holds: bool,
}

/// Returns the first exit conditions of a loop's iterations.
fn guards(body: &Block) -> Vec<Guard> {
    let guard = |(at, stmt): (usize, &Stmt)| match stmt {
        Stmt::If { condition, then_block, else_block, .. } => {
            let (ends, other) = (diverges(then_block), diverges(else_block));
            (ends || other).then_some(Guard { at, condition: *condition, holds: other })
        }
        _ => None,
    };
    body.iter().enumerate().filter_map(guard).take(MAX_GUARDS).collect()
}

struct Induction<'a> {
    bounds: &'a Bounds<'a>,
    guards: &'a [Guard],
    var: Var,
    update: Update,
}

impl Induction<'_> {
    fn range(&self) -> Option<Range> {
        let ty = self.bounds.kir.vars[self.var.index()];
        if !range::is_tracked(ty) || ty == Type::Bool {
            return None;
        }
        let (full, first) = (Range::full(ty), self.bounds.vars[self.var.index()]);
        self.alternating(first)
            .or_else(|| self.closed(first, Range { hi: full.hi, ..first }))
            .or_else(|| self.closed(first, Range { lo: full.lo, ..first }))
    }

    /// Returns the values of a variable that cycles through few, such as one that is toggled.
    fn alternating(&self, first: Range) -> Option<Range> {
        let mut range = first;
        for _ in 0..ITERATIONS {
            let next = self.evaluate(self.update.value, self.guarded(range), MAX_STEPS);
            if next.is_within(range) {
                return Some(range);
            }
            range = range.join(next);
        }
        None
    }

    /// Returns the values reachable from `first`, if all are within `candidate`.
    fn closed(&self, first: Range, candidate: Range) -> Option<Range> {
        let reaching = self.guarded(candidate);
        if reaching.is_empty() {
            return Some(first);
        }
        let next = self.evaluate(self.update.value, reaching, MAX_STEPS);
        next.is_within(candidate).then(|| first.join(next))
    }

    /// Narrows an interval by the guards before the assignment.
    fn guarded(&self, range: Range) -> Range {
        if self.update.repeated {
            return range;
        }
        let before = self.guards.iter().take_while(|guard| guard.at < self.update.at);
        before.fold(range, |range, guard| {
            self.narrowed(guard.condition, guard.holds, range, MAX_STEPS)
        })
    }

    /// Narrows a variable's interval by a condition on it.
    fn narrowed(&self, condition: Value, holds: bool, range: Range, steps: u32) -> Range {
        let Some(steps) = steps.checked_sub(1) else { return range };
        match *self.bounds.kir.inst(condition) {
            Inst::Unary(UnaryOp::Not, inverse) => self.narrowed(inverse, !holds, range, steps),
            Inst::Binary(op, a, b) if op.compares() => {
                let op = if holds { op } else { opposite(op) };
                if self.is_own(a) {
                    range.meet(allowed(op, self.bounds.range(b)))
                } else if self.is_own(b) {
                    range.meet(allowed(mirrored(op), self.bounds.range(a)))
                } else {
                    range
                }
            }
            Inst::Binary(BinaryOp::And, a, b) if holds => {
                let range = self.narrowed(a, holds, range, steps);
                self.narrowed(b, holds, range, steps)
            }
            Inst::Binary(BinaryOp::Or, a, b) if !holds => {
                let range = self.narrowed(a, holds, range, steps);
                self.narrowed(b, holds, range, steps)
            }
            _ => range,
        }
    }

    /// Returns whether a value is the variable's value in the current iteration.
    fn is_own(&self, value: Value) -> bool {
        self.is_inside(value) && *self.bounds.kir.inst(value) == Inst::Get(self.var)
    }

    /// Returns whether a value is computed in the loop, which has not been processed yet.
    fn is_inside(&self, value: Value) -> bool {
        self.bounds.ranges[value.index()].is_none()
    }

    /// Returns the interval of a value for the variable's interval `own`.
    fn evaluate(&self, value: Value, own: Range, steps: u32) -> Range {
        let kir = &*self.bounds.kir;
        let inst = kir.inst(value);
        if !self.is_inside(value) {
            self.bounds.range(value)
        } else if self.is_own(value) {
            own
        } else if steps == 0 || !inst.is_pure() {
            Range::full(kir.ty(value))
        } else {
            let mut get = |operand| self.evaluate(operand, own, steps - 1);
            range::of(kir, kir.ty(value), inst, &mut get)
        }
    }
}
