//! Finds the loops that code generators unroll fully: short ones with a known trip count.
//!
//! Drivers' compilers unroll only small bodies. Without unrolling, the multiplications of a tile
//! are not interleaved with the loads of the next one, and a matrix product loses a third of its
//! speed.

use super::{
    BinaryOp, Block, Inst, Kir, Label, MatrixElement, MatrixType, Stmt, Type, Value, Var, any_stmt,
};

/// Maximum trip count of an unrolled loop.
const MAX_TRIP_COUNT: u32 = 64;

/// Maximum instructions of an unrolled loop, not counting moves, which ptxas removes.
const MAX_WEIGHT: u32 = 1024;

/// A loop to unroll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnrolledLoop {
    /// The trip count, unless another exit ends the loop before.
    pub trip_count: u32,
    /// Position in the body of the branch that exits the loop.
    pub exit_branch: usize,
}

/// The exit test at the start of a loop's iterations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ExitTest {
    /// Position in the body of the branch that exits the loop. The statements before it only
    /// compute values, without side effects, so they may be executed once more or once less: an
    /// unrolled loop omits them after the last iteration.
    pub(super) exit_branch: usize,
    /// The condition of the branch.
    pub(super) condition: Value,
    /// The value of the condition with which the iteration continues.
    pub(super) holds: bool,
}

/// Returns how to unroll a loop, given the statements before it; `None` if it should not be.
#[must_use]
pub fn unrolled_loop(
    kir: &Kir,
    before: &[Stmt],
    label: Label,
    body: &Block,
) -> Option<UnrolledLoop> {
    let unrolled = counted_loop(kir, before, label, body)?;
    let weight = weight(kir, body)?.checked_mul(unrolled.trip_count)?;
    (weight <= MAX_WEIGHT).then_some(unrolled)
}

/// Returns the condition of the branch that exits a loop, if each iteration starts with one.
pub(crate) fn exit_condition(kir: &Kir, label: Label, body: &Block) -> Option<Value> {
    exit_test(kir, label, body).map(|test| test.condition)
}

/// Returns the trip count, if it is known: an induction variable starts at a constant and has a
/// constant step, and the exit test compares it with a constant.
fn counted_loop(kir: &Kir, before: &[Stmt], label: Label, body: &Block) -> Option<UnrolledLoop> {
    let ExitTest { exit_branch, condition, holds } = exit_test(kir, label, body)?;
    let header = &body[..exit_branch];
    let Inst::Binary(op, counter, end) = *kir.inst(condition) else { return None };
    let Inst::Get(var) = *kir.inst(counter) else { return None };
    if !computes(header, condition) || !computes(header, counter) {
        return None;
    }
    let first = initial_value(kir, before, label, var)?;
    let (end, step) = (constant(kir, end)?, step(kir, body, var)?);
    let trip_count = trip_count(kir.ty(counter), (op, holds), first, end, step)?;
    Some(UnrolledLoop { trip_count, exit_branch })
}

/// Returns a loop's exit test, if each iteration starts with one.
pub(super) fn exit_test(kir: &Kir, label: Label, body: &Block) -> Option<ExitTest> {
    let exit_branch = body.iter().position(|stmt| !matches!(stmt, Stmt::Let(_)))?;
    let Stmt::If { condition, then_block, else_block, .. } = &body[exit_branch] else {
        return None;
    };
    let exit = [Stmt::Break(label)];
    let holds = match (then_block.as_slice(), else_block.as_slice()) {
        ([], other) if other == exit => true,
        (other, []) if other == exit => false,
        _ => return None,
    };
    let has_effect = body[..exit_branch].iter().any(|stmt| has_effect(kir, stmt));
    (!has_effect).then_some(ExitTest { exit_branch, condition: *condition, holds })
}

/// Returns a constant 32-bit integer.
fn constant(kir: &Kir, value: Value) -> Option<i64> {
    let constant = kir.constant(value)?;
    matches!(constant.ty, Type::I32 | Type::U32).then(|| constant.as_i64())
}

