//! Finds partially assigned variables: those that may be read by an invocation that was inactive at
//! the latest assignment. They are called partial here.
//!
//! A forward data-flow analysis. A variable is partial at a point of the kernel if some invocation
//! that is active there may have been inactive at the latest assignment by any invocation. An
//! assignment removes the variable from the set of partial variables. At a join, the set is the
//! union over the paths. If control flow diverged before the join, by a branch or by exits from a
//! loop or scope, all variables that were assigned since then are added.
//!
//! The set at the end of a loop flows back to its start: the sets are kept per loop, and the
//! analysis iterates to a fixed point.

use super::Variability;
use super::propagate::Flow;
use crate::kir::{Block, Inst, Kir, Label, Stmt, Value, Var};

/// The results of the analysis, over all its iterations.
pub(super) struct PartialVars<'a> {
    kir: &'a Kir,
    /// For each label, the first position at which the invocations that meet at the end of its loop
    /// or scope may have diverged; `NEVER` if they do not.
    diverges_at: Vec<usize>,
    /// For the label of each loop, the partial variables at the end of its body.
    loop_ends: Vec<PartialSet>,
    /// Whether each variable is partial at some read.
    is_partial: Vec<bool>,
}

/// The position of a divergence that does not occur.
const NEVER: usize = usize::MAX;

/// The partial variables at a point of the kernel.
#[derive(Clone)]
struct PartialSet {
    /// Whether the point is reachable; if not, the set is empty.
    reachable: bool,
    /// A bit for each variable.
    bits: Vec<u64>,
}

/// One iteration over the kernel.
struct Walk<'a, 'b> {
    results: &'b mut PartialVars<'a>,
    flow: &'b mut Flow<'a>,
    /// Whether the results changed.
    changed: bool,
    /// Number of the current statement in program order, from 1.
    position: usize,
    /// Assignments so far, with their positions.
    assigned: Vec<(usize, Var)>,
    /// The statements that enclose the current one, the outermost first.
    enclosing: Vec<Enclosing>,
    /// For each label, the union of the sets at the exits so far.
    exits: Vec<PartialSet>,
}

/// A statement with blocks.
struct Enclosing {
    position: usize,
    kind: Kind,
}

enum Kind {
    Branch { divergent: bool },
    Loop(Label),
    Scope(Label),
}

impl<'a> PartialVars<'a> {
    pub(super) fn new(kir: &'a Kir) -> Self {
        let labels = kir.labels as usize;
        Self {
            kir,
            diverges_at: vec![NEVER; labels],
            loop_ends: vec![PartialSet::unreachable(); labels],
            is_partial: vec![false; kir.vars.len()],
        }
    }

    /// Iterates once over the kernel, and raises the variability of partial variables. Returns
    /// whether the results changed.
    pub(super) fn iterate(&mut self, flow: &mut Flow<'a>) -> bool {
        let exits = vec![PartialSet::unreachable(); self.diverges_at.len()];
        let mut partial = PartialSet::empty(self.kir.vars.len());
        let kir = self.kir;
        let mut walk = Walk {
            results: self,
            flow,
            changed: false,
            position: 0,
            assigned: Vec::new(),
            enclosing: Vec::new(),
            exits,
        };
        walk.block(&kir.body, &mut partial);
        walk.changed
    }

    /// Returns whether a variable is partial at some read.
    pub(super) fn is_partial(&self, var: Var) -> bool {
        self.is_partial[var.index()]
    }
}

impl Walk<'_, '_> {
    /// Processes a block. `partial` is the set at the start of the block, and is changed to that at
    /// its end.
    fn block(&mut self, block: &Block, partial: &mut PartialSet) {
        for stmt in block {
            self.position += 1;
            match stmt {
                Stmt::Let(value) => self.read(*value, partial),
                Stmt::Set(var, _) => {
                    self.assigned.push((self.position, *var));
                    partial.remove(*var);
                }
                Stmt::If { condition, then_block, else_block, .. } => {
                    let divergent = self.flow.current().value(*condition) != Variability::Uniform;
                    self.branch(divergent, [then_block, else_block], partial);
                }
                Stmt::Loop { label, body, .. } => self.loop_(*label, body, partial),
                Stmt::Scope { label, body } => self.scope(*label, body, partial),
                Stmt::Break(label) => self.break_to(*label, partial),
                Stmt::Store { .. } | Stmt::MatrixStore { .. } | Stmt::Barrier(..) => {}
            }
        }
    }

    fn read(&mut self, value: Value, partial: &PartialSet) {
        let Inst::Get(var) = *self.results.kir.inst(value) else { return };
        if partial.contains(var) && !self.results.is_partial[var.index()] {
            self.results.is_partial[var.index()] = true;
            // Propagated at once, so that it affects later statements in the same iteration.
            self.flow.raise_var(var, Variability::Varying);
            self.flow.propagate();
            self.changed = true;
        }
    }

