//! Finds values that are used outside the WGSL block that computes them.
//!
//! In the kernel IR, a value computed in a `Scope` before any exit from it dominates the code after
//! the scope, and may be used there. In WGSL the scope is a block, so such a value must be declared
//! as a `var` outside.

use crate::kir::{Block, Inst, Kir, Stmt, Value};

/// Returns for each value (by [`Value::index`]) whether it is used outside the block that computes
/// it.
pub(super) fn escaping(kir: &Kir) -> Vec<bool> {
    let mut walk = Walk {
        kir,
        enclosing: Vec::new(),
        depth_of_block: Vec::new(),
        block_of: vec![None; kir.values.len()],
        escaping: vec![false; kir.values.len()],
    };
    walk.block(&kir.body);
    walk.escaping
}

struct Walk<'a> {
    kir: &'a Kir,
    /// Indices of the enclosing blocks, the outermost first.
    enclosing: Vec<usize>,
    /// Number of blocks around each block, by its index.
    depth_of_block: Vec<usize>,
    /// The block that computes each value so far.
    block_of: Vec<Option<usize>>,
    escaping: Vec<bool>,
}

impl Walk<'_> {
    fn block(&mut self, block: &Block) {
        self.enclosing.push(self.depth_of_block.len());
        self.depth_of_block.push(self.enclosing.len() - 1);
        for stmt in block {
            stmt.for_each_operand(|value| self.use_value(value));
            if let Stmt::Let(value) = stmt {
                self.define_value(*value);
            }
            stmt.blocks().for_each(|inner| self.block(inner));
        }
        self.enclosing.pop();
    }

    fn define_value(&mut self, value: Value) {
        let kir = self.kir;
        let inst: &Inst = kir.inst(value);
        inst.for_each_operand(|operand| self.use_value(operand));
        for i in 0..inst.results() {
            self.block_of[(value.0 + i) as usize] = self.enclosing.last().copied();
        }
    }

    fn use_value(&mut self, value: Value) {
        let Some(block) = self.block_of[value.index()] else { return };
        let depth = self.depth_of_block[block];
        self.escaping[value.index()] |= self.enclosing.get(depth) != Some(&block);
    }
}
