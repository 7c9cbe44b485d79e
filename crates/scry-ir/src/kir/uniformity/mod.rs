//! Uniformity analysis: which values are equal, or affine, across the invocations of a workgroup
//! that execute a kernel in lockstep.
//!
//! In lockstep, a statement is executed for all active invocations before the next one is;
//! invocations that left a loop, a scope or a branch wait at its end. `then_block` of an
//! [`If`](super::Stmt::If) is executed before `else_block`. The variability of a value or variable
//! compares the invocations that are active when the value is computed or the variable is read. It
//! compares them at each execution of the statement separately: a counter that is the same for all
//! invocations in each iteration of a loop is uniform. It also holds if any part of a workgroup is
//! executed separately.
//!
//! `propagate` propagates variability along def-use edges; `partial_assignments` finds partially
//! assigned variables, which depend on the uniformity of conditions. Both are optimistic and
//! iterate to a fixed point.

mod partial_assignments;
mod propagate;
mod transfer;

#[cfg(test)]
mod tests;

use super::{Kir, Value, Var};

/// The lattice of uniformity, from uniform to varying.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Variability {
    /// The same value for all invocations.
    Uniform,
    /// Of the form `base + x * local.x + y * local.y + z * local.z` modulo 2^32, with uniform base
    /// and factors; only `I32` and `U32`. A [`Min`](super::BinaryOp::Min) or
    /// [`Max`](super::BinaryOp::Max) of affine operands is classified as affine too, though it has
    /// this form only if the same operand is the result for all invocations: a backend must check
    /// this at run time.
    Affine,
    /// Any other value.
    Varying,
}

/// The uniformity of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct VarUniformity {
    /// Its variability at all reads; `Varying` if `partially_assigned`.
    pub variability: Variability,
    /// Whether it may be read by an invocation that was inactive at the latest assignment. Then an
    /// assignment must be masked: it must not write the copies of inactive invocations. If false,
    /// it may write them.
    pub partially_assigned: bool,
}

/// The uniformity of a kernel's values and variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uniformity {
    /// By [`Value::index`].
    pub values: Vec<Variability>,
    /// By [`Var::index`].
    pub vars: Vec<VarUniformity>,
}

/// The set of invocations that variability compares: those of a workgroup, of a subgroup, or of
/// several neighbouring workgroups along x.
#[derive(Debug, Clone, Copy)]
struct ComparedInvocations {
    /// The variability of `GroupId(0)`: not uniform if the set spans workgroups.
    group_id_x: Variability,
    /// The variability of `SubgroupId`: uniform if the set is a subgroup.
    subgroup_id: Variability,
    /// Whether a load from a uniform address is executed once for all invocations. If not,
    /// concurrent stores may make its results differ.
    lockstep: bool,
}

impl ComparedInvocations {
    /// The invocations of a workgroup, each of which executes the kernel independently.
    const WORKGROUP: Self = Self {
        group_id_x: Variability::Uniform,
        subgroup_id: Variability::Varying,
        lockstep: false,
    };

    fn spans_workgroups(self) -> bool {
        self.group_id_x != Variability::Uniform
    }
}

impl Kir {
    /// Analyses the uniformity of the invocations of a workgroup.
    ///
    /// A load from a uniform address is uniform even if the memory can be written: a backend that
    /// uses this analysis must execute it once for all invocations.
    #[must_use]
    pub fn uniformity(&self) -> Uniformity {
        let compared = ComparedInvocations { lockstep: true, ..ComparedInvocations::WORKGROUP };
        self.uniformity_of(compared)
    }

    /// Analyses the uniformity of the invocations of a workgroup when each executes the kernel
    /// independently, as on a GPU. The variability compares all invocations that execute a
    /// statement in the same iterations of the enclosing loops. A load from memory that may be
    /// written is never uniform, since racing invocations may read different values. Nor is a
    /// variable that was assigned under a condition on such a load, or in a loop that exits on such
    /// a condition, and is read after that branch or loop.
    #[must_use]
    pub fn uniformity_despite_races(&self) -> Uniformity {
        self.uniformity_of(ComparedInvocations::WORKGROUP)
    }

    /// Analyses the uniformity of the invocations of a subgroup, as
    /// [`uniformity_despite_races`](Self::uniformity_despite_races) does for a workgroup.
    pub(crate) fn uniformity_in_subgroup(&self) -> Uniformity {
        let subgroup_id = Variability::Uniform;
        self.uniformity_of(ComparedInvocations { subgroup_id, ..ComparedInvocations::WORKGROUP })
    }

    /// Analyses the uniformity of the invocations of several neighbouring workgroups along x: the
    /// position of the workgroup along x then has a factor of its own in affine values, and loads
    /// from workgroup memory are varying.
    #[must_use]
    pub fn uniformity_across_workgroups(&self) -> Uniformity {
        self.uniformity_of(ComparedInvocations {
            group_id_x: Variability::Affine,
            lockstep: true,
            ..ComparedInvocations::WORKGROUP
        })
    }

    fn uniformity_of(&self, compared: ComparedInvocations) -> Uniformity {
        let mut flow = propagate::Flow::new(self, compared);
        let mut partial_vars = partial_assignments::PartialVars::new(self);
        flow.propagate();
        while partial_vars.iterate(&mut flow) {}
        flow.into_uniformity(|var| partial_vars.is_partial(var))
    }
}

impl Uniformity {
    /// Returns the variability of a value.
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
