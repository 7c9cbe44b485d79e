//! Operations on bools.

use scry_ir::kir::{BinaryOp, UnaryOp};

use crate::lanes::{LaneOp, plain_one, plain_two};

pub(super) fn unary(op: UnaryOp) -> Option<&'static dyn LaneOp> {
    (op == UnaryOp::Not).then(|| plain_one(|a: bool| !a))
}

pub(super) fn binary(op: BinaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        BinaryOp::And => plain_two(|a: bool, b: bool| a & b),
        BinaryOp::Or => plain_two(|a: bool, b: bool| a | b),
        BinaryOp::Xor | BinaryOp::Ne => plain_two(|a: bool, b: bool| a ^ b),
        BinaryOp::Eq => plain_two(|a: bool, b: bool| !(a ^ b)),
        _ => return None,
    })
}
