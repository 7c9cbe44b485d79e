//! Component-wise operations, and their constants.

use super::shape::{Shape, Shaped};
use crate::kir::{BinaryOp, Builder, Const, Type, UnaryOp, Value};

/// Applies `f` to each component; scalars are splatted to vectors.
pub(super) fn map_components<const N: usize>(
    b: &mut Builder,
    args: [Shaped<'_>; N],
    f: &dyn Fn(&mut Builder, [Value; N]) -> Value,
) -> Vec<Value> {
    let len = args.iter().map(|arg| arg.values.len()).max().unwrap_or(0);
    let mut values = Vec::with_capacity(len);
    for nth in 0..len {
        let mut components = [Value(0); N];
        for (component, arg) in components.iter_mut().zip(&args) {
            *component = arg.component(nth);
        }
        values.push(f(b, components));
    }
    values
}

/// Applies an operation to each component.
pub(super) fn map_unary(b: &mut Builder, op: UnaryOp, a: Shaped<'_>) -> Vec<Value> {
    map_components(b, [a], &|b, [a]| b.unary(op, a))
}

/// Applies an operation to each pair of components.
pub(super) fn map_binary(
    b: &mut Builder,
    op: BinaryOp,
    left: Shaped<'_>,
    right: Shaped<'_>,
) -> Vec<Value> {
    map_components(b, [left, right], &|b, [left, right]| b.binary(op, left, right))
}

/// Emits the sum of the products of all pairs; returns `None` if there are no pairs.
pub(super) fn sum_of_products(
    b: &mut Builder,
    pairs: &mut dyn Iterator<Item = (&Value, &Value)>,
) -> Option<Value> {
    let mut sum = None;
    for (&x, &y) in pairs {
        sum = Some(match sum {
            None => b.binary(BinaryOp::Mul, x, y),
            Some(sum) if b.ty(x).is_float() => b.fma(x, y, sum),
            Some(sum) => {
                let product = b.binary(BinaryOp::Mul, x, y);
                b.binary(BinaryOp::Add, product, sum)
            }
        });
    }
    sum
}

impl Shaped<'_> {
    /// Returns a component; for a scalar, the scalar itself.
    fn component(&self, nth: usize) -> Value {
        if self.values.len() == 1 { self.values[0] } else { self.values[nth] }
    }
}

impl Shape {
    /// Returns the type of all components; `None` for an aggregate, whose components may differ.
    pub(super) fn component(self) -> Option<Type> {
        match self {
            Self::Scalar(ty) | Self::Vector { ty, .. } | Self::Matrix { ty, .. } => Some(ty),
            Self::Aggregate => None,
        }
    }
}

/// Emits a constant of type `ty`, rounded if `ty` is a float. An `F16` must be normal or zero.
#[inline(never)]
pub(super) fn numeric_constant(b: &mut Builder, ty: Type, value: f64) -> Value {
    let bits = match ty {
        Type::F64 => value.to_bits(),
        Type::F32 => u64::from((value as f32).to_bits()),
        Type::F16 => f16_bits(value),
        _ => Const::int(ty, value as i64).bits,
    };
    b.constant(Const { ty, bits })
}

/// Returns the bits of the nearest f16, ties to even.
fn f16_bits(value: f64) -> u64 {
    /// Significand bits that `f64` has in addition to the 11 of f16.
    const DROPPED_BITS: u32 = f64::MANTISSA_DIGITS - 11;
    let bits = value.abs().to_bits();
    if bits == 0 {
        return 0;
    }
    debug_assert!((2f64.powi(-14)..=65504.0).contains(&value.abs()), "{value} is a normal f16");
    // The exponent is biased by 15 instead of 1023; a carry out of the significand raises it.
    let rebiased = bits - ((1023 - 15) << (f64::MANTISSA_DIGITS - 1));
    let odd = rebiased >> DROPPED_BITS & 1;
    let rounded = (rebiased + (1 << (DROPPED_BITS - 1)) - 1 + odd) >> DROPPED_BITS;
    rounded | u64::from(value.is_sign_negative()) << 15
}