/// Returns the value of a variable where a loop starts, if it is a constant. An assignment of 0
/// before all others has been removed, since variables start at 0.
fn initial_value(kir: &Kir, before: &[Stmt], label: Label, var: Var) -> Option<i64> {
    match before.iter().rev().find(|stmt| sets(stmt, var)) {
        Some(Stmt::Set(_, value)) => constant(kir, *value),
        Some(_) => None,
        None => is_first_set_in(&kir.body, label, var)?.then_some(0),
    }
}

/// Returns whether a loop is executed at most once, and nothing sets a variable before it; `None`
/// if statements neither contain the loop nor set the variable.
fn is_first_set_in(stmts: &[Stmt], loop_label: Label, var: Var) -> Option<bool> {
    stmts.iter().find_map(|stmt| {
        let inner = || stmt.blocks().find_map(|block| is_first_set_in(block, loop_label, var));
        match stmt {
            Stmt::Set(set, _) if *set == var => Some(false),
            Stmt::Loop { label, .. } if *label == loop_label => Some(true),
            // Iterations of an outer loop start with the value of the one before.
            Stmt::Loop { .. } => inner().map(|_| false),
            _ => inner(),
        }
    })
}

/// Returns whether a statement, or a nested one, sets a variable.
fn sets(stmt: &Stmt, var: Var) -> bool {
    any_stmt(
        std::slice::from_ref(stmt),
        &mut |stmt| matches!(stmt, Stmt::Set(set, _) if *set == var),
    )
}

/// Returns whether statements compute a value. A `Get` computed before the loop is loop-invariant:
/// it is the variable's value at that time, not its current one.
fn computes(stmts: &[Stmt], value: Value) -> bool {
    any_stmt(stmts, &mut |stmt| *stmt == Stmt::Let(value))
}

/// Returns whether a statement may have a side effect. Only pure instructions, loads of scalars and
/// fragments, and reads of variables certainly have none.
pub(super) fn has_effect(kir: &Kir, stmt: &Stmt) -> bool {
    let Stmt::Let(value) = stmt else { return true };
    let inst = kir.inst(*value);
    let is_load = matches!(inst, Inst::Load { .. } | Inst::LoadFragment(_));
    !inst.is_pure() && !is_load && !matches!(inst, Inst::Get(_) | Inst::Extra(..))
}

/// Returns the step of an induction variable: its only assignment adds a constant to its value at
/// the start of the iteration.
fn step(kir: &Kir, body: &Block, var: Var) -> Option<i64> {
    let mut setting = body.iter().enumerate().filter(|(_, stmt)| sets(stmt, var));
    let (Some((at, Stmt::Set(_, next))), None) = (setting.next(), setting.next()) else {
        return None;
    };
    let Inst::Binary(op, counter, by) = *kir.inst(*next) else { return None };
    let is_counter = *kir.inst(counter) == Inst::Get(var) && computes(&body[..at], counter);
    let by = constant(kir, by)?;
    match op {
        BinaryOp::Add if is_counter => Some(by),
        BinaryOp::Sub if is_counter => Some(-by),
        _ => None,
    }
}

/// Returns the trip count: iterations until the comparison of the counter and `end` no longer has
/// the value `holds`.
fn trip_count(
    ty: Type,
    (op, holds): (BinaryOp, bool),
    first: i64,
    end: i64,
    step: i64,
) -> Option<u32> {
    let mut counter = first;
    for trip in 0..=MAX_TRIP_COUNT {
        let is_true = match op {
            BinaryOp::Lt => counter < end,
            BinaryOp::Le => counter <= end,
            BinaryOp::Gt => counter > end,
            BinaryOp::Ge => counter >= end,
            BinaryOp::Eq => counter == end,
            BinaryOp::Ne => counter != end,
            _ => return None,
        };
        if is_true != holds {
            return Some(trip);
        }
        counter += step;
        let fits = match ty {
            Type::I32 => i32::try_from(counter).is_ok(),
            _ => u32::try_from(counter).is_ok(),
        };
        if !fits {
            return None;
        }
    }
    None
}

