//! Math functions of floats.
//!
//! Each function is branch-free. Those of `f32` use the hardware's approximations where these meet
//! the accuracy that WGSL requires; those of `f64` are built from arithmetic; those of `f16` are
//! computed as `f32` and rounded. Algorithms without such shortcuts are generic over both types by
//! [`Floats`].
//!
//! Polynomials are in [`tables`].

mod exponential;
mod floats;
mod hyperbolic;
mod inverse;
mod parts;
mod power;
mod tables;
mod trigonometric;

#[cfg(test)]
mod tests;

use floats::Floats;
use scry_ir::kir::{BinaryOp, UnaryOp, Value};

use super::{Lowering, ptx_type};
use crate::body::Body;
use crate::types::{Operand, PtxType, Reg};

impl Lowering<'_> {
    /// Lowers a function of one float that is not a single instruction for all types.
    pub(super) fn float_function(&mut self, op: UnaryOp, a: Value) -> Reg {
        let (ty, a) = (ptx_type(self.ty(a)), self.reg(a));
        lower_unary(&mut self.b, ty, op, a)
    }

    /// Lowers a function of two floats, or of a float and an exponent.
    pub(super) fn float_function_of_two(&mut self, op: BinaryOp, a: Value, b: Value) -> Reg {
        let (ty, a, b) = (ptx_type(self.ty(a)), self.reg(a), self.reg(b));
        match op {
            BinaryOp::Ldexp => parts::ldexp(&mut self.b, ty, a, b),
            _ => lower_binary(&mut self.b, ty, op, a, b),
        }
    }
}

/// Returns the rounding modifier of a rounding function; `None` for other functions.
const fn rounding(op: UnaryOp) -> Option<&'static str> {
    match op {
        UnaryOp::Floor => Some("rmi"),
        UnaryOp::Ceil => Some("rpi"),
        UnaryOp::Round => Some("rni"),
        UnaryOp::Trunc => Some("rzi"),
        _ => None,
    }
}

fn lower_unary(b: &mut Body, ty: PtxType, op: UnaryOp, a: Reg) -> Reg {
    if let Some(rounding) = rounding(op) {
        return b.convert(rounding, ty, ty, a.into());
    }
    let (mut floats, x) = widen(b, ty, a);
    if op == UnaryOp::FrexpExponent {
        return floats.frexp_exponent(x);
    }
    let result = f32_or_f64_unary(&mut floats, op, x);
    narrow(b, ty, result)
}

fn lower_binary(b: &mut Body, ty: PtxType, op: BinaryOp, x: Reg, y: Reg) -> Reg {
    let (_, x) = widen(b, ty, x);
    let (mut floats, y) = widen(b, ty, y);
    let result = match op {
        BinaryOp::Pow => floats.pow(x, y),
        BinaryOp::Atan2 => floats.atan2(x, y),
        _ => unreachable!("{op:?} is not a function of two floats"),
    };
    narrow(b, ty, result)
}

/// Widens a number to the type that its functions are computed in: `f16` to `f32`.
fn widen(b: &mut Body, ty: PtxType, a: Reg) -> (Floats<'_>, Operand) {
    match ty {
        PtxType::F16 => {
            let wide = b.convert("", PtxType::F32, PtxType::F16, a.into());
            (Floats { b, ty: PtxType::F32 }, wide.into())
        }
        _ => (Floats { b, ty }, a.into()),
    }
}

/// Narrows a result to type `ty`.
fn narrow(b: &mut Body, ty: PtxType, result: Operand) -> Reg {
    match ty {
        PtxType::F16 => b.convert("rn", ty, PtxType::F32, result),
        _ => b.in_register(result),
    }
}

fn f32_or_f64_unary(f: &mut Floats<'_>, op: UnaryOp, x: Operand) -> Operand {
    match op {
        UnaryOp::Fract => f.fract(x),
        UnaryOp::Sqrt => f.sqrt(x),
        UnaryOp::InverseSqrt => f.inverse_sqrt(x),
        UnaryOp::Exp => f.exp(x),
        UnaryOp::Exp2 => f.exp2(x),
        UnaryOp::Log => f.log(x),
        UnaryOp::Log2 => f.log2(x),
        UnaryOp::Sin => f.sin(x),
        UnaryOp::Cos => f.cos(x),
        UnaryOp::Tan => f.tan(x),
        UnaryOp::Asin => f.asin(x),
        UnaryOp::Acos => f.acos(x),
        UnaryOp::Atan => f.atan(x),
        UnaryOp::Sinh => f.sinh(x),
        UnaryOp::Cosh => f.cosh(x),
        UnaryOp::Tanh => f.tanh(x),
        UnaryOp::Asinh => f.asinh(x),
        UnaryOp::Acosh => f.acosh(x),
        UnaryOp::Atanh => f.atanh(x),
        UnaryOp::FrexpFraction => f.frexp_fraction(x),
        _ => unreachable!("{op:?} is not a function of a float"),
    }
}
