//! Component-wise functions.

use half::f16;
use naga::MathFunction as F;

use super::{comes_near, gives, scalar, vector};

fn halves<const N: usize>(numbers: [f32; N]) -> [f16; N] {
    numbers.map(f16::from_f32)
}

#[test]
fn absolute_values_and_signs() {
    gives(F::Abs, &[vector(&[i32::MIN, -3, 0, 3])], &[i32::MIN, 3, 0, 3]);
    gives(F::Abs, &[scalar(u32::MAX)], &[u32::MAX]);
    gives(F::Abs, &[vector(&[-0f32, -1.5, f32::NEG_INFINITY])], &[0f32, 1.5, f32::INFINITY]);
    gives(F::Abs, &[vector(&halves([-2.0, 2.0]))], &halves([2.0, 2.0]));
    gives(F::Sign, &[vector(&[i32::MIN, 0, 9])], &[-1i32, 0, 1]);
    gives(F::Sign, &[vector(&[-1e-30f32, 0.0, f32::INFINITY])], &[-1f32, 0.0, 1.0]);
    gives(F::Sign, &[vector(&[0u32, u32::MAX])], &[0u32, 1]);
}

#[test]
fn bounds() {
    gives(F::Min, &[vector(&[-1i32, 5]), vector(&[1i32, 4])], &[-1i32, 4]);
    gives(F::Max, &[vector(&[-1i32, 5]), vector(&[1i32, 4])], &[1i32, 5]);
    gives(F::Min, &[scalar(u32::MAX), scalar(1u32)], &[1u32]);
    gives(F::Max, &[scalar(u64::MAX), scalar(1u64)], &[u64::MAX]);
    gives(F::Max, &[scalar(-2f32), scalar(f32::NEG_INFINITY)], &[-2f32]);
    let x = [-9i32, 0, 9];
    gives(F::Clamp, &[vector(&x), vector(&[-1i32; 3]), vector(&[1i32; 3])], &[-1i32, 0, 1]);
    // min(max(x, low), high), even if the bounds are in the wrong order.
    gives(F::Clamp, &[scalar(5u32), scalar(7u32), scalar(3u32)], &[3u32]);
    let bounds = [vector(&[-9f32, 0.25]), vector(&[0f32; 2]), vector(&[1f32; 2])];
    gives(F::Clamp, &bounds, &[0f32, 0.25]);
    gives(F::Saturate, &[vector(&[-1f32, 0.5, 7.0])], &[0f32, 0.5, 1.0]);
    gives(F::Saturate, &[vector(&halves([-1.0, 0.5, 7.0]))], &halves([0.0, 0.5, 1.0]));
    gives(F::Saturate, &[vector(&[f64::NEG_INFINITY, f64::INFINITY])], &[0f64, 1.0]);
}

#[test]
fn whole_parts() {
    let x = [-1.5f32, -0.5, 0.5, 1.5];
    gives(F::Ceil, &[vector(&x)], &[-1f32, -0.0, 1.0, 2.0]);
    gives(F::Floor, &[vector(&x)], &[-2f32, -1.0, 0.0, 1.0]);
    gives(F::Round, &[vector(&x)], &[-2f32, -0.0, 0.0, 2.0]);
    gives(F::Trunc, &[vector(&x)], &[-1f32, -0.0, 0.0, 1.0]);
    gives(F::Fract, &[vector(&[-0.25f32, 1.75, 3.0])], &[0.75f32, 0.75, 0.0]);
}

#[test]
fn frexp_ldexp_and_modf() {
    gives(F::Modf, &[vector(&[1.25f32, -1.75])], &[0.25f32, -0.75, 1.0, -1.0]);
    gives(F::Modf, &[scalar(f16::from_f32(3.5))], &halves([0.5, 3.0]));
    let parts = super::call(F::Frexp, &[vector(&[12f32, -0.375, 0.0])]);
    let fractions = super::constants(&[0.75f32, -0.75, 0.0]);
    assert_eq!(parts, [fractions, super::constants(&[4i32, -1, 0])].concat());
    let exponents = vector(&[3i32, -2, 0]);
    gives(F::Ldexp, &[vector(&[1.5f32, -8.0, 7.0]), exponents], &[12f32, -2.0, 7.0]);
    gives(F::Ldexp, &[scalar(f16::ONE), scalar(-14i32)], &[f16::MIN_POSITIVE]);
    gives(F::Ldexp, &[scalar(f32::MIN_POSITIVE), scalar(253i32)], &[2f32.powi(127)]);
}

