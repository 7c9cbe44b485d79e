//! Convergence: where all threads of a block are active.
//!
//! Subgroup operations and barriers there use the full lane mask; elsewhere the active lanes are
//! queried. A condition that is uniform over the block keeps the threads converged. A value that
//! was loaded from memory which may be written is not uniform, since racing threads may read
//! different values; neither is a variable whose assignment depends on such a condition.

use scry_ir::kir::{
    Barrier, Block, Inst, Kir, Label, Stmt, Uniformity, Value, Variability, any_stmt,
};

/// The statements that are reached by all threads of a block or by none.
#[derive(Default)]
pub(super) struct Convergence {
    /// For each value, whether its statement is one of them. Empty if unused.
    values: Vec<bool>,
    /// The barriers among them, by the address of their statement.
    barriers: Vec<*const Stmt>,
}

impl Convergence {
    pub(super) fn of(kir: &Kir) -> Self {
        let cooperates =
            |inst: &Inst| matches!(inst, Inst::Subgroup(_) | Inst::MultiplyFragments { .. });
        if !kir.values.iter().any(|value| cooperates(&value.inst)) && !has_barrier(&kir.body) {
            return Self::default();
        }
        let mut walk = Walk {
            uniformity: kir.uniformity_despite_races(),
            values: vec![false; kir.values.len()],
            barriers: Vec::new(),
        };
        walk.block(&kir.body, true);
        Self { values: walk.values, barriers: walk.barriers }
    }

    /// Whether all threads are converged where a value is computed.
    pub(super) fn at(&self, value: Value) -> bool {
        self.values[value.index()]
    }

    /// Whether all threads are converged at a barrier.
    pub(super) fn at_barrier(&self, barrier: &Stmt) -> bool {
        self.barriers.contains(&std::ptr::from_ref(barrier))
    }
}

/// Whether threads of a warp wait for each other.
fn has_barrier(block: &Block) -> bool {
    any_stmt(block, &mut |stmt| matches!(stmt, Stmt::Barrier(Barrier::Subgroup, _)))
}

struct Walk {
    /// Uniformity of values, also in the presence of data races.
    uniformity: Uniformity,
    values: Vec<bool>,
    barriers: Vec<*const Stmt>,
}

/// The labels to which some threads, but not all, have branched.
type Left = Vec<Label>;

impl Walk {
    /// Analyses a block, which all threads reach if `together`.
    fn block(&mut self, block: &Block, mut together: bool) -> Left {
        let mut left = Left::new();
        for stmt in block {
            let inside = match stmt {
                Stmt::Let(value) => {
                    self.values[value.index()] = together;
                    continue;
                }
                Stmt::Barrier(..) => {
                    // Facts about a loop's first iteration may be wrong for later ones.
                    self.barriers.retain(|other| !std::ptr::eq(*other, stmt));
                    if together {
                        self.barriers.push(stmt);
                    }
                    continue;
                }
                Stmt::Leave(label) if !together => vec![*label],
                Stmt::If { condition, then_block, else_block, .. } => {
                    let uniform = self.uniformity.value(*condition) == Variability::Uniform;
                    let together = together && uniform;
                    let mut inside = self.block(then_block, together);
                    inside.extend(self.block(else_block, together));
                    inside
                }
                Stmt::Loop { label, body, .. } => self.repeat(*label, body, together),
                Stmt::Scope { label, body } => {
                    let mut inside = self.block(body, together);
                    inside.retain(|other| other != label);
                    inside
                }
                Stmt::Set(..) | Stmt::Store { .. } | Stmt::MatrixStore { .. } | Stmt::Leave(_) => {
                    continue;
                }
            };
            together &= inside.is_empty();
            for label in inside {
                if !left.contains(&label) {
                    left.push(label);
                }
            }
        }
        left
    }

    /// In a loop that some threads leave, the others are diverged from the beginning of the next
    /// iteration.
    fn repeat(&mut self, label: Label, body: &Block, together: bool) -> Left {
        let mut left = self.block(body, together);
        if together && !left.is_empty() {
            left = self.block(body, false);
        }
        left.retain(|other| *other != label);
        left
    }
}
