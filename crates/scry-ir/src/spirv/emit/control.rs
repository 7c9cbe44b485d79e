//! Statements, as structured control flow.
//!
//! A loop is left by a branch to its merge block, and a scope is a switch of one case, which is
//! left in the same way. SPIR-V allows branches out of the innermost loop, and out of the innermost
//! switch if there is no loop within it; to leave others, a flag is set and tested after each
//! construct on the way.

use spirv::{LoopControl, MemorySemantics, Op, Scope, SelectionControl};

use super::module::Id;
use super::state::Construct;
use super::{Emitter, Result};
use crate::kir::{
    Barrier, Block, Inst, Label, Stmt, Type, UnrolledLoop, Value, any_stmt, needs_barriers,
    unrolled_loop,
};

impl Emitter<'_> {
    /// Writes the statements of a block that are reachable: an unrolled loop, or a scope, may exit
    /// the kernel or a construct around the block on every path.
    pub(super) fn block(&mut self, block: &[Stmt]) -> Result<()> {
        for (nth, stmt) in block.iter().enumerate() {
            if self.terminated {
                break;
            }
            if let Some(at) = self.kir.line_info(stmt) {
                self.m.line(self.kir.source.name.as_deref().unwrap_or("wgsl"), at);
            }
            match stmt {
                Stmt::Let(value) if self.is_uniform_load(*value) => {
                    self.uniform_load(*value, needs_barriers(self.kir, block, nth))?;
                }
                _ => self.statement(stmt, &block[..nth])?,
            }
        }
        Ok(())
    }

    fn is_uniform_load(&self, value: Value) -> bool {
        matches!(self.kir.inst(value), Inst::WorkgroupUniformLoad { .. })
    }

    /// Loads between barriers.
    fn uniform_load(&mut self, value: Value, [before, after]: [bool; 2]) -> Result<()> {
        if before {
            self.barrier(Barrier::Workgroup);
        }
        self.define(value)?;
        if after {
            self.barrier(Barrier::Workgroup);
        }
        Ok(())
    }

    fn statement(&mut self, stmt: &Stmt, before: &[Stmt]) -> Result<()> {
        match stmt {
            Stmt::Let(value) => self.define(*value)?,
            Stmt::Set(var, value) => {
                let (pointer, value) = (self.vars[var.index()], self.value(*value));
                self.m.run(Op::Store, &[pointer, value]);
            }
            Stmt::Store { place, values, .. } => self.store(place, values)?,
            Stmt::MatrixStore { place, value, .. } => self.matrix_store(place, *value)?,
            Stmt::If { condition, then_block, else_block, .. } => {
                self.if_statement(*condition, then_block, else_block)?;
            }
            Stmt::Loop { label, body, finite } => {
                match unrolled_loop(self.kir, before, *label, body) {
                    Some(unrolled) => self.unroll(*label, body, &unrolled)?,
                    None => self.loop_(*label, body, *finite)?,
                }
            }
            Stmt::Scope { label, body } => self.scope(*label, body)?,
            Stmt::Break(label) => self.break_to(*label),
            Stmt::Barrier(barrier, _) => self.barrier(*barrier),
        }
        Ok(())
    }

    /// Begins a block.
    pub(super) fn begin(&mut self, label: Id) {
        self.m.label(label);
        self.terminated = false;
    }

    /// Ends the current block with a branch, unless it has ended.
    pub(super) fn branch(&mut self, label: Id) {
        if !self.terminated {
            self.m.run(Op::Branch, &[label]);
            self.terminated = true;
        }
    }

    /// Ends the current block with the header of a selection: a merge instruction and a conditional
    /// branch.
    pub(super) fn branch_conditional(&mut self, condition: Id, [yes, no]: [Id; 2], merge: Id) {
        self.m.run(Op::SelectionMerge, &[merge, SelectionControl::NONE.bits()]);
        self.m.run(Op::BranchConditional, &[condition, yes, no]);
        self.terminated = true;
    }

    fn if_statement(
        &mut self,
        condition: Value,
        then_block: &Block,
        else_block: &Block,
    ) -> Result<()> {
        if then_block.is_empty() && else_block.is_empty() {
            return Ok(());
        }
        let condition = self.value(condition);
        let merge = self.m.id();
        let labels = [then_block, else_block]
            .map(|block| if block.is_empty() { merge } else { self.m.id() });
        self.branch_conditional(condition, labels, merge);
        for (label, block) in labels.into_iter().zip([then_block, else_block]) {
            if label != merge {
                self.begin(label);
                self.block(block)?;
                self.branch(merge);
            }
        }
        self.begin(merge);
        Ok(())
    }

    /// Returns whether the statement being emitted is in a loop that is not unrolled.
    pub(super) fn is_in_loop(&self) -> bool {
        self.constructs.iter().any(|construct| construct.is_loop)
    }

    /// Writes a loop.
    fn loop_(&mut self, label: Label, body: &Block, finite: bool) -> Result<()> {
        let [header, top, next, merge] = [(); 4].map(|()| self.m.id());
        self.branch(header);
        self.begin(header);
        self.m.run(Op::LoopMerge, &[merge, next, LoopControl::NONE.bits()]);
        self.branch(top);
        self.begin(top);
        if !finite && self.options.checked {
            if self.options.polls {
                self.poll(body, merge);
            } else {
                self.bound_iterations(merge);
            }
        }
        self.constructs.push(Construct { label, is_loop: true, merge, passing: Vec::new() });
        self.block(body)?;
        self.branch(next);
        self.begin(next);
        self.branch(header);
        self.close();
        Ok(())
    }

    /// Leaves a loop after 2^64 iterations: drivers may drop the code after a loop without an exit.
    fn bound_iterations(&mut self, merge: Id) {
        let u32 = self.m.u32_ty();
        let [low_at, high_at] = [(); 2].map(|()| self.m.local_word());
        let [low, high] = [low_at, high_at].map(|at| self.m.op(Op::Load, u32, &[at]));
        let [zero, one, max] = [0, 1, u32::MAX].map(|value| self.m.u32(value));
        let both = self.m.op(Op::BitwiseAnd, u32, &[low, high]);
        let done = self.op(Op::IEqual, Type::Bool, &[both, max]);
        let [exit, go_on] = [(); 2].map(|()| self.m.id());
        self.branch_conditional(done, [exit, go_on], go_on);
        self.begin(exit);
        self.branch(merge);
        self.begin(go_on);
        let next = self.m.op(Op::IAdd, u32, &[low, one]);
        let carries = self.op(Op::IEqual, Type::Bool, &[next, zero]);
        let carry = self.m.op(Op::Select, u32, &[carries, one, zero]);
        let next_high = self.m.op(Op::IAdd, u32, &[high, carry]);
        self.m.run(Op::Store, &[low_at, next]);
        self.m.run(Op::Store, &[high_at, next_high]);
    }

    /// Unrolls a loop completely, without its exit test.
    fn unroll(&mut self, label: Label, body: &Block, unrolled: &UnrolledLoop) -> Result<()> {
        let parts = [&body[..unrolled.exit_branch], &body[unrolled.exit_branch + 1..]];
        let leaves = parts.iter().any(|part| leaves(part, label));
        if leaves {
            self.open_scope(label);
        }
        for _ in 0..unrolled.trip_count {
            for part in parts {
                self.block(part)?;
            }
            if self.terminated {
                break;
            }
        }
        if leaves {
            self.close_scope();
        }
        Ok(())
    }

    fn scope(&mut self, label: Label, body: &Block) -> Result<()> {
        let (last, rest) = match body.split_last() {
            Some((Stmt::Break(of), rest)) if *of == label => (true, rest),
            _ => (false, body.as_slice()),
        };
        if !leaves(rest, label) {
            return self.block(rest);
        }
        self.open_scope(label);
        self.block(if last { rest } else { body })?;
        self.close_scope();
        Ok(())
    }

    fn open_scope(&mut self, label: Label) {
        let [only, merge] = [(); 2].map(|()| self.m.id());
        let zero = self.m.u32(0);
        self.m.run(Op::SelectionMerge, &[merge, SelectionControl::NONE.bits()]);
        self.m.run(Op::Switch, &[zero, only]);
        self.begin(only);
        self.constructs.push(Construct { label, is_loop: false, merge, passing: Vec::new() });
    }

    fn close_scope(&mut self) {
        let merge = self.constructs.last().map_or(0, |scope| scope.merge);
        self.branch(merge);
        self.close();
    }

    /// Begins the merge block of the innermost construct, and goes on leaving outer ones.
    fn close(&mut self) {
        let Some(construct) = self.constructs.pop() else { return };
        self.begin(construct.merge);
        for label in construct.passing {
            let flag = self.leaving[label.0 as usize];
            let condition = self.op(Op::Load, Type::Bool, &[flag]);
            let [exit, go_on] = [(); 2].map(|()| self.m.id());
            self.branch_conditional(condition, [exit, go_on], go_on);
            self.begin(exit);
            self.break_to(label);
            self.begin(go_on);
        }
    }

    /// Ends the current block by leaving a construct.
    fn break_to(&mut self, label: Label) {
        if label == Label::KERNEL {
            self.m.run(Op::Return, &[]);
            self.terminated = true;
            return;
        }
        let at = self.constructs.iter().position(|construct| construct.label == label);
        let at = at.expect("what is left is around the statement");
        let inner = &self.constructs[at + 1..];
        let loop_within = inner.iter().rposition(|construct| construct.is_loop);
        let hop = match loop_within {
            Some(nth) => Some(at + 1 + nth),
            None if self.constructs[at].is_loop || inner.is_empty() => None,
            None => Some(self.constructs.len() - 1),
        };
        let Some(hop) = hop else {
            self.set_leaving(label, false);
            self.branch(self.constructs[at].merge);
            return;
        };
        if self.leaving[label.0 as usize] == 0 {
            let bool = self.m.bool_ty();
            let no = self.m.null(bool);
            self.leaving[label.0 as usize] = self.m.local(bool, no);
        }
        self.set_leaving(label, true);
        let construct = &mut self.constructs[hop];
        if !construct.passing.contains(&label) {
            construct.passing.push(label);
        }
        self.branch(self.constructs[hop].merge);
    }

    /// Sets the flag of a label, if it has one.
    fn set_leaving(&mut self, label: Label, leaving: bool) {
        let flag = self.leaving[label.0 as usize];
        if flag != 0 {
            let value = self.constant(crate::kir::Const::bool(leaving));
            self.m.run(Op::Store, &[flag, value]);
        }
    }

    /// Waits for the workgroup or the subgroup, and orders their memory.
    pub(super) fn barrier(&mut self, barrier: Barrier) {
        let scope = match barrier {
            Barrier::Workgroup => Scope::Workgroup,
            Barrier::Subgroup => Scope::Subgroup,
        };
        let mut semantics = MemorySemantics::ACQUIRE_RELEASE | MemorySemantics::WORKGROUP_MEMORY;
        if self.storage_is_shared {
            semantics |= MemorySemantics::UNIFORM_MEMORY;
        }
        if self.has_matrices {
            semantics |= MemorySemantics::MAKE_AVAILABLE | MemorySemantics::MAKE_VISIBLE;
        }
        if scope == Scope::Subgroup {
            self.m.require(spirv::Capability::GroupNonUniform);
        }
        let [scope, semantics] = [scope as u32, semantics.bits()].map(|word| self.m.u32(word));
        self.m.run(Op::ControlBarrier, &[scope, scope, semantics]);
    }
}

/// Whether statements leave a construct.
fn leaves(block: &[Stmt], label: Label) -> bool {
    any_stmt(block, &mut |stmt| *stmt == Stmt::Break(label))
}
