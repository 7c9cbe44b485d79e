//! Removes redundant jumps, loops and scopes.
//!
//! An exit from a scope at its end, or at the end of a branch there, is redundant; so is an exit
//! from the kernel at its end. A loop that exits in its first iteration becomes a scope. A scope
//! without early exits is replaced by its statements; their values are then visible after it too,
//! which is harmless.

use super::super::{Block, Kir, Label, Stmt, for_each_stmt};
use super::value_map::always_exits;

/// Simplifies the control flow of a kernel.
pub(super) fn simplify(kir: &mut Kir) {
    let mut flow = Flow { exits: vec![0; kir.labels as usize], ends: vec![Label::KERNEL] };
    for_each_stmt(&kir.body, &mut |stmt| {
        if let Stmt::Break(label) = stmt {
            flow.exits[label.0 as usize] += 1;
        }
    });
    flow.block(&mut kir.body);
}

struct Flow {
    /// Number of exits from each label.
    exits: Vec<u32>,
    /// The scopes that end where the current block ends: exits from them there are redundant.
    ends: Vec<Label>,
}

impl Flow {
    fn block(&mut self, block: &mut Block) {
        while let Some(Stmt::Break(label)) = block.last()
            && self.ends.contains(label)
        {
            self.exits[label.0 as usize] -= 1;
            block.pop();
        }
        let Some(last) = block.pop() else { return };
        let ends = std::mem::take(&mut self.ends);
        let mut out = Vec::with_capacity(block.len() + 1);
        let reaches_last = block.drain(..).all(|stmt| {
            self.stmt(stmt, &mut out);
            // The statements of a scope may have ended with an exit from an outer construct.
            !matches!(out.last(), Some(Stmt::Break(_)))
        });
        self.ends = ends;
        if reaches_last {
            self.stmt(last, &mut out);
        }
        *block = out;
    }

    fn stmt(&mut self, mut stmt: Stmt, out: &mut Block) {
        match &mut stmt {
            Stmt::Loop { label, body, .. } if always_exits(body) => {
                let (label, body) = (*label, std::mem::take(body));
                return self.scope(label, body, out);
            }
            Stmt::Scope { label, body } => {
                let (label, body) = (*label, std::mem::take(body));
                return self.scope(label, body, out);
            }
            Stmt::Loop { body, .. } => {
                let ends = std::mem::take(&mut self.ends);
                self.block(body);
                self.ends = ends;
            }
            _ => stmt.blocks_mut().for_each(|block| self.block(block)),
        }
        out.push(stmt);
    }

    fn scope(&mut self, label: Label, mut body: Block, out: &mut Block) {
        self.ends.push(label);
        self.block(&mut body);
        self.ends.pop();
        if self.exits[label.0 as usize] == 0 {
            out.extend(body);
        } else {
            out.push(Stmt::Scope { label, body });
        }
    }
}
