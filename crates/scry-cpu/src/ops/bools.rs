//! Operations on bools.

use scry_ir::kir::{BinaryOp, UnaryOp};

use crate::lanes::{LaneOp, binary_for_baseline, unary_for_baseline};

pub(super) fn unary(op: UnaryOp) -> Option<&'static dyn LaneOp> {
    (op == UnaryOp::Not).then(|| unary_for_baseline(|a: bool| !a))
}

pub(super) fn binary(op: BinaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        BinaryOp::And => binary_for_baseline(|a: bool, b: bool| a & b),
        BinaryOp::Or => binary_for_baseline(|a: bool, b: bool| a | b),
        BinaryOp::Xor | BinaryOp::Ne => binary_for_baseline(|a: bool, b: bool| a ^ b),
        BinaryOp::Eq => binary_for_baseline(|a: bool, b: bool| !(a ^ b)),
        _ => return None,
    })
}
