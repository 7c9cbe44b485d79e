//! Branches in which lanes leave, and nothing else: the way out of most loops.

use scry_ir::kir::{BinaryOp, Block, Inst, Kir, Label, Stmt, Uniformity, Value, Var, Variability};

/// A branch of this kind.
pub(crate) struct Leaving<'a> {
    pub(crate) label: Label,
    /// Whether lanes leave where the condition holds.
    pub(crate) when: bool,
    /// Assignments of uniform variables to others, as lanes leave: a read and an assignment each.
    pub(crate) kept: &'a [Stmt],
}

/// A branch as one of this kind.
pub(crate) fn leaving<'a>(
    kir: &Kir,
    uniformity: &Uniformity,
    [then_block, else_block]: [&'a Block; 2],
) -> Option<Leaving<'a>> {
    let (block, when) = match (then_block.as_slice(), else_block.as_slice()) {
        ([], block) => (block, false),
        (block, []) => (block, true),
        _ => return None,
    };
    let (Stmt::Leave(label), kept) = block.split_last()? else { return None };
    let copies = kept.chunks(2).all(|pair| copy(kir, uniformity, pair).is_some());
    copies.then_some(Leaving { label: *label, when, kept })
}

/// The variable that is assigned, and the uniform one that it is assigned.
pub(crate) fn copy(kir: &Kir, uniformity: &Uniformity, pair: &[Stmt]) -> Option<(Var, Var)> {
    let [Stmt::Let(read), Stmt::Set(to, value)] = pair else { return None };
    let Inst::Get(from) = *kir.inst(*read) else { return None };
    let differs = uniformity.var(*to).class == Variability::Varying;
    let uniform = uniformity.var(from).class == Variability::Uniform;
    let words = kir.ty(*read).size() == 4;
    (value == read && differs && uniform && words).then_some((*to, from))
}

/// The parts of a condition, of which one by itself can have all lanes leave: that one, which is
/// uniform, and the other.
pub(crate) fn parts(
    kir: &Kir,
    uniformity: &Uniformity,
    leaving: &Leaving<'_>,
    condition: Value,
) -> Option<[Value; 2]> {
    let op = if leaving.when { BinaryOp::Or } else { BinaryOp::And };
    let uniform = |value: Value| uniformity.value(value) == Variability::Uniform;
    match *kir.inst(condition) {
        Inst::Binary(found, a, b) if found == op && uniform(a) && !uniform(b) => Some([a, b]),
        Inst::Binary(found, a, b) if found == op && uniform(b) && !uniform(a) => Some([b, a]),
        _ => None,
    }
}
