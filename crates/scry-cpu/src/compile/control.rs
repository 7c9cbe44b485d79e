//! Statements and control flow.
//!
//! Lanes diverge at an `If` with a varying condition, and if some leave a loop or scope that others
//! stay in. The active lanes of each such construct are in a mask register, one for each nesting
//! depth. A lane that leaves is removed from the masks of all constructs that it leaves, but not
//! from the mask that was active at their entry. If the mask becomes empty, execution continues
//! where inactive lanes may wait: at the else block of an `If`, or at the end of an `If`, a loop or
//! a scope.

use scry_ir::kir::{Block, Label, Stmt, Type, Value, Variability};

use super::analysis::exit_branches;
use super::emitter::{Construct, Emitter};
use crate::code::{Side, Step};

impl Emitter<'_> {
    /// Compiles the whole kernel.
    pub(super) fn emit_kernel(&mut self) {
        self.open(Some(Label::KERNEL), false);
        let kir = self.kir;
        self.block(&kir.body);
        let end = self.here();
        if let Some(construct) = self.constructs.pop() {
            self.patch(&construct.exits, end);
            self.patch(&construct.empty_exits, end);
        }
        self.push(Step::End);
    }

    fn block(&mut self, block: &Block) {
        for (index, stmt) in block.iter().enumerate() {
            self.stmt(stmt, &block[index + 1..]);
        }
    }

    fn stmt(&mut self, stmt: &Stmt, rest: &[Stmt]) {
        self.advance();
        match stmt {
            Stmt::Let(value) => self.inst(*value, rest),
            Stmt::Set(var, value) => self.assign(*var, *value),
            Stmt::Store { place, values, .. } => self.store(*place, values),
            Stmt::MatrixStore { .. } => unreachable!("matrices are replaced by fragments"),
            Stmt::If { condition, then_block, else_block, .. } => {
                self.if_(*condition, then_block, else_block)
            }
            Stmt::Loop { label, body, .. } => self.loop_(*label, body),
            Stmt::Scope { label, body } => self.scope(*label, body),
            Stmt::Break(label) => self.break_to(*label),
            // Lockstep execution: all lanes that reach a barrier reach it together.
            Stmt::Barrier(..) => {}
        }
    }

    /// Advances to the next position, as numbered by `liveness`.
    pub(super) fn advance(&mut self) {
        self.registers.expire(self.position);
        self.position += 1;
    }

    fn open(&mut self, label: Option<Label>, has_mask: bool) {
        let construct = Construct {
            label,
            depth: self.depth,
            has_mask,
            exits: Vec::new(),
            empty_exits: Vec::new(),
        };
        self.constructs.push(construct);
    }

    /// Returns the mask register of a depth; allocates it at the first use.
    fn mask(&mut self, depth: usize) -> u32 {
        while self.masks.len() <= depth {
            let mask = self.registers.allocate_permanent(Type::Bool);
            self.masks.push(mask);
        }
        self.masks[depth]
    }

    fn if_(&mut self, condition: Value, then_block: &Block, else_block: &Block) {
        if self.variability(condition) == Variability::Uniform {
            self.uniform_if(condition, then_block, else_block);
        } else {
            self.divergent_if(condition, then_block, else_block);
        }
    }

    fn uniform_if(&mut self, condition: Value, then_block: &Block, else_block: &Block) {
        let condition = self.uniform_scalar(condition);
        let skip_then = self.next_step();
        self.push(Step::JumpIfNot { condition, to: 0 });
        self.block(then_block);
        self.advance();
        if else_block.is_empty() {
            let here = self.here();
            self.patch(&[skip_then], here);
        } else {
            let skip_else = self.next_step();
            self.push(Step::Jump { to: 0 });
            let else_start = self.here();
            self.patch(&[skip_then], else_start);
            self.block(else_block);
            let here = self.here();
            self.patch(&[skip_else], here);
        }
        self.advance();
    }

    fn divergent_if(&mut self, condition: Value, then_block: &Block, else_block: &Block) {
        if let Some(exit_branch) =
            exit_branches::exit_branch(self.kir, self.uniformity, [then_block, else_block])
        {
            return self.emit_exit_branch(condition, &exit_branch);
        }
        let number = self.condition_number(condition);
        let condition = self.lanes(condition);
        debug_assert_eq!(condition.step, 1, "a varying condition has lanes");
        let condition = condition.start;
        let (from, into) = (self.mask(self.depth), self.mask(self.depth + 1));
        let side = |block| Side { condition, number, from, into, needs_mask: may_diverge(block) };
        let depth = self.depth as u32;
        self.open(None, true);
        self.depth += 1;
        let split = self.next_step();
        self.push(Step::Split { side: side(then_block), depth, if_empty: 0 });
        self.block(then_block);
        self.advance();
        let mut waiting = vec![split];
        if !else_block.is_empty() {
            waiting.extend(self.take_empty_exits());
            let else_start = self.here();
            self.patch(&waiting, else_start);
            waiting = vec![self.next_step()];
            self.push(Step::Else { side: side(else_block), if_empty: 0 });
            self.block(else_block);
        }
        self.advance();
        waiting.extend(self.take_empty_exits());
        let join = self.here();
        self.patch(&waiting, join);
        self.reconverge();
    }

    /// Returns the masks of all constructs that a `Break` exits.
    pub(super) fn exited_masks(&mut self, label: Label) -> Box<[u32]> {
        // Lanes that return are removed from all masks, including that of the kernel.
        let first = match self.constructs.iter().find(|open| open.label == Some(label)) {
            Some(open) if label != Label::KERNEL => open.depth + usize::from(open.has_mask),
            _ => 0,
        };
        (first..=self.depth).map(|depth| self.mask(depth)).collect()
    }

    fn take_empty_exits(&mut self) -> Vec<usize> {
        self.constructs
            .last_mut()
            .map(|open| std::mem::take(&mut open.empty_exits))
            .unwrap_or_default()
    }

    /// Closes a construct with a mask. Execution continues with the lanes that entered the
    /// construct, except those that have left an outer one.
    fn reconverge(&mut self) {
        self.constructs.pop();
        self.depth -= 1;
        let mask = self.mask(self.depth);
        let step = self.next_step();
        self.push(Step::Join { depth: self.depth as u32, mask, if_empty: 0 });
        self.jump_if_empty(step);
    }

    /// Makes a step jump, if the active mask is empty, to where inactive lanes may wait.
    pub(super) fn jump_if_empty(&mut self, step: usize) {
        let waiting = self.constructs.iter().rposition(|open| open.has_mask).unwrap_or(0);
        self.constructs[waiting].empty_exits.push(step);
    }

    fn loop_(&mut self, label: Label, body: &Block) {
        let has_mask = self.divergent_exits[label.0 as usize];
        self.enter(label, has_mask);
        let top = self.here();
        self.block(body);
        self.push(Step::JumpBack { to: top });
        self.advance();
        self.exit(has_mask);
    }

    fn scope(&mut self, label: Label, body: &Block) {
        let has_mask = self.divergent_exits[label.0 as usize];
        self.enter(label, has_mask);
        self.block(body);
        self.advance();
        self.exit(has_mask);
    }

    fn enter(&mut self, label: Label, has_mask: bool) {
        self.open(Some(label), has_mask);
        if has_mask {
            let depth = self.depth as u32;
            self.depth += 1;
            let into = self.mask(self.depth);
            self.push(Step::Enter { depth, into });
        }
    }

    fn exit(&mut self, has_mask: bool) {
        let end = self.here();
        let (exits, empty_exits) = match self.constructs.last_mut() {
            Some(open) => (std::mem::take(&mut open.exits), std::mem::take(&mut open.empty_exits)),
            None => return,
        };
        self.patch(&exits, end);
        self.patch(&empty_exits, end);
        if has_mask {
            self.reconverge();
        } else {
            self.constructs.pop();
        }
    }

    /// Compiles the exit of a construct: a jump if all of its lanes are active, else the removal of
    /// the active lanes from masks.
    fn break_to(&mut self, label: Label) {
        let Some(target) = self.constructs.iter().position(|open| open.label == Some(label)) else {
            debug_assert!(false, "{label} is not open");
            return;
        };
        let open = &self.constructs[target];
        let inner = open.depth + usize::from(open.has_mask);
        let step = self.next_step();
        if label != Label::KERNEL && self.depth == inner {
            self.push(Step::Jump { to: 0 });
            self.constructs[target].exits.push(step);
            return;
        }
        let masks = self.exited_masks(label);
        self.push(Step::Break { masks, to: 0 });
        self.jump_if_empty(step);
    }

    /// Returns the index of the next step, for [`Self::patch`].
    pub(super) fn next_step(&self) -> usize {
        self.code.steps.len()
    }

    /// Sets the jump target of steps.
    fn patch(&mut self, steps: &[usize], target: u32) {
        for step in steps {
            match &mut self.code.steps[*step] {
                Step::Jump { to } | Step::JumpIfNot { to, .. } | Step::Break { to, .. } => {
                    *to = target
                }
                Step::Split { if_empty, .. }
                | Step::Else { if_empty, .. }
                | Step::Exit { if_empty, .. }
                | Step::Join { if_empty, .. } => *if_empty = target,
                _ => debug_assert!(false, "step {step} does not jump"),
            }
        }
    }
}

/// Returns whether lanes may diverge in a block, or leave it.
fn may_diverge(block: &Block) -> bool {
    let stays = |stmt: &Stmt| {
        matches!(stmt, Stmt::Let(_) | Stmt::Set(..) | Stmt::Store { .. } | Stmt::Barrier(..))
    };
    !block.iter().all(stays)
}
