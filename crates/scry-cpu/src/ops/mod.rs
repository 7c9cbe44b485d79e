//! The lane operation of each instruction.
//!
//! 16-bit integers and floats have few operations: they are promoted to 32 bits for arithmetic, and
//! truncated afterwards (see `compile/promotion.rs`). The suffix of a constructor, such as
//! `unary_for_each_isa`, says for which ISA levels the operation is compiled (see `lanes/op.rs`).

mod bools;
mod convert;
mod floats;
mod integers;

use scry_ir::kir::{BinaryOp, Type, UnaryOp};

use crate::lanes::{LaneOp, ternary, ternary_by_isa, unary_for_baseline};

pub(crate) use convert::convert;

/// Returns the lane operation of a unary instruction with an operand of this type.
pub(crate) fn unary(op: UnaryOp, ty: Type) -> Option<&'static dyn LaneOp> {
    match ty {
        Type::Bool => bools::unary(op),
        Type::U16 | Type::I16 => integers::unary_16(op),
        Type::U32 => integers::unary_32(op, false),
        Type::I32 => integers::unary_32(op, true),
        Type::U64 => integers::unary_64(op, false),
        Type::I64 => integers::unary_64(op, true),
        Type::F16 => floats::unary_16(op),
        Type::F32 => floats::unary_32(op),
        Type::F64 => floats::unary_64(op),
        Type::Matrix(_) => None,
    }
}

/// Returns the lane operation of a binary instruction whose first operand has this type.
pub(crate) fn binary(op: BinaryOp, ty: Type) -> Option<&'static dyn LaneOp> {
    match ty {
        Type::Bool => bools::binary(op),
        Type::U32 => integers::binary_u32(op),
        Type::I32 => integers::binary_i32(op),
        Type::U64 => integers::binary_u64(op),
        Type::I64 => integers::binary_i64(op),
        Type::F32 => floats::binary_32(op),
        Type::F64 => floats::binary_64(op),
        Type::U16 | Type::I16 | Type::F16 | Type::Matrix(_) => None,
    }
}

/// `a * b + c`.
pub(crate) fn fma(ty: Type) -> Option<&'static dyn LaneOp> {
    match ty {
        Type::F32 => Some(ternary_by_isa(
            |a: f32, b: f32, c: f32| a.mul_add(b, c),
            |a: f32, b: f32, c: f32| a * b + c,
        )),
        Type::F64 => Some(ternary_by_isa(
            |a: f64, b: f64, c: f64| a.mul_add(b, c),
            |a: f64, b: f64, c: f64| a * b + c,
        )),
        _ => None,
    }
}

/// Returns the second operand if the first is true, else the third.
pub(crate) fn select(ty: Type) -> &'static dyn LaneOp {
    match ty.size() {
        1 => ternary(|c: bool, a: bool, b: bool| (c & a) | (!c & b)),
        2 => ternary(|c: bool, a: u16, b: u16| if c { a } else { b }),
        4 => ternary(|c: bool, a: u32, b: u32| if c { a } else { b }),
        _ => ternary(|c: bool, a: u64, b: u64| if c { a } else { b }),
    }
}

/// The identity, for lanes of a type's size.
pub(crate) fn copy(ty: Type) -> &'static dyn LaneOp {
    match ty.size() {
        1 => unary_for_baseline(|a: bool| a),
        2 => unary_for_baseline(|a: u16| a),
        4 => unary_for_baseline(|a: u32| a),
        _ => unary_for_baseline(|a: u64| a),
    }
}

/// Returns the operation of a binary instruction on single values. 16-bit types have only those of
/// subgroup reductions.
pub(crate) fn scalar_binary(op: BinaryOp, ty: Type) -> Option<&'static dyn LaneOp> {
    match ty {
        Type::F16 => floats::binary_16(op),
        Type::I16 | Type::U16 => integers::binary_16(op, ty.is_signed()),
        _ => binary(op, ty),
    }
}
