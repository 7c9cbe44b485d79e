//! Finds loops that certainly end, so that they need no stop word.
//!
//! Such a loop counts: a variable changes by a constant in every iteration, and every iteration
//! compares it with a value that does not change in the loop, and leaves the loop at the bound. The
//! counter must reach the bound before it wraps around.

use crate::kir::{
    BinaryOp, Block, Inst, Kir, Label, Stmt, Type, UnaryOp, Value, Var, any_stmt, for_each_stmt,
    for_each_stmt_mut,
};

/// Maximum operators between a condition and its comparisons.
const MAX_STEPS: u32 = 4;

/// Maximum exits of a loop that are looked at.
const MAX_EXITS: usize = 4;

/// Sets the flag `finite` of each loop that certainly ends.
pub(super) fn mark_finite(kir: &mut Kir) {
    let mut finite = vec![false; kir.labels as usize];
    for_each_stmt(&kir.body, &mut |stmt| {
        if let Stmt::Loop { label, body, .. } = stmt {
            finite[label.0 as usize] = ends(kir, *label, body);
        }
    });
    for_each_stmt_mut(&mut kir.body, &mut |stmt| {
        if let Stmt::Loop { label, finite: flag, .. } = stmt {
            *flag = finite[label.0 as usize];
        }
    });
}

/// Returns whether a loop certainly ends, if the loops in it do.
fn ends(kir: &Kir, label: Label, body: &Block) -> bool {
    let mut steps = Vec::new();
    every_iteration(body, &mut steps);
    let counting = Counting { kir, body, steps: &steps };
    let exits = steps.iter().filter_map(|stmt| match stmt {
        Stmt::If { condition, then_block, .. } if leaves(then_block, label, body) => {
            Some((*condition, true))
        }
        Stmt::If { condition, else_block, .. } if leaves(else_block, label, body) => {
            Some((*condition, false))
        }
        _ => None,
    });
    exits.take(MAX_EXITS).any(|(condition, goal)| counting.reaches(condition, goal, MAX_STEPS))
}

/// Collects the statements that each iteration executes, unless it leaves the loop before.
fn every_iteration<'b>(block: &'b Block, out: &mut Vec<&'b Stmt>) {
    for stmt in block {
        out.push(stmt);
        if let Stmt::Scope { label, body } = stmt {
            let stays = body.iter().take_while(|stmt| {
                !any_stmt(std::slice::from_ref(*stmt), &mut |inner| *inner == Stmt::Leave(*label))
            });
            out.extend(stays);
        }
    }
}

/// Returns whether a block ends with an exit from the loop: to its label, or to an outer one.
fn leaves(block: &Block, label: Label, body: &Block) -> bool {
    let Some(Stmt::Leave(target)) = block.last() else { return false };
    let is_inner = |stmt: &Stmt| {
        matches!(stmt,
        Stmt::Loop { label, .. } | Stmt::Scope { label, .. } if label == target)
    };
    *target == label || !any_stmt(body, &mut |stmt| is_inner(stmt))
}

/// A loop in which a counter is sought.
struct Counting<'b> {
    kir: &'b Kir,
    body: &'b Block,
    /// The statements of every iteration.
    steps: &'b [&'b Stmt],
}

