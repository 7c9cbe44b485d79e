//! Branches in which lanes leave, and nothing else: the way out of most loops.

use scry_ir::kir::{BinaryOp, Block, Class, Facts, Inst, Kir, Label, Stmt, Value, Var};

use super::Emitter;
use super::values::Home;
use crate::code::{Exit, Step};

/// A branch of this kind.
pub(super) struct Leaving<'a> {
    pub(super) label: Label,
    /// Whether lanes leave where the condition holds.
    when: bool,
    /// Assignments of uniform variables to others, as lanes leave: a read and an assignment each.
    kept: &'a [Stmt],
}

/// A branch as one of this kind.
pub(super) fn leaving<'a>(
    kir: &Kir,
    facts: &Facts,
    [accept, reject]: [&'a Block; 2],
) -> Option<Leaving<'a>> {
    let (block, when) = match (accept.as_slice(), reject.as_slice()) {
        ([], block) => (block, false),
        (block, []) => (block, true),
        _ => return None,
    };
    let (Stmt::Leave(label), kept) = block.split_last()? else { return None };
    let copies = kept.chunks(2).all(|pair| copy(kir, facts, pair).is_some());
    copies.then_some(Leaving { label: *label, when, kept })
}

/// The variable that is assigned, and the uniform one that it is assigned.
fn copy(kir: &Kir, facts: &Facts, pair: &[Stmt]) -> Option<(Var, Var)> {
    let [Stmt::Let(read), Stmt::Set(to, value)] = pair else { return None };
    let Inst::Get(from) = *kir.inst(*read) else { return None };
    let differs = facts.var(*to).class == Class::Varying;
    let uniform = facts.var(from).class == Class::Uniform;
    let words = kir.ty(*read).size() == 4;
    (value == read && differs && uniform && words).then_some((*to, from))
}

/// The parts of a condition, of which one by itself can have all lanes leave: that one, which is
/// uniform, and the other.
pub(super) fn parts(
    kir: &Kir,
    facts: &Facts,
    leaving: &Leaving<'_>,
    condition: Value,
) -> Option<[Value; 2]> {
    let op = if leaving.when { BinaryOp::Or } else { BinaryOp::And };
    let uniform = |value: Value| facts.value(value) == Class::Uniform;
    match *kir.inst(condition) {
        Inst::Binary(found, a, b) if found == op && uniform(a) && !uniform(b) => Some([a, b]),
        Inst::Binary(found, a, b) if found == op && uniform(b) && !uniform(a) => Some([b, a]),
        _ => None,
    }
}

impl Emitter<'_> {
    /// A branch in which lanes leave.
    pub(super) fn drop_lanes(&mut self, condition: Value, leaving: &Leaving<'_>) {
        let parts = parts(self.kir, self.facts, leaving, condition);
        let parts = parts.filter(|_| self.lives.left[condition.index()]);
        let (all, condition) = match parts {
            Some([all, some]) => (Some(self.uniform(all)), some),
            None => (None, condition),
        };
        let number = self.number(condition);
        let condition = self.lanes(condition).start;
        let mut keep = Vec::new();
        for pair in leaving.kept.chunks(2) {
            if let Some((to, from)) = copy(self.kir, self.facts, pair)
                && let (Home::Lanes(to), Home::Scalar(from)) = (self.var(to), self.var(from))
            {
                keep.push((to, from));
            }
        }
        let (masks, keep) = (self.left_masks(leaving.label), keep.into());
        let step = self.steps();
        let exit = Exit { number, condition, all, flip: leaving.when.into(), masks, keep };
        self.push(Step::Drop { exit: Box::new(exit), none: 0 });
        self.dies(step);
        // The branch has two sides and some statements, as `lives` counts.
        (0..leaving.kept.len() + 3).for_each(|_| self.advance());
    }
}
