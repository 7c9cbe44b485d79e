//! Comparisons that can be evaluated on the coefficients of affine values.

use scry_ir::kir::{BinaryOp, Inst, Kir, Type, Uniformity, Value, Variability};

use crate::code::Comparison;

/// Returns the comparison that computes `value`, if it can be evaluated on coefficients: the
/// operator, whether it is signed, and the operands in the operator's order.
pub(crate) fn comparison(
    kir: &Kir,
    uniformity: &Uniformity,
    value: Value,
) -> Option<(Comparison, bool, [Value; 2])> {
    let Inst::Binary(op, a, b) = *kir.inst(value) else { return None };
    let ty = kir.ty(a);
    let variability = |value: Value| uniformity.values[value.index()];
    let linear = matches!(ty, Type::I32 | Type::U32)
        && variability(a).max(variability(b)) == Variability::Affine
        && variability(value) == Variability::Varying;
    let (comparison, operands) = match op {
        BinaryOp::Lt => (Comparison::Less, [a, b]),
        BinaryOp::Gt => (Comparison::Less, [b, a]),
        BinaryOp::Le => (Comparison::LessOrEqual, [a, b]),
        BinaryOp::Ge => (Comparison::LessOrEqual, [b, a]),
        BinaryOp::Eq => (Comparison::Equal, [a, b]),
        BinaryOp::Ne => (Comparison::NotEqual, [a, b]),
        _ => return None,
    };
    linear.then_some((comparison, ty.is_signed(), operands))
}
