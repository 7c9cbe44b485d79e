//! Finds partially assigned variables: those that may be read by invocations which were not active
//! at the latest assignment.
//!
//! A forward data-flow analysis of *gaps*: the variables whose latest assignment, by whichever
//! invocations, may have missed some that are active now. An assignment closes a variable's gap.
//! Where control flow reconverges, the set is the union over the paths; and if it was divergent, in
//! a branch, or because invocations left a loop or scope at different times, then all variables
//! assigned meanwhile have a gap.
//!
//! The set at a loop's end flows back to its beginning: labels and loops keep their sets, and the
//! analysis iterates to a fixed point.

use super::Variability;
use super::propagate::Flow;
use crate::kir::{Block, Inst, Kir, Label, Stmt, Value, Var};

/// The results, over all iterations of the analysis.
pub(super) struct Cover<'a> {
    kir: &'a Kir,
    /// For each label, the position where the invocations that meet at its end may first be apart;
    /// `NEVER` if they stay together.
    apart: Vec<usize>,
    /// For each loop's label, the gaps at the end of its body.
    iterations: Vec<Gaps>,
    partial: Vec<bool>,
}

const NEVER: usize = usize::MAX;

/// The gaps at a point of the kernel.
#[derive(Clone)]
struct Gaps {
    /// Whether the point can be reached; if not there are no gaps.
    reached: bool,
    /// A bit for each variable.
    bits: Vec<u64>,
}

/// One walk.
struct Walk<'a, 'b> {
    cover: &'b mut Cover<'a>,
    flow: &'b mut Flow<'a>,
    changed: bool,
    /// Statements before this one, as they stand in the kernel.
    position: usize,
    /// Assignments so far, and where.
    sets: Vec<(usize, Var)>,
    /// The statements that enclose the current one, the outermost first.
    around: Vec<Around>,
    /// For each open label, the gaps where it is left.
    exits: Vec<Gaps>,
}

/// A statement with blocks.
struct Around {
    position: usize,
    kind: Kind,
}

enum Kind {
    Branch { divergent: bool },
    Loop(Label),
    Scope(Label),
}

impl<'a> Cover<'a> {
    pub(super) fn new(kir: &'a Kir) -> Self {
        let labels = kir.labels as usize;
        Self {
            kir,
            apart: vec![NEVER; labels],
            iterations: vec![Gaps::unreached(); labels],
            partial: vec![false; kir.vars.len()],
        }
    }

    /// Walks over the kernel, and raises classes as it goes; whether anything new was found.
    pub(super) fn pass(&mut self, flow: &mut Flow<'a>) -> bool {
        let exits = vec![Gaps::unreached(); self.apart.len()];
        let mut gaps = Gaps::none(self.kir.vars.len());
        let kir = self.kir;
        let mut walk = Walk {
            cover: self,
            flow,
            changed: false,
            position: 0,
            sets: Vec::new(),
            around: Vec::new(),
            exits,
        };
        walk.block(&kir.body, &mut gaps);
        walk.changed
    }

    /// Whether a variable was found to be partial.
    pub(super) fn is_partial(&self, var: Var) -> bool {
        self.partial[var.index()]
    }
}

impl Walk<'_, '_> {
    /// Goes through a block, with the gaps at its beginning; leaves those at its end.
    fn block(&mut self, block: &Block, gaps: &mut Gaps) {
        for stmt in block {
            self.position += 1;
            match stmt {
                Stmt::Let(value) => self.read(*value, gaps),
                Stmt::Set(var, _) => {
                    self.sets.push((self.position, *var));
                    gaps.close(*var);
                }
                Stmt::If { condition, then_block, else_block } => {
                    let divergent = self.flow.classes().value(*condition) != Variability::Uniform;
                    self.branch(divergent, [then_block, else_block], gaps);
                }
                Stmt::Loop { label, body, .. } => self.repeat(*label, body, gaps),
                Stmt::Scope { label, body } => self.scope(*label, body, gaps),
                Stmt::Leave(label) => self.leave(*label, gaps),
                Stmt::Store { .. } | Stmt::Barrier(_) => {}
            }
        }
    }

    fn read(&mut self, value: Value, gaps: &Gaps) {
        let Inst::Get(var) = *self.cover.kir.inst(value) else { return };
        if gaps.has(var) && !self.cover.partial[var.index()] {
            self.cover.partial[var.index()] = true;
            // Applied at once, so that later statements see it in the same iteration.
            self.flow.raise_var(var, Variability::Varying);
            self.flow.settle();
            self.changed = true;
        }
    }

