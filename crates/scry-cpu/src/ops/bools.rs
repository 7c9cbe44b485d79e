//! Operations on bools.

use scry_ir::kir::{BinaryOp, UnaryOp};

use crate::lanes::{LaneOp, plain_binary, plain_unary};

pub(super) fn unary(op: UnaryOp) -> Option<&'static dyn LaneOp> {
    (op == UnaryOp::Not).then(|| plain_unary(|a: bool| !a))
}

pub(super) fn binary(op: BinaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        BinaryOp::And => plain_binary(|a: bool, b: bool| a & b),
        BinaryOp::Or => plain_binary(|a: bool, b: bool| a | b),
        BinaryOp::Xor | BinaryOp::Ne => plain_binary(|a: bool, b: bool| a ^ b),
        BinaryOp::Eq => plain_binary(|a: bool, b: bool| !(a ^ b)),
        _ => return None,
    })
}
