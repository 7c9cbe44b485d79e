//! Lowers statements.

use scry_ir::kir::{
    Barrier, BinaryOp, Block, Inst, Kir, Label as KirLabel, Stmt, UnrolledLoop, Value, any_stmt,
    for_each_stmt, needs_barriers, unrolled_loop,
};

use super::Lowering;
use crate::asm::{Label, Opcode};
use crate::types::{PtxType, Reg};

/// Returns the number of uses of each value. The further results of an instruction
/// (`Inst::Extra`) do not count as uses of the first.
pub(super) fn count_uses(kir: &Kir) -> Vec<u32> {
    let mut uses = vec![0; kir.values.len()];
    let extra = |inst: &Inst| matches!(inst, Inst::Extra(..));
    for definition in kir.values.iter().filter(|definition| !extra(&definition.inst)) {
        definition.inst.for_each_operand(|value| uses[value.index()] += 1);
    }
    for_each_stmt(&kir.body, &mut |stmt| {
        stmt.for_each_operand(|value| uses[value.index()] += 1);
    });
    uses
}

impl Lowering<'_> {
    /// Emits the statements of a block.
    pub(super) fn block(&mut self, block: &[Stmt]) {
        for (nth, stmt) in block.iter().enumerate() {
            if let Some(at) = self.kir.line_info(stmt) {
                self.b.location(self.kir.source.name.as_deref().unwrap_or("wgsl"), at);
            }
            match stmt {
                _ if self.is_deferred(stmt, &block[nth + 1..]) => {}
                Stmt::Let(value) if self.is_uniform_load(*value) => {
                    self.uniform_load(*value, needs_barriers(self.kir, block, nth));
                }
                _ => self.statement(stmt, &block[..nth]),
            }
        }
    }

    fn is_uniform_load(&self, value: Value) -> bool {
        matches!(self.kir.inst(value), Inst::WorkgroupUniformLoad { .. })
    }

    /// Loads a value between the barriers that are required.
    fn uniform_load(&mut self, value: Value, [before, after]: [bool; 2]) {
        if before {
            self.b.barrier();
        }
        self.define(value);
        if after {
            self.b.barrier();
        }
    }

    /// Returns whether a statement is emitted later. A comparison whose single use is the condition
    /// of an `if` in the same block is emitted with the branch, which may need its negation. A
    /// matrix product may be fused into the next one.
    fn is_deferred(&self, stmt: &Stmt, following: &[Stmt]) -> bool {
        let Stmt::Let(value) = stmt else { return false };
        if self.fuses_into_next(*value, following) {
            return true;
        }
        self.comparison_of(*value).is_some()
            && self.uses[value.index()] == 1
            && following
                .iter()
                .any(|s| matches!(s, Stmt::If { condition, .. } if condition == value))
    }

    fn comparison_of(&self, value: Value) -> Option<(BinaryOp, Value, Value)> {
        match *self.kir.inst(value) {
            Inst::Binary(op, a, b) if op.is_comparison() => Some((op, a, b)),
            _ => None,
        }
    }

    fn statement(&mut self, stmt: &Stmt, before: &[Stmt]) {
        match stmt {
            Stmt::Let(value) => self.define(*value),
            Stmt::Set(var, value) => {
                let (var, value) = (self.var(*var), self.value(*value));
                self.b.assign(var, value);
            }
            Stmt::Store { place, values, .. } => self.store(place, values),
            Stmt::MatrixStore { .. } => unreachable!("matrices are replaced by fragments"),
            Stmt::If { condition, then_block, else_block, .. } => {
                self.if_statement(*condition, then_block, else_block)
            }
            Stmt::Loop { label, body, finite } => {
                match unrolled_loop(self.kir, before, *label, body) {
                    Some(unrolled) => self.unroll(*label, body, &unrolled),
                    None => self.loop_statement(*label, body, *finite),
                }
            }
            Stmt::Scope { label, body } => self.scope(*label, body),
            Stmt::Break(label) => self.break_to(*label),
            Stmt::Barrier(barrier, _) => self.barrier(stmt, *barrier),
        }
    }

    fn if_statement(&mut self, condition: Value, then_block: &Block, else_block: &Block) {
        match (then_block.as_slice(), else_block.as_slice()) {
            ([], []) => {}
            ([Stmt::Break(label)], other) => {
                self.break_if(condition, true, *label);
                self.block(other);
            }
            (other, [Stmt::Break(label)]) => {
                self.break_if(condition, false, *label);
                self.block(other);
            }
            ([], _) => self.skip_block_if(condition, true, else_block),
            (_, []) => self.skip_block_if(condition, false, then_block),
            _ => self.if_else(condition, then_block, else_block),
        }
    }

    /// Exits a loop or scope if a condition equals `holds`.
    fn break_if(&mut self, condition: Value, holds: bool, label: KirLabel) {
        let pred = self.condition(condition, holds);
        match self.exit_label(label) {
            Some(end) => self.b.break_if(pred, end),
            None => self.b.ret_if(pred),
        }
    }

    /// Skips a block if a condition equals `holds`.
    fn skip_block_if(&mut self, condition: Value, holds: bool, block: &Block) {
        let end = self.b.label();
        let pred = self.condition(condition, holds);
        self.b.branch_if(pred, end);
        self.block(block);
        self.b.place(end);
    }

    fn if_else(&mut self, condition: Value, then_block: &Block, else_block: &Block) {
        let (other, end) = (self.b.label(), self.b.label());
        let pred = self.condition(condition, false);
        self.b.branch_if(pred, other);
        self.block(then_block);
        if !matches!(then_block.last(), Some(Stmt::Break(_))) {
            self.b.branch(end);
        }
        self.b.place(other);
        self.block(else_block);
        self.b.place(end);
    }

    /// Returns a predicate: whether a condition equals `holds`.
    fn condition(&mut self, condition: Value, holds: bool) -> Reg {
        let computed = self.values[condition.index()];
        match (computed, self.comparison_of(condition)) {
            (None, Some((op, a, b))) => self.comparison(op, a, b, holds),
            _ => {
                let pred = self.reg(condition);
                if holds { pred } else { self.b.typed("not", PtxType::Pred, &[pred.into()]) }
            }
        }
    }

    fn loop_statement(&mut self, label: KirLabel, body: &Block, finite: bool) {
        let (top, end) = (self.b.label(), self.b.label());
        self.ends[label.0 as usize] = Some(end);
        self.b.place(top);
        self.block(body);
        if !matches!(body.last(), Some(Stmt::Break(_))) {
            if !finite {
                self.poll(top);
            }
            self.b.branch(top);
        }
        self.b.place(end);
    }

    /// Unrolls a loop completely, without its exit test.
    fn unroll(&mut self, label: KirLabel, body: &Block, unrolled: &UnrolledLoop) {
        let end = self.b.label();
        self.ends[label.0 as usize] = Some(end);
        for _ in 0..unrolled.trip_count {
            self.block(&body[..unrolled.exit_branch]);
            self.block(&body[unrolled.exit_branch + 1..]);
        }
        self.b.place(end);
    }

    fn scope(&mut self, label: KirLabel, body: &Block) {
        let end = self.b.label();
        self.ends[label.0 as usize] = Some(end);
        self.block(body);
        self.b.place(end);
    }

    fn break_to(&mut self, label: KirLabel) {
        match self.exit_label(label) {
            Some(end) => self.b.branch(end),
            None => self.b.ret(),
        }
    }

    /// Returns the exit label of a loop or scope; `None` for the kernel itself, unless it loops
    /// over workgroups.
    fn exit_label(&self, label: KirLabel) -> Option<Label> {
        self.ends[label.0 as usize]
    }

    /// Lowers a barrier. That of a subgroup needs the mask of active lanes, unless the control flow
    /// is uniform.
    fn barrier(&mut self, stmt: &Stmt, barrier: Barrier) {
        match barrier {
            Barrier::Workgroup => self.b.barrier(),
            Barrier::Subgroup => {
                let mask = self.lane_mask(self.convergence.at_barrier(stmt));
                self.b.emit(Opcode::new("bar.warp.sync"), vec![mask.into()]);
            }
        }
    }
}

/// Returns whether a block has a loop that is not proven to terminate.
pub(super) fn may_not_terminate(block: &Block) -> bool {
    any_stmt(block, &mut |stmt| matches!(stmt, Stmt::Loop { finite: false, .. }))
}
