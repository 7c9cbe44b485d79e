//! Truth values.

use scry_ir::kir::{BinaryOp, UnaryOp};

use crate::lanes::{LaneOp, one, two};

pub(super) fn unary(op: UnaryOp) -> Option<&'static dyn LaneOp> {
    (op == UnaryOp::Not).then(|| one(|a: bool| !a))
}

pub(super) fn binary(op: BinaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        BinaryOp::And => two(|a: bool, b: bool| a & b),
        BinaryOp::Or => two(|a: bool, b: bool| a | b),
        BinaryOp::Xor | BinaryOp::Ne => two(|a: bool, b: bool| a ^ b),
        BinaryOp::Eq => two(|a: bool, b: bool| !(a ^ b)),
        _ => return None,
    })
}