    fn branch(&mut self, divergent: bool, [then_block, else_block]: [&Block; 2], gaps: &mut Gaps) {
        let position = self.position;
        self.around.push(Around { position, kind: Kind::Branch { divergent } });
        let mut others = gaps.clone();
        self.block(then_block, gaps);
        if divergent {
            self.open_since(position, &mut others);
        }
        self.block(else_block, &mut others);
        gaps.join(&others);
        if divergent {
            self.open_since(position, gaps);
        }
        self.around.pop();
    }

    fn repeat(&mut self, label: Label, body: &Block, gaps: &mut Gaps) {
        let index = label.0 as usize;
        gaps.join(&self.cover.iterations[index]);
        self.inside(Kind::Loop(label), body, gaps);
        self.changed |= self.cover.iterations[index].join(gaps);
        *gaps = std::mem::replace(&mut self.exits[index], Gaps::unreached());
        self.open_since(self.cover.apart[index], gaps);
    }

    fn scope(&mut self, label: Label, body: &Block, gaps: &mut Gaps) {
        let index = label.0 as usize;
        self.inside(Kind::Scope(label), body, gaps);
        gaps.join(&std::mem::replace(&mut self.exits[index], Gaps::unreached()));
        self.open_since(self.cover.apart[index], gaps);
    }

    fn inside(&mut self, kind: Kind, body: &Block, gaps: &mut Gaps) {
        self.around.push(Around { position: self.position, kind });
        self.block(body, gaps);
        self.around.pop();
    }

    fn leave(&mut self, label: Label, gaps: &mut Gaps) {
        // Invocations that exit the kernel never reconverge.
        if label != Label::KERNEL {
            let apart = self.apart_at(label);
            let known = &mut self.cover.apart[label.0 as usize];
            if apart < *known {
                *known = apart;
                self.changed = true;
            }
            self.exits[label.0 as usize].join(gaps);
        }
        *gaps = Gaps::unreached();
    }

    /// If this statement may be executed by some only of the invocations that meet at the end of a
    /// label, where they may first be apart; else `NEVER`.
    fn apart_at(&self, target: Label) -> usize {
        let mut apart = NEVER;
        for Around { position, kind } in self.around.iter().rev() {
            match *kind {
                Kind::Branch { divergent: true } => apart = *position,
                Kind::Branch { divergent: false } => {}
                // The beginning of a loop is executed again in the next iteration, without those
                // that left.
                Kind::Loop(label) => {
                    let together = apart == NEVER && self.cover.apart[label.0 as usize] == NEVER;
                    apart = if together { NEVER } else { *position };
                    if label == target {
                        break;
                    }
                }
                Kind::Scope(label) if label == target => break,
                Kind::Scope(label) => {
                    let first = self.cover.apart[label.0 as usize];
                    if first <= self.position {
                        apart = apart.min(first);
                    }
                }
            }
        }
        apart
    }

    /// Opens a gap for each variable that was assigned at a position or after it.
    fn open_since(&self, position: usize, gaps: &mut Gaps) {
        if position == NEVER || !gaps.reached {
            return;
        }
        let first = self.sets.partition_point(|(at, _)| *at < position);
        self.sets[first..].iter().for_each(|(_, var)| gaps.open(*var));
    }
}

impl Gaps {
    fn none(vars: usize) -> Self {
        Self { reached: true, bits: vec![0; vars.div_ceil(64)] }
    }

    const fn unreached() -> Self {
        Self { reached: false, bits: Vec::new() }
    }

    fn has(&self, var: Var) -> bool {
        self.reached && self.bits[var.index() / 64] >> (var.0 % 64) & 1 != 0
    }

    fn open(&mut self, var: Var) {
        self.bits[var.index() / 64] |= 1 << (var.0 % 64);
    }

    fn close(&mut self, var: Var) {
        if self.reached {
            self.bits[var.index() / 64] &= !(1 << (var.0 % 64));
        }
    }

    /// Adds the gaps of another way to the same point; whether there are more now.
    fn join(&mut self, other: &Self) -> bool {
        if !other.reached {
            return false;
        }
        if !self.reached {
            self.clone_from(other);
            return true;
        }
        let mut more = false;
        for (bits, others) in self.bits.iter_mut().zip(&other.bits) {
            more |= others & !*bits != 0;
            *bits |= others;
        }
        more
    }
}
