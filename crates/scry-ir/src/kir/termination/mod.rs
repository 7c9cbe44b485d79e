//! Proves that loops end, and bounds their iterations.
//!
//! A loop that is not proven to end checks whether the launch is cancelled, at a cost, and an
//! endless loop is undefined behaviour to some drivers. The proof is about counters: each iteration
//! changes a variable exactly once, by a constant or a grid stride, and a test in each iteration
//! exits the loop when the variable reaches a bound (`counter`). Loops of any other form are not
//! proven, except those that always exit in their first iteration.

mod conditions;
pub(crate) mod counter;
mod iterations;
mod strip_mining;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use self::counter::{Counter, Interval, Keep, Step};
pub(crate) use self::iterations::most_iterations;
use super::passes::range;
use super::{
    BinaryOp, Block, Builtin, Inst, Kir, Label, Stmt, Type, Value, Var, any_stmt, for_each_stmt,
    for_each_stmt_mut,
};

/// Maximum operators between a bound and the values that its interval is computed from.
const MAX_BOUND_DEPTH: u32 = 8;

/// Sets the flag `finite` of each loop that is proven to end.
pub(in crate::kir) fn mark_finite(kir: &mut Kir) {
    let mut finite = vec![false; kir.labels as usize];
    prove(kir, &kir.body, &[], &mut finite);
    for_each_stmt_mut(&mut kir.body, &mut |stmt| {
        if let Stmt::Loop { label, finite: flag, .. } = stmt {
            *flag |= finite[label.0 as usize];
        }
    });
}

/// Proves the loops of a block. `before` is as [`Loop::before`], for the block.
fn prove<'k>(kir: &'k Kir, block: &'k [Stmt], before: &[&'k [Stmt]], finite: &mut [bool]) {
    for (at, stmt) in block.iter().enumerate() {
        if stmt.blocks().next().is_none() {
            continue;
        }
        let before: Vec<_> = before.iter().copied().chain([&block[..at]]).collect();
        if let Stmt::Loop { label, body, .. } = stmt {
            let found = Loop::new(kir, body, &before).iterations(false);
            finite[label.0 as usize] = found.is_some();
            prove(kir, body, &[], finite);
        } else {
            stmt.blocks().for_each(|inner| prove(kir, inner, &before, finite));
        }
    }
}

/// A loop being analysed.
struct Loop<'k> {
    kir: &'k Kir,
    facts: Facts,
    /// The statements that each iteration executes, unless it exits the loop before.
    certain: Vec<&'k Stmt>,
    /// The statements before the loop in each enclosing block, up to an enclosing loop or the
    /// kernel, the outermost block first.
    before: &'k [&'k [Stmt]],
}