/// Functions with an equivalent instruction; the expected values distinguish each from the others.
#[test]
fn transcendental_functions() {
    for (fun, function) in [
        (F::Sin, f64::sin as fn(f64) -> f64),
        (F::Cos, f64::cos),
        (F::Tan, f64::tan),
        (F::Asin, f64::asin),
        (F::Acos, f64::acos),
        (F::Atan, f64::atan),
        (F::Sinh, f64::sinh),
        (F::Cosh, f64::cosh),
        (F::Tanh, f64::tanh),
        (F::Asinh, f64::asinh),
        (F::Atanh, f64::atanh),
        (F::Exp, f64::exp),
        (F::Exp2, f64::exp2),
        (F::Log, f64::ln),
        (F::Log2, f64::log2),
        (F::Sqrt, f64::sqrt),
    ] {
        comes_near(fun, &[vector(&[0.25f32, 0.75])], &[0.25, 0.75].map(function), 1e-6);
        comes_near(fun, &[scalar(f16::from_f32(0.5))], &[function(0.5)], 1e-3);
        comes_near(fun, &[scalar(0.3f64)], &[function(0.3)], 1e-14);
    }
    comes_near(F::Acosh, &[vector(&[1f32, 2.5])], &[0.0, 2.5f64.acosh()], 1e-6);
    comes_near(F::InverseSqrt, &[vector(&[4f32, 0.25])], &[0.5, 2.0], 0.0);
}

#[test]
fn powers_and_angles() {
    gives(F::Pow, &[vector(&[2f32, 9.0, 5.0]), vector(&[3f32, 0.5, 0.0])], &[8f32, 3.0, 1.0]);
    let quarter = std::f64::consts::FRAC_PI_4;
    let (y, x) = (vector(&[1f32, 1.0, -1.0]), vector(&[1f32, -1.0, -1.0]));
    comes_near(F::Atan2, &[y, x], &[quarter, 3.0 * quarter, -3.0 * quarter], 1e-6);
    comes_near(F::Radians, &[scalar(180f32)], &[std::f64::consts::PI], 1e-6);
    comes_near(F::Radians, &[scalar(f16::from_f32(90.0))], &[2.0 * quarter], 2e-3);
    comes_near(F::Degrees, &[scalar(quarter)], &[45.0], 1e-15);
    comes_near(F::Degrees, &[scalar(f16::ONE)], &[1f64.to_degrees()], 1e-3);
}

#[test]
fn combinations_of_three() {
    let operands = [vector(&[2f32, 0.5]), vector(&[3f32, -4.0]), vector(&[1f32, 2.0])];
    gives(F::Fma, &operands, &[7f32, 0.0]);
    let ends = || [vector(&[2f32, -4.0, 8.0]), vector(&[4f32, 4.0, 0.1])];
    let mix = |share| {
        let [x, y] = ends();
        super::call(F::Mix, &[x, y, share])
    };
    assert_eq!(mix(scalar(0.5f32)), super::constants(&[3f32, 0.0, 4.05]));
    assert_eq!(mix(vector(&[0f32, 0.25, 1.0])), super::constants(&[2f32, -2.0, 0.1]));
    let halfway = [scalar(f16::ZERO), scalar(f16::ONE), scalar(f16::from_f32(0.25))];
    gives(F::Mix, &halfway, &halves([0.25]));
}

#[test]
fn steps() {
    gives(F::Step, &[vector(&[1f32; 3]), vector(&[0.5f32, 1.0, 2.0])], &[0f32, 1.0, 1.0]);
    gives(F::Step, &[scalar(f16::ONE), scalar(f16::ZERO)], &[f16::ZERO]);
    let smooth = [vector(&[2f32; 4]), vector(&[4f32; 4]), vector(&[1f32, 2.5, 3.0, 9.0])];
    gives(F::SmoothStep, &smooth, &[0f32, 0.15625, 0.5, 1.0]);
    // The bounds may be in falling order.
    let falling = [scalar(f16::ONE), scalar(f16::ZERO), scalar(f16::from_f32(0.25))];
    gives(F::SmoothStep, &falling, &halves([0.84375]));
}

#[test]
fn quantization_keeps_f16_values() {
    gives(F::QuantizeToF16, &[vector(&[1f32, 2049.0, 1e-9])], &[1f32, 2048.0, 0.0]);
    gives(F::QuantizeToF16, &[scalar(0.1f32)], &[0.099_975_586f32]);
}
