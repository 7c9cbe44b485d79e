//! Finds loops and scopes that lanes may leave while others stay.

use scry_ir::kir::{Block, Kir, Label, Stmt, Uniformity, Variability};

/// Returns, by label, whether lanes may leave a loop or scope while others stay: whether it has an
/// exit in divergent control flow. Exits from the kernel do not count: those lanes are not waited
/// for.
pub(crate) fn divergent_exits(kir: &Kir, uniformity: &Uniformity) -> Vec<bool> {
    let mut search = Search {
        uniformity,
        divergent_exits: vec![false; kir.labels as usize],
        around: Vec::new(),
        changed: true,
    };
    // A divergent exit of an inner loop may affect the outer one.
    while std::mem::take(&mut search.changed) {
        search.block(&kir.body);
    }
    search.divergent_exits
}

struct Search<'a> {
    uniformity: &'a Uniformity,
    divergent_exits: Vec<bool>,
    /// The enclosing constructs: a label, or `None` for a side of a divergent `If`.
    around: Vec<Option<Label>>,
    changed: bool,
}

impl Search<'_> {
    fn block(&mut self, block: &Block) {
        for stmt in block {
            match stmt {
                Stmt::If { condition, .. } => {
                    let divergent =
                        self.uniformity.values[condition.index()] != Variability::Uniform;
                    self.within(stmt, divergent.then_some(None));
                }
                Stmt::Loop { label, .. } | Stmt::Scope { label, .. } => {
                    self.within(stmt, Some(Some(*label)));
                }
                Stmt::Break(label) => self.break_to(*label),
                _ => {}
            }
        }
    }

    fn within(&mut self, stmt: &Stmt, around: Option<Option<Label>>) {
        let depth = self.around.len();
        self.around.extend(around);
        stmt.blocks().for_each(|block| self.block(block));
        self.around.truncate(depth);
    }

    fn break_to(&mut self, label: Label) {
        let inside = self.around.iter().rev().take_while(|around| **around != Some(label));
        let divergent = inside
            .copied()
            .any(|around| around.is_none_or(|inner| self.divergent_exits[inner.0 as usize]));
        if divergent && label != Label::KERNEL && !self.divergent_exits[label.0 as usize] {
            self.divergent_exits[label.0 as usize] = true;
            self.changed = true;
        }
    }
}
