//! Branches that contain only a loop or scope exit, as in the condition of most loops.

use scry_ir::kir::{BinaryOp, Block, Inst, Kir, Label, Stmt, Uniformity, Value, Var, Variability};

/// A branch that contains only an exit.
pub(crate) struct ExitBranch<'a> {
    pub(crate) label: Label,
    /// Lanes exit if the condition has this value.
    pub(crate) when: bool,
    /// Copies of uniform variables to varying ones, executed by the lanes that exit: pairs of a
    /// read and an assignment.
    pub(crate) copies: &'a [Stmt],
}

/// Matches an `If` that is an exit branch.
pub(crate) fn exit_branch<'a>(
    kir: &Kir,
    uniformity: &Uniformity,
    [then_block, else_block]: [&'a Block; 2],
) -> Option<ExitBranch<'a>> {
    let (block, when) = match (then_block.as_slice(), else_block.as_slice()) {
        ([], block) => (block, false),
        (block, []) => (block, true),
        _ => return None,
    };
    let (Stmt::Break(label), copies) = block.split_last()? else { return None };
    let all_copies = copies.chunks(2).all(|pair| match_copy(kir, uniformity, pair).is_some());
    all_copies.then_some(ExitBranch { label: *label, when, copies })
}

/// Matches a copy of a uniform 32-bit variable to a varying one. Returns destination and source.
pub(crate) fn match_copy(kir: &Kir, uniformity: &Uniformity, pair: &[Stmt]) -> Option<(Var, Var)> {
    let [Stmt::Let(read), Stmt::Set(to, value)] = pair else { return None };
    let Inst::Get(from) = *kir.inst(*read) else { return None };
    let varying = uniformity.var(*to).variability == Variability::Varying;
    let uniform = uniformity.var(from).variability == Variability::Uniform;
    let is_32_bit = kir.ty(*read).size() == 4;
    (value == read && varying && uniform && is_32_bit).then_some((*to, from))
}

/// Splits a condition into a uniform operand, which alone can make all lanes leave, and the other
/// operand. Returns `None` for other conditions.
pub(crate) fn split_condition(
    kir: &Kir,
    uniformity: &Uniformity,
    branch: &ExitBranch<'_>,
    condition: Value,
) -> Option<[Value; 2]> {
    let op = if branch.when { BinaryOp::Or } else { BinaryOp::And };
    let uniform = |value: Value| uniformity.value(value) == Variability::Uniform;
    match *kir.inst(condition) {
        Inst::Binary(found, a, b) if found == op && uniform(a) && !uniform(b) => Some([a, b]),
        Inst::Binary(found, a, b) if found == op && uniform(b) && !uniform(a) => Some([b, a]),
        _ => None,
    }
}
