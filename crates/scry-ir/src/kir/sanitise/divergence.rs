//! Rejects barriers, subgroup and matrix operations and uniform loads that only some invocations of
//! a workgroup may reach, and uniform loads whose index is not uniform.
//!
//! Control flow diverges in a branch whose condition is not uniform, and where an invocation may
//! have exited an enclosing loop or scope, or the kernel, while others have not. It converges again
//! after the branch, the loop or the scope.

use super::invalid;
use crate::kir::{
    Barrier, Block, Inst, Kir, Label, Stmt, Uniformity, Value, Variability, any_stmt,
};
use crate::{Location, ShaderError};

/// Checks a kernel. `describe` returns the computation of a value as in the original kernel, for
/// messages.
///
/// # Errors
/// For a uniform load whose index may differ between invocations; otherwise for the first statement
/// with a [`collective_name`] that only some invocations may reach.
pub(super) fn check(kir: &Kir, describe: &dyn Fn(Value) -> String) -> Result<(), ShaderError> {
    if !any_stmt(&kir.body, &mut |stmt| collective_name(kir, stmt).is_some()) {
        return Ok(());
    }
    let labels = kir.labels as usize;
    let mut walk = Walk {
        kir,
        uniformity: kir.uniformity_despite_races(),
        conditions: Vec::new(),
        enclosing: vec![Label::KERNEL],
        exited: vec![None; labels],
        carried: vec![Vec::new(); labels],
        changed: true,
    };
    let indices = kir.values.iter().filter_map(|definition| match definition.inst {
        Inst::WorkgroupUniformLoad { place, .. } => place.index,
        _ => None,
    });
    for index in indices {
        if walk.uniformity.value(index) != Variability::Uniform {
            let index = describe(index);
            let message = format!(
                "a uniform load from workgroup memory has an index that may \
                                   differ between the invocations of a workgroup: {index}"
            );
            return Err(invalid(message));
        }
    }
    while std::mem::take(&mut walk.changed) {
        walk.exited.fill(None);
        walk.block(&kir.body).map_err(|Divergent { what, at, cause }| {
            let (at, cause) = (kir.source.parenthesised(at), describe(cause));
            invalid(format!(
                "{what}{at} is in control flow that is not uniform: {cause} may differ between \
                 the invocations of a workgroup"
            ))
        })?;
    }
    Ok(())
}

/// A statement that may be reached by some invocations only.
struct Divergent {
    /// Its name in messages.
    what: &'static str,
    /// Its source location.
    at: Option<Location>,
    /// The condition that made the control flow diverge.
    cause: Value,
}

struct Walk<'k> {
    kir: &'k Kir,
    uniformity: Uniformity,
    /// The conditions of enclosing branches that are not uniform.
    conditions: Vec<Value>,
    /// The labels of enclosing loops and scopes.
    enclosing: Vec<Label>,
    /// For each label that only some invocations may have exited, the condition of that exit.
    exited: Vec<Option<Value>>,
    /// For each loop, the labels that only some invocations may have exited when an iteration ends.
    carried: Vec<Vec<(Label, Value)>>,
    /// Whether `carried` has grown.
    changed: bool,
}

impl Walk<'_> {
    fn block(&mut self, block: &Block) -> Result<(), Divergent> {
        for stmt in block {
            if let (Some(what), Some(cause)) = (collective_name(self.kir, stmt), self.divergence())
            {
                let at = self.kir.position(stmt);
                return Err(Divergent { what, at, cause });
            }
            self.stmt(stmt)?;
        }
        Ok(())
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<(), Divergent> {
        match stmt {
            Stmt::If { condition, then_block, else_block, .. } => {
                let diverges = self.uniformity.value(*condition) != Variability::Uniform;
                if diverges {
                    self.conditions.push(*condition);
                }
                self.block(then_block)?;
                self.block(else_block)?;
                if diverges {
                    self.conditions.pop();
                }
            }
            Stmt::Loop { label, body, .. } => {
                for (exited, cause) in self.carried[label.0 as usize].clone() {
                    self.exited[exited.0 as usize].get_or_insert(cause);
                }
                self.enclosing.push(*label);
                self.block(body)?;
                self.carry(*label);
                self.enclosing.pop();
                self.exited[label.0 as usize] = None;
            }
            Stmt::Scope { label, body } => {
                self.enclosing.push(*label);
                self.block(body)?;
                self.enclosing.pop();
                self.exited[label.0 as usize] = None;
            }
            Stmt::Break(label) => {
                if let Some(cause) = self.divergence() {
                    self.exited[label.0 as usize].get_or_insert(cause);
                }
            }
            Stmt::Let(_)
            | Stmt::Set(..)
            | Stmt::Store { .. }
            | Stmt::MatrixStore { .. }
            | Stmt::Barrier(..) => {}
        }
        Ok(())
    }

    /// Returns the condition that made control flow diverge; `None` if it cannot have.
    fn divergence(&self) -> Option<Value> {
        let exits = || self.enclosing.iter().rev().find_map(|label| self.exited[label.0 as usize]);
        self.conditions.last().copied().or_else(exits)
    }

    /// Records which labels only some invocations may have exited at the end of a loop's body: they
    /// are exited when the next iteration begins.
    fn carry(&mut self, of_loop: Label) {
        for label in &self.enclosing {
            let carried = &mut self.carried[of_loop.0 as usize];
            if let Some(cause) = self.exited[label.0 as usize]
                && !carried.iter().any(|(exited, _)| exited == label)
            {
                carried.push((*label, cause));
                self.changed = true;
            }
        }
    }
}

/// Returns the name of a statement that all invocations have to reach together; `None` for another.
fn collective_name(kir: &Kir, stmt: &Stmt) -> Option<&'static str> {
    match stmt {
        Stmt::Barrier(Barrier::Workgroup, _) => Some("`barrier workgroup`"),
        Stmt::Barrier(Barrier::Subgroup, _) => Some("`barrier subgroup`"),
        Stmt::MatrixStore { .. } => Some("a store of a cooperative matrix"),
        Stmt::Let(value) => match kir.inst(*value) {
            Inst::MatrixLoad(_) | Inst::LoadFragment(_) => Some("a load of a cooperative matrix"),
            Inst::Subgroup(_) => Some("a subgroup operation"),
            Inst::MultiplyAdd(..) | Inst::MultiplyFragments { .. } => {
                Some("a multiply-add of cooperative matrices")
            }
            Inst::WorkgroupUniformLoad { .. } => Some("a uniform load from workgroup memory"),
            _ => None,
        },
        _ => None,
    }
}