impl<'k> Loop<'k> {
    fn new(kir: &'k Kir, body: &'k Block, before: &'k [&'k [Stmt]]) -> Self {
        let mut certain = Vec::new();
        collect_certain(body, &mut Vec::new(), &mut certain);
        Self { kir, facts: Facts::new(body), certain, before }
    }

    /// Returns an upper bound of the iterations if the loop is proven to end, given that the loops
    /// in it do; without `counted`, `u64::MAX` or 0 instead of a bound.
    fn iterations(&self, counted: bool) -> Option<u64> {
        if self.always_exits() {
            return Some(0);
        }
        let mut bounds = self.conditions().into_iter().filter_map(|(value, holds)| {
            let Inst::Binary(op, a, b) = *self.kir.inst(value) else { return None };
            let keep = keep(op, holds)?;
            let from_left = self.counter_iterations(a, keep, b, counted);
            from_left.or_else(|| self.counter_iterations(b, keep.mirrored(), a, counted))
        });
        if counted { bounds.min() } else { bounds.next() }
    }

    /// As [`Self::iterations`], if `counter` is a counter and the loop ends because `counter keep
    /// bound` fails.
    fn counter_iterations(
        &self,
        counter: Value,
        keep: Keep,
        bound: Value,
        counted: bool,
    ) -> Option<u64> {
        let Inst::Get(var) = *self.kir.inst(counter) else { return None };
        let ty = self.kir.ty(counter);
        let is_fixed = !self.computes(bound);
        if !ty.is_integer() || !self.computes(counter) || (keep == Keep::NotEqual && !is_fixed) {
            return None;
        }
        let all = all_values(ty);
        let step = self.step(var, ty)?;
        let needs_start = counted || matches!(step, Step::Multiply(_));
        let start = if needs_start { self.start(var) } else { None };
        let interval = self.interval(bound, all);
        let counter = Counter { all, step, start };
        let ends = if keep == Keep::NotEqual && matches!(step, Step::Add(1 | -1)) {
            // Unit steps reach every value, so any fixed bound stands for the unknown one.
            counter.ends(keep, Interval::exactly(interval.min))
        } else {
            counter.ends(keep, interval)
        };
        let most = if counted { counter.iterations(keep, interval) } else { None };
        ends.then(|| most.unwrap_or(u64::MAX))
    }

    /// Returns the operation that changes a variable in each iteration, and its other operand, if
    /// the variable is assigned exactly once.
    fn update(&self, var: Var) -> Option<(BinaryOp, Value)> {
        let next = self.certain.iter().find_map(|stmt| match **stmt {
            Stmt::Set(set, value) if set == var => Some(value),
            _ => None,
        });
        let (1, Some(next)) = (self.facts.assignments(var), next) else { return None };
        let Inst::Binary(op, a, b) = *self.kir.inst(next) else { return None };
        // Read before the loop, it would be the same value in each iteration.
        let is_current = |value| *self.kir.inst(value) == Inst::Get(var) && self.computes(value);
        match op {
            _ if !self.computes(next) => None,
            BinaryOp::Add | BinaryOp::Mul if is_current(b) => Some((op, a)),
            _ if is_current(a) => Some((op, b)),
            _ => None,
        }
    }

    /// Returns the change of a variable in each iteration, if it is assigned exactly once.
    fn step(&self, var: Var, ty: Type) -> Option<Step> {
        let (op, by) = self.update(var)?;
        if op == BinaryOp::Add && !ty.is_signed() && self.is_grid_stride(by) {
            return Some(Step::Stride);
        }
        let by = self.constant(by)?;
        let is_shift = (1..i128::from(ty.bits())).contains(&by);
        match op {
            BinaryOp::Add if by != 0 => Some(Step::Add(by)),
            BinaryOp::Sub if by != 0 => Some(Step::Add(-by)),
            BinaryOp::Mul if by >= 2 => Some(Step::Multiply(by)),
            BinaryOp::Div if by >= 2 => Some(Step::Divide),
            BinaryOp::Shr if is_shift => Some(Step::ShiftRight),
            BinaryOp::Shl if is_shift => Some(Step::Multiply(1 << by)),
            _ => None,
        }
    }

    /// Returns whether a value is `num_workgroups * c` on an axis, with `c` from 1 to the
    /// workgroup's size on that axis. A launch has at least one workgroup and fewer than 2^32
    /// invocations on an axis, so the product is never zero.
    fn is_grid_stride(&self, value: Value) -> bool {
        let is_stride = |groups: Value, by: Value| {
            let Inst::Builtin(Builtin::GroupCount(axis)) = *self.kir.inst(groups) else {
                return false;
            };
            let size = i128::from(self.kir.workgroup_size[usize::from(axis)]);
            self.constant(by).is_some_and(|by| (1..=size).contains(&by))
        };
        match *self.kir.inst(value) {
            Inst::Binary(BinaryOp::Mul, a, b) => is_stride(a, b) || is_stride(b, a),
            // A workgroup of one invocation on the axis: the product is folded.
            Inst::Builtin(Builtin::GroupCount(_)) => true,
            _ => false,
        }
    }

    /// Returns a variable's value at loop entry, if it is a known constant.
    fn start(&self, var: Var) -> Option<i128> {
        for block in self.before.iter().rev() {
            for stmt in block.iter().rev() {
                if let Stmt::Set(set, value) = *stmt
                    && set == var
                {
                    return self.constant(value);
                }
                if any_stmt(std::slice::from_ref(stmt), &mut |stmt| assigns(stmt, var)) {
                    return None;
                }
            }
        }
        None
    }

    /// Returns an interval that contains every number that an integer may be. `all` is that of its
    /// type.
    fn interval(&self, value: Value, all: Interval) -> Interval {
        if let Some(constant) = self.constant(value) {
            return Interval::exactly(constant);
        }
        if !range::is_tracked(self.kir.ty(value)) {
            return all;
        }
        let found = tracked_interval(self.kir, value, MAX_BOUND_DEPTH);
        Interval { min: found.lo.into(), max: found.hi.into() }.within(all)
    }

    /// Returns the value of an integer constant.
    fn constant(&self, value: Value) -> Option<i128> {
        let constant = self.kir.constant(value).filter(|constant| constant.ty.is_integer())?;
        match constant.ty {
            Type::U64 => Some(constant.bits.into()),
            _ => Some(constant.as_i64().into()),
        }
    }

    /// Returns whether the loop's body computes a value, so that it may change.
    fn computes(&self, value: Value) -> bool {
        self.facts.computed.contains(&value)
    }
}

