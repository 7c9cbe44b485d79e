//! Convergence: where all threads of a block are active.
//!
//! Subgroup operations and barriers there have a mask that the block's size determines; elsewhere
//! they query the active lanes. A condition that is uniform over the block keeps the threads
//! converged. A value loaded from writable memory is not uniform, since racing threads may read
//! different values. Neither is a variable that is assigned under a condition on such a value.

use scry_ir::kir::{
    Barrier, Block, Inst, Kir, Label, Stmt, Uniformity, Value, Variability, any_stmt,
};

/// The statements that are reached by all threads of a block or by none.
#[derive(Default)]
pub(super) struct Convergence {
    /// For each value, whether its statement is one of them. Empty if the kernel has no subgroup
    /// operations, subgroup barriers or matrices.
    values: Vec<bool>,
    /// The barriers among them, by the address of their statement.
    barriers: Vec<*const Stmt>,
}

impl Convergence {
    pub(super) fn of(kir: &Kir) -> Self {
        let is_collective = |inst: &Inst| {
            matches!(
                inst,
                Inst::Subgroup(_) | Inst::LoadFragment(_) | Inst::MultiplyFragments { .. }
            )
        };
        if !kir.values.iter().any(|value| is_collective(&value.inst))
            && !has_subgroup_barrier(&kir.body)
        {
            return Self::default();
        }
        let mut analysis = Analysis {
            uniformity: kir.uniformity_despite_races(),
            values: vec![false; kir.values.len()],
            barriers: Vec::new(),
        };
        analysis.block(&kir.body, true);
        Self { values: analysis.values, barriers: analysis.barriers }
    }

    /// Returns whether all threads are converged where a value is computed.
    pub(super) fn at_value(&self, value: Value) -> bool {
        self.values[value.index()]
    }

    /// Returns whether all threads are converged at a barrier.
    pub(super) fn at_barrier(&self, barrier: &Stmt) -> bool {
        self.barriers.contains(&std::ptr::from_ref(barrier))
    }
}

/// Returns whether a block has a barrier of subgroups.
fn has_subgroup_barrier(block: &Block) -> bool {
    any_stmt(block, &mut |stmt| matches!(stmt, Stmt::Barrier(Barrier::Subgroup, _)))
}

struct Analysis {
    /// Uniformity of values, also in the presence of data races.
    uniformity: Uniformity,
    values: Vec<bool>,
    barriers: Vec<*const Stmt>,
}

/// The labels that some threads, but not all, have branched to.
type DivergedLabels = Vec<Label>;

impl Analysis {
    /// Analyses a block, which all threads reach together if `converged`. Returns the labels that
    /// only some of them branch to.
    fn block(&mut self, block: &Block, mut converged: bool) -> DivergedLabels {
        let mut diverged = DivergedLabels::new();
        for stmt in block {
            let inner = match stmt {
                Stmt::Let(value) => {
                    self.values[value.index()] = converged;
                    continue;
                }
                Stmt::Barrier(..) => {
                    // A loop may be analysed twice: what is true of its first iteration may be
                    // wrong for later ones.
                    self.barriers.retain(|other| !std::ptr::eq(*other, stmt));
                    if converged {
                        self.barriers.push(stmt);
                    }
                    continue;
                }
                Stmt::Break(label) if !converged => vec![*label],
                Stmt::If { condition, then_block, else_block, .. } => {
                    let uniform = self.uniformity.value(*condition) == Variability::Uniform;
                    let converged = converged && uniform;
                    let mut inner = self.block(then_block, converged);
                    inner.extend(self.block(else_block, converged));
                    inner
                }
                Stmt::Loop { label, body, .. } => self.loop_(*label, body, converged),
                Stmt::Scope { label, body } => {
                    let mut inner = self.block(body, converged);
                    inner.retain(|other| other != label);
                    inner
                }
                Stmt::Set(..) | Stmt::Store { .. } | Stmt::MatrixStore { .. } | Stmt::Break(_) => {
                    continue;
                }
            };
            converged &= inner.is_empty();
            for label in inner {
                if !diverged.contains(&label) {
                    diverged.push(label);
                }
            }
        }
        diverged
    }

    /// In a loop that some threads leave, the others are diverged from the beginning of the next
    /// iteration.
    fn loop_(&mut self, label: Label, body: &Block, converged: bool) -> DivergedLabels {
        let mut diverged = self.block(body, converged);
        if converged && !diverged.is_empty() {
            diverged = self.block(body, false);
        }
        diverged.retain(|other| *other != label);
        diverged
    }
}