/// Returns the number of instructions of a block, with loops unrolled; `None` if the trip count of
/// a loop is unknown.
fn weight(kir: &Kir, block: &Block) -> Option<u32> {
    let mut sum = 0u32;
    for (nth, stmt) in block.iter().enumerate() {
        let inner = match stmt {
            Stmt::Loop { label, body, .. } => {
                let unrolled = unrolled_loop(kir, &block[..nth], *label, body)?;
                weight(kir, body)?.checked_mul(unrolled.trip_count)?
            }
            _ => stmt.blocks().try_fold(0u32, |sum, block| sum.checked_add(weight(kir, block)?))?,
        };
        sum = sum.checked_add(inner)?.checked_add(own_weight(kir, stmt))?;
    }
    Some(sum)
}

/// Returns the instructions of a statement without its nested blocks.
fn own_weight(kir: &Kir, stmt: &Stmt) -> u32 {
    match stmt {
        Stmt::Let(value) => match kir.inst(*value) {
            Inst::Const(_) | Inst::Get(_) | Inst::Bitcast(_) | Inst::Extra(..) => 0,
            Inst::Unary(..) | Inst::Atomic { .. } | Inst::Subgroup(_) => 8,
            Inst::MultiplyFragments { a, .. } if kir.ty(a[0]) == Type::F16 => 8,
            Inst::MultiplyFragments { .. } => 128,
            // Four `MultiplyFragments`, of 8 or 128 each.
            Inst::MultiplyAdd(a, ..) if kir.ty(*a).matrix().is_some_and(is_f16) => 32,
            Inst::MultiplyAdd(..) => 512,
            Inst::MatrixLoad(_) => 32,
            _ => 1,
        },
        Stmt::Set(..) | Stmt::Loop { .. } | Stmt::Scope { .. } => 0,
        Stmt::MatrixStore { .. } => 32,
        Stmt::Store { .. } | Stmt::If { .. } | Stmt::Break(_) | Stmt::Barrier(..) => 1,
    }
}

fn is_f16(matrix: MatrixType) -> bool {
    matrix.element == MatrixElement::F16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trip_counts_match_execution() {
        let u32 = |op, first, end, step| trip_count(Type::U32, (op, true), first, end, step);
        assert_eq!(u32(BinaryOp::Lt, 0, 8, 1), Some(8));
        assert_eq!(u32(BinaryOp::Lt, 0, 7, 2), Some(4));
        assert_eq!(u32(BinaryOp::Le, 1, 4, 1), Some(4));
        assert_eq!(u32(BinaryOp::Gt, 16, 0, -4), Some(4));
        assert_eq!(u32(BinaryOp::Ne, 3, 0, -1), Some(3));
        assert_eq!(u32(BinaryOp::Lt, 8, 8, 1), Some(0));
        assert_eq!(u32(BinaryOp::Ge, 3, 0, -1), None, "it wraps, and never ends");
        assert_eq!(u32(BinaryOp::Lt, 0, 65, 1), None, "there are too many");
        assert_eq!(trip_count(Type::I32, (BinaryOp::Ge, true), 3, 0, -1), Some(4));
        let until = |op, first, end, step| trip_count(Type::U32, (op, false), first, end, step);
        assert_eq!(until(BinaryOp::Ge, 0, 8, 1), Some(8));
        assert_eq!(until(BinaryOp::Gt, 1, 4, 1), Some(4));
        assert_eq!(until(BinaryOp::Eq, 3, 0, -1), Some(3));
        assert_eq!(until(BinaryOp::Ne, 3, 0, -1), Some(0));
    }
}