/// Facts of all statements of a loop's body.
#[derive(Default)]
struct Facts {
    computed: HashSet<Value>,
    /// Number of assignments of each variable.
    assigned: HashMap<Var, u32>,
    /// Labels of the scopes and loops inside the loop.
    labels: HashSet<Label>,
}

impl Facts {
    fn new(body: &Block) -> Self {
        let mut facts = Self::default();
        for_each_stmt(body, &mut |stmt| match stmt {
            Stmt::Let(value) => {
                facts.computed.insert(*value);
            }
            Stmt::Set(var, _) => *facts.assigned.entry(*var).or_default() += 1,
            Stmt::Loop { label, .. } | Stmt::Scope { label, .. } => {
                facts.labels.insert(*label);
            }
            _ => {}
        });
        facts
    }

    fn assignments(&self, var: Var) -> u32 {
        self.assigned.get(&var).copied().unwrap_or(0)
    }
}

/// Returns the interval of a value of a tracked type, from those of its operands.
fn tracked_interval(kir: &Kir, value: Value, depth: u32) -> range::Range {
    let ty = kir.ty(value);
    match (kir.inst(value), depth.checked_sub(1)) {
        // A binding is smaller than 4 GiB.
        (Inst::ArrayLength { stride, .. }, _) => {
            range::Range::new(0, (u32::MAX / (*stride).max(1)).into())
        }
        (inst, Some(depth)) => {
            range::of(kir, ty, inst, &mut |operand| tracked_interval(kir, operand, depth))
        }
        (_, None) => range::Range::full(ty),
    }
}

/// Collects the statements that each iteration executes, unless it exits the loop before. `open`
/// are the scopes of the loop around the block. Returns whether the end of the block is certain.
fn collect_certain<'k>(
    block: &'k Block,
    open: &mut Vec<Label>,
    certain: &mut Vec<&'k Stmt>,
) -> bool {
    for stmt in block {
        if let Stmt::Scope { label, body } = stmt {
            open.push(*label);
            collect_certain(body, open, certain);
            open.pop();
        }
        let skips = |stmt: &Stmt| matches!(stmt, Stmt::Break(label) if open.contains(label));
        if any_stmt(std::slice::from_ref(stmt), &mut |stmt| skips(stmt)) {
            return false;
        }
        certain.push(stmt);
    }
    true
}

fn assigns(stmt: &Stmt, var: Var) -> bool {
    matches!(stmt, Stmt::Set(set, _) if *set == var)
}

fn all_values(ty: Type) -> Interval {
    Interval::of_integer(ty.is_signed(), ty.size() as u8)
}

/// Returns the comparison that must be true for the loop to continue, if it continues only while
/// the result of `op` is `holds`; `None` if `op` is not a suitable comparison.
fn keep(op: BinaryOp, holds: bool) -> Option<Keep> {
    match (op, holds) {
        (BinaryOp::Lt, true) | (BinaryOp::Ge, false) => Some(Keep::Less),
        (BinaryOp::Le, true) | (BinaryOp::Gt, false) => Some(Keep::LessEqual),
        (BinaryOp::Gt, true) | (BinaryOp::Le, false) => Some(Keep::Greater),
        (BinaryOp::Ge, true) | (BinaryOp::Lt, false) => Some(Keep::GreaterEqual),
        (BinaryOp::Ne, true) | (BinaryOp::Eq, false) => Some(Keep::NotEqual),
        _ => None,
    }
}
