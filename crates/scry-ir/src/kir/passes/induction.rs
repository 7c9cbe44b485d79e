//! What variables hold in a loop.
//!
//! A variable with one assignment in the loop holds, at the start of every turn, its value from
//! before the loop or what that assignment gave. So an interval is right for all turns if it holds
//! the former, and the assignment leads from it to it. Tried are: what a few turns give, nothing
//! below the least first value (a counter that grows), and nothing above the largest (one that
//! shrinks). What stands at the top of the loop as `if !(i < n) { leave }` narrows what reaches an
//! assignment after it, provided that the assignment happens but once a turn.

use super::super::{BinaryOp, Block, Inst, Label, Stmt, Type, UnaryOp, Value, Var};
use super::bounds::{Bounds, allowed, mirrored, opposite};
use super::range::{self, Range};
use super::value_map::diverges;

/// How many instructions lie between what a variable held and what it is assigned, at most.
const STEPS: u32 = 4;
/// How many turns are tried to see whether a variable gets new values.
const TURNS: u32 = 3;
/// How many conditions at the top of a loop are looked at.
const GUARDS: usize = 8;

/// The only assignment of a variable in a loop.
#[derive(Clone, Copy)]
struct Update {
    value: Value,
    /// Which statement of the loop's body it is in.
    at: usize,
    /// Whether an inner loop may repeat it.
    repeated: bool,
}

/// For the variables that a loop assigns, intervals that are right at the start of each turn, after
/// the loop, and wherever else the loop reads them.
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
    /// Of each the assignment, if there is but one.
    found: Vec<Option<Option<Update>>>,
}

impl Updates<'_> {
    /// Finds assignments, and forgets them where there is a second one.
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

/// What holds after a statement of a loop's body, because otherwise the turn ends there.
struct Guard {
    at: usize,
    condition: Value,
    holds: bool,
}

/// The first conditions under which the turns of a loop end.
fn guards(body: &Block) -> Vec<Guard> {
    let guard = |(at, stmt): (usize, &Stmt)| match stmt {
        Stmt::If { condition, accept, reject } => {
            let (ends, other) = (diverges(accept), diverges(reject));
            (ends || other).then_some(Guard { at, condition: *condition, holds: other })
        }
        _ => None,
    };
    body.iter().enumerate().filter_map(guard).take(GUARDS).collect()
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

    /// The values of a variable that soon has had them all, like one that is toggled.
    fn alternating(&self, first: Range) -> Option<Range> {
        let mut range = first;
        for _ in 0..TURNS {
            let next = self.evaluate(self.update.value, self.guarded(range), STEPS);
            if next.is_within(range) {
                return Some(range);
            }
            range = range.join(next);
        }
        None
    }

    /// The part of `candidate` that is reached from `first`, if nothing else is.
    fn closed(&self, first: Range, candidate: Range) -> Option<Range> {
        let reaching = self.guarded(candidate);
        if reaching.is_empty() {
            return Some(first);
        }
        let next = self.evaluate(self.update.value, reaching, STEPS);
        next.is_within(candidate).then(|| first.join(next))
    }

    /// What of an interval gets past the conditions before the assignment.
    fn guarded(&self, range: Range) -> Range {
        if self.update.repeated {
            return range;
        }
        let before = self.guards.iter().take_while(|guard| guard.at < self.update.at);
        before.fold(range, |range, guard| self.narrowed(guard.condition, guard.holds, range, STEPS))
    }

    /// What of an interval the variable can be in if a condition on it holds or not.
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

    /// Whether a value is what the variable holds in a turn of the loop.
    fn is_own(&self, value: Value) -> bool {
        self.is_inside(value) && *self.bounds.kir.inst(value) == Inst::Get(self.var)
    }

    /// Whether a value is computed in the loop, which has not been walked through yet.
    fn is_inside(&self, value: Value) -> bool {
        self.bounds.ranges[value.index()].is_none()
    }

    /// The interval of a value, if that of the variable is this.
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
