//! Uniformity analysis: what the values of a workgroup's invocations have in common when they
//! execute a kernel in lockstep.
//!
//! In lockstep, a statement is executed for all active invocations before the next one is;
//! invocations that left a loop, a scope or a branch wait where it ends. Of an
//! [`If`](super::Stmt::If), `then_block` is executed before `else_block`. A fact holds for the
//! invocations that are active where a value is computed, or a variable read. It concerns each
//! execution of a statement separately: a counter that is the same for all invocations in each
//! iteration of a loop is uniform. Facts hold for any part of a workgroup that is executed
//! separately, too.
//!
//! `propagate` propagates facts along def-use edges; `missed_assignments` finds the variables
//! that not all of their readers assigned, which depends on the uniformity of conditions. Both are
//! optimistic and iterate to a fixed point.

mod missed_assignments;
mod propagate;
mod transfer;

#[cfg(test)]
mod tests;

use super::{Kir, Value, Var};

/// The lattice of uniformity, from uniform to varying.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Variability {
    /// One value for all.
    Uniform,
    /// Of the form `base + x * local.x + y * local.y + z * local.z` modulo 2^32, with a base and
    /// factors that are uniform; only `I32` and `U32`. A [`Min`](super::BinaryOp::Min) or
    /// [`Max`](super::BinaryOp::Max) of such operands counts too, though it is of that form only
    /// if one operand is the result for all: that is left to be found out when it is executed.
    Affine,
    /// Nothing that is known.
    Varying,
}

/// The uniformity of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct VarUniformity {
    /// Its class at all reads; `Varying` if `partial`.
    pub class: Variability,
    /// Whether it may be read by an invocation that did not take part in the latest assignment
    /// before. If it is not, an assignment may as well write inactive invocations' copies.
    pub partial: bool,
}

/// The uniformity of a kernel's values and variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uniformity {
    /// By [`Value::index`].
    pub values: Vec<Variability>,
    /// By [`Var::index`].
    pub vars: Vec<VarUniformity>,
}

impl Kir {
    /// Analyses the uniformity of the invocations of a workgroup.
    ///
    /// A load from a uniform address is uniform even if the memory can be written: it is executed
    /// once for all invocations. A backend that uses this analysis must do just that.
    #[must_use]
    pub fn uniformity(&self) -> Uniformity {
        self.uniformity_given(Variability::Uniform, true)
    }

    /// Analyses the uniformity of the invocations of a workgroup when each executes the kernel
    /// independently, as on a GPU: a fact holds for all that execute a statement in the same
    /// iterations of the enclosing loops. A load from memory that may be written is never uniform,
    /// since racing invocations may read different values; nor is a variable that was assigned
    /// under a condition on it, or in a loop that exits on such a condition.
    #[must_use]
    pub fn uniformity_despite_races(&self) -> Uniformity {
        self.uniformity_given(Variability::Uniform, false)
    }

    /// Analyses the uniformity of the invocations of several workgroups that are neighbours along
    /// x: the position of the workgroup along x is affine then, with a coefficient of its own, and
    /// loads from workgroup memory are varying.
    #[must_use]
    pub fn uniformity_of_neighbours(&self) -> Uniformity {
        self.uniformity_given(Variability::Affine, true)
    }

    fn uniformity_given(&self, group: Variability, lockstep: bool) -> Uniformity {
        let mut flow = propagate::Flow::new(self, group, lockstep);
        let mut cover = missed_assignments::Cover::new(self);
        flow.settle();
        while cover.pass(&mut flow) {}
        flow.into_uniformity(|var| cover.is_partial(var))
    }
}

impl Uniformity {
    /// The class of a value.
    #[must_use]
    pub fn value(&self, value: Value) -> Variability {
        self.values[value.index()]
    }

    /// Returns the uniformity of a variable.
    #[must_use]
    pub fn var(&self, var: Var) -> VarUniformity {
        self.vars[var.index()]
    }
}
