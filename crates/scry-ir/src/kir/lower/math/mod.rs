//! WGSL's mathematical functions, dispatched to the file that lowers each.

mod bits;
mod geometry;
mod matrix;
mod numeric;
mod pack;

use naga::MathFunction as F;

use super::componentwise::map_unary;
use super::shape::Shaped;
use crate::ShaderError;
use crate::kir::{Builder, UnaryOp, Value};

/// Lowers a mathematical function. The results of `modf` and `frexp` of a vector are the fractions
/// of all components, then the integer parts or exponents.
pub(crate) fn math(
    b: &mut Builder,
    fun: naga::MathFunction,
    args: &[Shaped<'_>],
) -> Result<Vec<Value>, ShaderError> {
    let no_aggregate = args.iter().all(|arg| arg.shape.component().is_some());
    let values = if no_aggregate { dispatch(b, fun, args) } else { None };
    values.ok_or_else(|| {
        let shapes: Vec<_> = args.iter().map(|arg| arg.shape).collect();
        ShaderError::compiler(format!("`{fun:?}` of {shapes:?} is not a function of WGSL"))
    })
}

#[rustfmt::skip]
fn dispatch(b: &mut Builder, fun: F, args: &[Shaped<'_>]) -> Option<Vec<Value>> {
    match fun {
        F::Cos | F::Cosh | F::Sin | F::Sinh | F::Tan | F::Tanh | F::Acos | F::Asin | F::Atan
        | F::Asinh | F::Acosh | F::Atanh | F::Ceil | F::Floor | F::Round | F::Fract | F::Trunc
        | F::Exp | F::Exp2 | F::Log | F::Log2 | F::Sqrt | F::InverseSqrt | F::QuantizeToF16
        | F::CountTrailingZeros | F::CountLeadingZeros | F::CountOneBits | F::ReverseBits
        | F::FirstTrailingBit | F::FirstLeadingBit => match args {
            [a] => Some(map_unary(b, instruction(fun)?, *a)),
            _ => None,
        },
        F::Abs | F::Min | F::Max | F::Clamp | F::Saturate | F::Atan2 | F::Radians | F::Degrees
        | F::Modf | F::Frexp | F::Ldexp | F::Pow | F::Sign | F::Fma | F::Mix | F::Step
        | F::SmoothStep => numeric::numeric(b, fun, args),
        F::Dot | F::Cross | F::Distance | F::Length | F::Normalize | F::FaceForward | F::Reflect
        | F::Refract => geometry::geometry(b, fun, args),
        F::Transpose | F::Determinant => matrix::matrix(b, fun, args),
        F::ExtractBits | F::InsertBits | F::Dot4I8Packed | F::Dot4U8Packed => {
            bits::bits(b, fun, args)
        }
        F::Pack4x8snorm | F::Pack4x8unorm | F::Pack2x16snorm | F::Pack2x16unorm
        | F::Pack2x16float | F::Pack4xI8 | F::Pack4xU8 | F::Pack4xI8Clamp | F::Pack4xU8Clamp
        | F::Unpack4x8snorm | F::Unpack4x8unorm | F::Unpack2x16snorm | F::Unpack2x16unorm
        | F::Unpack2x16float | F::Unpack4xI8 | F::Unpack4xU8 => pack::pack(b, fun, args),
        F::Outer | F::Inverse => None,
    }
}

/// Returns the instruction that is equivalent to a function, if there is one.
fn instruction(fun: F) -> Option<UnaryOp> {
    Some(match fun {
        F::Cos => UnaryOp::Cos,
        F::Cosh => UnaryOp::Cosh,
        F::Sin => UnaryOp::Sin,
        F::Sinh => UnaryOp::Sinh,
        F::Tan => UnaryOp::Tan,
        F::Tanh => UnaryOp::Tanh,
        F::Acos => UnaryOp::Acos,
        F::Asin => UnaryOp::Asin,
        F::Atan => UnaryOp::Atan,
        F::Asinh => UnaryOp::Asinh,
        F::Acosh => UnaryOp::Acosh,
        F::Atanh => UnaryOp::Atanh,
        F::Ceil => UnaryOp::Ceil,
        F::Floor => UnaryOp::Floor,
        F::Round => UnaryOp::Round,
        F::Fract => UnaryOp::Fract,
        F::Trunc => UnaryOp::Trunc,
        F::Exp => UnaryOp::Exp,
        F::Exp2 => UnaryOp::Exp2,
        F::Log => UnaryOp::Log,
        F::Log2 => UnaryOp::Log2,
        F::Sqrt => UnaryOp::Sqrt,
        F::InverseSqrt => UnaryOp::InverseSqrt,
        F::QuantizeToF16 => UnaryOp::QuantizeF16,
        F::CountTrailingZeros => UnaryOp::TrailingZeros,
        F::CountLeadingZeros => UnaryOp::LeadingZeros,
        F::CountOneBits => UnaryOp::CountOnes,
        F::ReverseBits => UnaryOp::ReverseBits,
        F::FirstTrailingBit => UnaryOp::FirstTrailingBit,
        F::FirstLeadingBit => UnaryOp::FirstLeadingBit,
        _ => return None,
    })
}