impl Counting<'_> {
    /// Returns whether a condition certainly becomes `goal` in some iteration.
    fn reaches(&self, condition: Value, goal: bool, steps: u32) -> bool {
        let Some(steps) = steps.checked_sub(1) else { return false };
        match *self.kir.inst(condition) {
            Inst::Unary(UnaryOp::Not, inverse) => self.reaches(inverse, !goal, steps),
            // One operand decides.
            Inst::Binary(BinaryOp::And, a, b) if !goal => {
                self.reaches(a, goal, steps) || self.reaches(b, goal, steps)
            }
            Inst::Binary(BinaryOp::Or, a, b) if goal => {
                self.reaches(a, goal, steps) || self.reaches(b, goal, steps)
            }
            Inst::Binary(op, a, b) if op.compares() => {
                let stays = if goal { opposite(op) } else { Some(op) };
                let mirrored = stays.and_then(mirrored);
                stays.is_some_and(|stays| self.passes(a, stays, b))
                    || mirrored.is_some_and(|stays| self.passes(b, stays, a))
            }
            _ => false,
        }
    }

    /// Returns whether a counter certainly leaves the numbers that are `op` a bound.
    fn passes(&self, counter: Value, op: BinaryOp, bound: Value) -> bool {
        let ty = self.kir.ty(counter);
        let Inst::Get(var) = *self.kir.inst(counter) else { return false };
        let number = ty.is_integer() && ty != Type::I64 && ty != Type::U64;
        if !number || !self.computes(counter) || !self.is_invariant(bound) {
            return false;
        }
        let Some(step) = self.step(var) else { return false };
        let (min, max) = range(ty);
        let bound = self.kir.constant(bound).map(|constant| constant.as_i64());
        // The largest and the smallest number at which the counter may still be counted.
        match op {
            BinaryOp::Lt if step > 0 => bound.unwrap_or(max) - 1 + step <= max,
            BinaryOp::Le if step > 0 => bound.unwrap_or(max) + step <= max,
            BinaryOp::Gt if step < 0 => bound.unwrap_or(min) + 1 + step >= min,
            BinaryOp::Ge if step < 0 => bound.unwrap_or(min) + step >= min,
            _ => false,
        }
    }

    /// Returns what is added to a variable in every iteration, its only change in the loop.
    fn step(&self, var: Var) -> Option<i64> {
        let mut sets = 0;
        for_each_stmt(self.body, &mut |stmt| {
            sets += u32::from(matches!(stmt, Stmt::Set(set, _) if *set == var));
        });
        let set =
            self.steps.iter().position(|stmt| matches!(stmt, Stmt::Set(set, _) if *set == var));
        let (1, Some(set)) = (sets, set) else { return None };
        let Stmt::Set(_, next) = self.steps[set] else { return None };
        let Inst::Binary(op, before, by) = *self.kir.inst(*next) else { return None };
        // Read before the assignment in the same iteration, and added then.
        let computes = |value| self.steps[..set].contains(&&Stmt::Let(value));
        if *self.kir.inst(before) != Inst::Get(var) || !computes(before) || !computes(*next) {
            return None;
        }
        let by = self.kir.constant(by)?.as_i64();
        match op {
            BinaryOp::Add => Some(by),
            BinaryOp::Sub => by.checked_neg(),
            _ => None,
        }
    }

    /// Returns whether every iteration computes a value.
    fn computes(&self, value: Value) -> bool {
        self.steps.contains(&&Stmt::Let(value))
    }

    /// Returns whether a value is a constant, or computed before the loop.
    fn is_invariant(&self, value: Value) -> bool {
        let inside = || any_stmt(self.body, &mut |stmt| *stmt == Stmt::Let(value));
        self.kir.constant(value).is_some() || !inside()
    }
}

/// The smallest and the largest number of an integer type of at most 32 bits.
fn range(ty: Type) -> (i64, i64) {
    let bits = ty.bits();
    match ty.is_signed() {
        true => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
        false => (0, (1 << bits) - 1),
    }
}

/// The comparison that holds where another one does not.
fn opposite(op: BinaryOp) -> Option<BinaryOp> {
    Some(match op {
        BinaryOp::Lt => BinaryOp::Ge,
        BinaryOp::Le => BinaryOp::Gt,
        BinaryOp::Gt => BinaryOp::Le,
        BinaryOp::Ge => BinaryOp::Lt,
        _ => return None,
    })
}

/// The comparison with exchanged operands.
fn mirrored(op: BinaryOp) -> Option<BinaryOp> {
    Some(match op {
        BinaryOp::Lt => BinaryOp::Gt,
        BinaryOp::Le => BinaryOp::Ge,
        BinaryOp::Gt => BinaryOp::Lt,
        BinaryOp::Ge => BinaryOp::Le,
        _ => return None,
    })
}