    fn branch(
        &mut self,
        divergent: bool,
        [then_block, else_block]: [&Block; 2],
        partial: &mut PartialSet,
    ) {
        let position = self.position;
        self.enclosing.push(Enclosing { position, kind: Kind::Branch { divergent } });
        let mut else_partial = partial.clone();
        self.block(then_block, partial);
        // In lockstep, the `else` block is executed after the `then` block.
        if divergent {
            self.add_assigned_since(position, &mut else_partial);
        }
        self.block(else_block, &mut else_partial);
        partial.join(&else_partial);
        if divergent {
            self.add_assigned_since(position, partial);
        }
        self.enclosing.pop();
    }

    fn loop_(&mut self, label: Label, body: &Block, partial: &mut PartialSet) {
        let index = label.0 as usize;
        partial.join(&self.results.loop_ends[index]);
        self.enclosed_block(Kind::Loop(label), body, partial);
        self.changed |= self.results.loop_ends[index].join(partial);
        *partial = std::mem::replace(&mut self.exits[index], PartialSet::unreachable());
        self.add_assigned_since(self.results.diverges_at[index], partial);
    }

    fn scope(&mut self, label: Label, body: &Block, partial: &mut PartialSet) {
        let index = label.0 as usize;
        self.enclosed_block(Kind::Scope(label), body, partial);
        partial.join(&std::mem::replace(&mut self.exits[index], PartialSet::unreachable()));
        self.add_assigned_since(self.results.diverges_at[index], partial);
    }

    fn enclosed_block(&mut self, kind: Kind, body: &Block, partial: &mut PartialSet) {
        self.enclosing.push(Enclosing { position: self.position, kind });
        self.block(body, partial);
        self.enclosing.pop();
    }

    fn break_to(&mut self, label: Label, partial: &mut PartialSet) {
        // Invocations that exit the kernel never reconverge.
        if label != Label::KERNEL {
            let diverges_at = self.divergence_of_exit(label);
            let first = &mut self.results.diverges_at[label.0 as usize];
            if diverges_at < *first {
                *first = diverges_at;
                self.changed = true;
            }
            self.exits[label.0 as usize].join(partial);
        }
        *partial = PartialSet::unreachable();
    }

    /// Returns the first position at which the invocations that exit `target` here may have
    /// diverged from others that meet them at its end; `NEVER` if all of them exit here.
    fn divergence_of_exit(&self, target: Label) -> usize {
        let mut diverges_at = NEVER;
        for Enclosing { position, kind } in self.enclosing.iter().rev() {
            match *kind {
                Kind::Branch { divergent: true } => diverges_at = *position,
                Kind::Branch { divergent: false } => {}
                // Invocations that have not left the loop execute its start again in the next
                // iteration: they may have diverged from there on.
                Kind::Loop(label) => {
                    let converged =
                        diverges_at == NEVER && self.results.diverges_at[label.0 as usize] == NEVER;
                    diverges_at = if converged { NEVER } else { *position };
                    if label == target {
                        break;
                    }
                }
                Kind::Scope(label) if label == target => break,
                Kind::Scope(label) => {
                    let first = self.results.diverges_at[label.0 as usize];
                    if first <= self.position {
                        diverges_at = diverges_at.min(first);
                    }
                }
            }
        }
        diverges_at
    }

    /// Adds the variables that were assigned at or after a position.
    fn add_assigned_since(&self, position: usize, partial: &mut PartialSet) {
        if position == NEVER || !partial.reachable {
            return;
        }
        let first = self.assigned.partition_point(|(at, _)| *at < position);
        self.assigned[first..].iter().for_each(|(_, var)| partial.add(*var));
    }
}

impl PartialSet {
    fn empty(vars: usize) -> Self {
        Self { reachable: true, bits: vec![0; vars.div_ceil(64)] }
    }

    const fn unreachable() -> Self {
        Self { reachable: false, bits: Vec::new() }
    }

    fn contains(&self, var: Var) -> bool {
        self.reachable && self.bits[var.index() / 64] >> (var.0 % 64) & 1 != 0
    }

    fn add(&mut self, var: Var) {
        self.bits[var.index() / 64] |= 1 << (var.0 % 64);
    }

    fn remove(&mut self, var: Var) {
        if self.reachable {
            self.bits[var.index() / 64] &= !(1 << (var.0 % 64));
        }
    }

    /// Adds the set of another path to the same point. Returns whether the set has grown.
    fn join(&mut self, other: &Self) -> bool {
        if !other.reachable {
            return false;
        }
        if !self.reachable {
            self.clone_from(other);
            return true;
        }
        let mut grown = false;
        for (bits, others) in self.bits.iter_mut().zip(&other.bits) {
            grown |= others & !*bits != 0;
            *bits |= others;
        }
        grown
    }
}
