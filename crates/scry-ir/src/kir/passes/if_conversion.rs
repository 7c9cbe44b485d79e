//! If-conversion: turns small branches that only assign variables into selects.
//!
//! The instructions of the blocks are total, and so may be executed speculatively; each variable is
//! assigned the value of the executed block, or else its previous one. That is cheaper in divergent
//! control flow, and exposes conditions that were composed by branches.

use super::super::{Block, Definition, Inst, Kir, Stmt, Value, Var};
use super::licm::is_costly;

/// Maximum number of instructions that are executed speculatively.
const INSTRUCTIONS: usize = 4;
/// Maximum number of assigned variables.
const VARIABLES: usize = 2;

/// Replaces small branches of a kernel by selects.
pub(super) fn convert_branches(kir: &mut Kir) {
    let mut body = std::mem::take(&mut kir.body);
    block(kir, &mut body);
    kir.body = body;
}

fn block(kir: &mut Kir, stmts: &mut Block) {
    let mut out = Vec::with_capacity(stmts.len());
    for mut stmt in stmts.drain(..) {
        stmt.blocks_mut().for_each(|inner| block(kir, inner));
        match stmt {
            Stmt::If { condition, then_block, else_block, .. }
                if is_small(kir, &then_block, &else_block) =>
            {
                convert(kir, condition, &then_block, &else_block, &mut out);
            }
            stmt => out.push(stmt),
        }
    }
    *stmts = out;
}

fn is_small(kir: &Kir, then_block: &Block, else_block: &Block) -> bool {
    let count = |of: fn(&&Stmt) -> bool| then_block.iter().chain(else_block).filter(of).count();
    let (lets, sets) =
        (count(|stmt| matches!(stmt, Stmt::Let(_))), count(|stmt| matches!(stmt, Stmt::Set(..))));
    (1..=VARIABLES).contains(&sets)
        && lets <= INSTRUCTIONS
        && is_simple(kir, then_block)
        && is_simple(kir, else_block)
}

/// Whether a block only computes speculatable values, and then assigns each variable at most once.
fn is_simple(kir: &Kir, block: &Block) -> bool {
    let mut assigned: Vec<Var> = Vec::new();
    block.iter().all(|stmt| match stmt {
        Stmt::Set(var, _) => {
            let first = !assigned.contains(var);
            assigned.push(*var);
            // There is no select of matrices.
            first && kir.vars[var.index()].matrix().is_none()
        }
        Stmt::Let(value) => match *kir.inst(*value) {
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
    let computed = then_block.iter().chain(else_block).filter(|stmt| matches!(stmt, Stmt::Let(_)));
    out.extend(computed.cloned());
    let mut vars: Vec<Var> = Vec::new();
    for stmt in then_block.iter().chain(else_block) {
        if let Stmt::Set(var, _) = stmt
            && !vars.contains(var)
        {
            vars.push(*var);
        }
    }
    for var in vars {
        let mut given = |block| match assigned(block, var) {
            Some(value) => value,
            None => define(kir, Inst::Get(var), var, condition, out),
        };
        let (if_true, if_false) = (given(then_block), given(else_block));
        let chosen = define(kir, Inst::Select(condition, if_true, if_false), var, condition, out);
        out.push(Stmt::Set(var, chosen));
    }
}

/// Returns the value that a block assigns to a variable.
fn assigned(block: &Block, var: Var) -> Option<Value> {
    block.iter().find_map(|stmt| match stmt {
        Stmt::Set(target, value) if *target == var => Some(*value),
        _ => None,
    })
}

/// Adds an instruction of a variable's type, at the position of the condition.
fn define(kir: &mut Kir, inst: Inst, var: Var, condition: Value, out: &mut Block) -> Value {
    kir.values.push(Definition { ty: kir.vars[var.index()], inst });
    let value = Value(kir.values.len() as u32 - 1);
    kir.source.inherit(value, condition);
    out.push(Stmt::Let(value));
    value
}
