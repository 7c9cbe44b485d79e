//! If-conversion: turns small branches that only assign variables into selects.
//!
//! The instructions of both blocks are total, so they may be executed speculatively. Each variable
//! is assigned the value from the block that would be executed, or else its previous value. That is
//! cheaper in divergent control flow. It also turns the branches to which `&&` and `||` were
//! lowered into boolean operations, which later passes can simplify.

use super::super::{Block, Definition, Inst, Kir, Stmt, Value, Var};
use super::licm::is_costly;

/// Maximum number of instructions that are executed speculatively.
const MAX_INSTRUCTIONS: usize = 4;
/// Maximum number of assignments.
const MAX_ASSIGNMENTS: usize = 2;

/// Replaces small branches of a kernel by selects.
pub(super) fn convert_branches(kir: &mut Kir) {
    let mut body = std::mem::take(&mut kir.body);
    convert_block(kir, &mut body);
    kir.body = body;
}

fn convert_block(kir: &mut Kir, stmts: &mut Block) {
    let mut out = Vec::with_capacity(stmts.len());
    for mut stmt in stmts.drain(..) {
        stmt.blocks_mut().for_each(|inner| convert_block(kir, inner));
        match stmt {
            Stmt::If { condition, then_block, else_block, .. }
                if is_convertible(kir, &then_block, &else_block) =>
            {
                convert(kir, condition, &then_block, &else_block, &mut out);
            }
            stmt => out.push(stmt),
        }
    }
    *stmts = out;
}

fn is_convertible(kir: &Kir, then_block: &Block, else_block: &Block) -> bool {
    let statements = || then_block.iter().chain(else_block);
    let count = |predicate: fn(&&Stmt) -> bool| statements().filter(predicate).count();
    let (lets, sets) =
        (count(|stmt| matches!(stmt, Stmt::Let(_))), count(|stmt| matches!(stmt, Stmt::Set(..))));
    (1..=MAX_ASSIGNMENTS).contains(&sets)
        && lets <= MAX_INSTRUCTIONS
        && is_speculatable(kir, then_block)
        && is_speculatable(kir, else_block)
}

/// Returns whether a block only computes speculatable values and assigns variables, each at most
/// once.
fn is_speculatable(kir: &Kir, block: &Block) -> bool {
    let mut assigned: Vec<Var> = Vec::new();
    block.iter().all(|stmt| match stmt {
        Stmt::Set(var, _) => {
            let first = !assigned.contains(var);
            assigned.push(*var);
            // There is no select of matrices.
            first && kir.vars[var.index()].matrix().is_none()
        }
        Stmt::Let(value) => match *kir.inst(*value) {
            // After the conversion, all reads precede the assignments.
            Inst::Get(var) => !assigned.contains(&var),
            inst => inst.is_pure() && !is_costly(kir, inst),
        },
        _ => false,
    })
}

fn convert(
    kir: &mut Kir,
    condition: Value,
    then_block: &Block,
    else_block: &Block,
    out: &mut Block,
) {
    let lets = then_block.iter().chain(else_block).filter(|stmt| matches!(stmt, Stmt::Let(_)));
    out.extend(lets.cloned());
    let mut vars: Vec<Var> = Vec::new();
    for stmt in then_block.iter().chain(else_block) {
        if let Stmt::Set(var, _) = stmt
            && !vars.contains(var)
        {
            vars.push(*var);
        }
    }
    for var in vars {
        let mut value_after = |block| match assigned_value(block, var) {
            Some(value) => value,
            None => define(kir, Inst::Get(var), var, condition, out),
        };
        let (if_true, if_false) = (value_after(then_block), value_after(else_block));
        let selected = define(kir, Inst::Select(condition, if_true, if_false), var, condition, out);
        out.push(Stmt::Set(var, selected));
    }
}

/// Returns the value that a block assigns to a variable.
fn assigned_value(block: &Block, var: Var) -> Option<Value> {
    block.iter().find_map(|stmt| match stmt {
        Stmt::Set(target, value) if *target == var => Some(*value),
        _ => None,
    })
}

/// Appends an instruction of a variable's type, with the source position of the condition.
fn define(kir: &mut Kir, inst: Inst, var: Var, condition: Value, out: &mut Block) -> Value {
    kir.values.push(Definition { ty: kir.vars[var.index()], inst });
    let value = Value(kir.values.len() as u32 - 1);
    kir.source.inherit(value, condition);
    out.push(Stmt::Let(value));
    value
}
