//! Statements of a kernel being made.

use super::Builder;
use crate::kir::{Barrier, Block, Label, Place, Stmt, Value, Var};

/// Statements.
impl Builder {
    /// Adds a statement to the innermost open block, unless that block has been left already.
    #[inline(never)]
    pub fn push(&mut self, stmt: Stmt) {
        if let Some(block) = self.open.last_mut()
            && !matches!(block.last(), Some(Stmt::Leave(_)))
        {
            block.push(stmt);
        }
    }

    /// Assigns a variable.
    pub fn set(&mut self, var: Var, value: Value) {
        self.push(Stmt::Set(var, value));
    }

    /// Writes one to four values, one after the other.
    pub fn store(&mut self, place: Place, values: Vec<Value>) {
        self.push(Stmt::Store { place, values });
    }

    /// Waits for the others.
    pub fn barrier(&mut self, barrier: Barrier) {
        self.push(Stmt::Barrier(barrier));
    }

    /// Goes on after an enclosing loop or scope.
    pub fn leave(&mut self, label: Label) {
        self.push(Stmt::Leave(label));
    }

    /// Opens a block; statements go there until it is closed.
    pub fn open(&mut self) {
        self.open.push(Vec::new());
    }

    /// Closes the innermost block and gives it.
    pub fn close(&mut self) -> Block {
        debug_assert!(self.open.len() > 1, "the kernel's own block is closed by `finish`");
        self.open.pop().unwrap_or_default()
    }

    /// A label that names nothing yet.
    pub fn label(&mut self) -> Label {
        self.kir.labels += 1;
        Label(self.kir.labels - 1)
    }

    /// One of two blocks.
    pub fn if_else(
        &mut self,
        condition: Value,
        accept: impl FnOnce(&mut Self),
        reject: impl FnOnce(&mut Self),
    ) {
        let accept = self.block(accept);
        let reject = self.block(reject);
        self.push(Stmt::If { condition, accept, reject });
    }

    /// A block that is executed if a condition holds.
    pub fn if_then(&mut self, condition: Value, accept: impl FnOnce(&mut Self)) {
        self.if_else(condition, accept, |_| ());
    }

    /// A loop; the closure gets its label. Say that it is finite only if that is proven.
    pub fn repeat(&mut self, finite: bool, body: impl FnOnce(&mut Self, Label)) {
        let label = self.label();
        let body = self.block(|b| body(b, label));
        self.push(Stmt::Loop { label, body, finite });
    }

    /// A block that can be left; the closure gets its label.
    pub fn scope(&mut self, body: impl FnOnce(&mut Self, Label)) {
        let label = self.label();
        let body = self.block(|b| body(b, label));
        self.push(Stmt::Scope { label, body });
    }

    /// Puts all open blocks but the outermost aside: statements go to the outermost, before what
    /// the others will become, until those are brought back.
    pub(crate) fn set_aside(&mut self) -> Vec<Block> {
        self.open.split_off(1)
    }

    /// Opens blocks that were put aside again.
    pub(crate) fn bring_back(&mut self, inner: Vec<Block>) {
        self.open.extend(inner);
    }

    fn block(&mut self, fill: impl FnOnce(&mut Self)) -> Block {
        self.open();
        fill(self);
        self.close()
    }
}
