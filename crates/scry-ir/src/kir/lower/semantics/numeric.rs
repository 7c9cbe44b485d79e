//! Tests of component-wise functions.

use half::f16;
use naga::MathFunction as F;

use super::{assert_evaluates, assert_evaluates_near, scalar, vector};

fn f16s<const N: usize>(numbers: [f32; N]) -> [f16; N] {
    numbers.map(f16::from_f32)
}

#[test]
fn absolute_values_and_signs() {
    assert_evaluates(F::Abs, &[vector(&[i32::MIN, -3, 0, 3])], &[i32::MIN, 3, 0, 3]);
    assert_evaluates(F::Abs, &[scalar(u32::MAX)], &[u32::MAX]);
    assert_evaluates(
        F::Abs,
        &[vector(&[-0f32, -1.5, f32::NEG_INFINITY])],
        &[0f32, 1.5, f32::INFINITY],
    );
    assert_evaluates(F::Abs, &[vector(&f16s([-2.0, 2.0]))], &f16s([2.0, 2.0]));
    assert_evaluates(F::Sign, &[vector(&[i32::MIN, 0, 9])], &[-1i32, 0, 1]);
    assert_evaluates(F::Sign, &[vector(&[-1e-30f32, 0.0, f32::INFINITY])], &[-1f32, 0.0, 1.0]);
    assert_evaluates(F::Sign, &[vector(&[0u32, u32::MAX])], &[0u32, 1]);
}

#[test]
fn min_max_clamp_and_saturate() {
    assert_evaluates(F::Min, &[vector(&[-1i32, 5]), vector(&[1i32, 4])], &[-1i32, 4]);
    assert_evaluates(F::Max, &[vector(&[-1i32, 5]), vector(&[1i32, 4])], &[1i32, 5]);
    assert_evaluates(F::Min, &[scalar(u32::MAX), scalar(1u32)], &[1u32]);
    assert_evaluates(F::Max, &[scalar(u64::MAX), scalar(1u64)], &[u64::MAX]);
    assert_evaluates(F::Max, &[scalar(-2f32), scalar(f32::NEG_INFINITY)], &[-2f32]);
    let x = [-9i32, 0, 9];
    assert_evaluates(
        F::Clamp,
        &[vector(&x), vector(&[-1i32; 3]), vector(&[1i32; 3])],
        &[-1i32, 0, 1],
    );
    // min(max(x, low), high), even if the bounds are in the wrong order.
    assert_evaluates(F::Clamp, &[scalar(5u32), scalar(7u32), scalar(3u32)], &[3u32]);
    let operands = [vector(&[-9f32, 0.25]), vector(&[0f32; 2]), vector(&[1f32; 2])];
    assert_evaluates(F::Clamp, &operands, &[0f32, 0.25]);
    assert_evaluates(F::Saturate, &[vector(&[-1f32, 0.5, 7.0])], &[0f32, 0.5, 1.0]);
    assert_evaluates(F::Saturate, &[vector(&f16s([-1.0, 0.5, 7.0]))], &f16s([0.0, 0.5, 1.0]));
    assert_evaluates(F::Saturate, &[vector(&[f64::NEG_INFINITY, f64::INFINITY])], &[0f64, 1.0]);
}

#[test]
fn rounding_functions() {
    let x = [-1.5f32, -0.5, 0.5, 1.5];
    assert_evaluates(F::Ceil, &[vector(&x)], &[-1f32, -0.0, 1.0, 2.0]);
    assert_evaluates(F::Floor, &[vector(&x)], &[-2f32, -1.0, 0.0, 1.0]);
    assert_evaluates(F::Round, &[vector(&x)], &[-2f32, -0.0, 0.0, 2.0]);
    assert_evaluates(F::Trunc, &[vector(&x)], &[-1f32, -0.0, 0.0, 1.0]);
    assert_evaluates(F::Fract, &[vector(&[-0.25f32, 1.75, 3.0])], &[0.75f32, 0.75, 0.0]);
}

#[test]
fn frexp_ldexp_and_modf() {
    assert_evaluates(F::Modf, &[vector(&[1.25f32, -1.75])], &[0.25f32, -0.75, 1.0, -1.0]);
    assert_evaluates(F::Modf, &[scalar(f16::from_f32(3.5))], &f16s([0.5, 3.0]));
    let parts = super::call(F::Frexp, &[vector(&[12f32, -0.375, 0.0])]);
    let fractions = super::constants(&[0.75f32, -0.75, 0.0]);
    assert_eq!(parts, [fractions, super::constants(&[4i32, -1, 0])].concat());
    let exponents = vector(&[3i32, -2, 0]);
    assert_evaluates(F::Ldexp, &[vector(&[1.5f32, -8.0, 7.0]), exponents], &[12f32, -2.0, 7.0]);
    assert_evaluates(F::Ldexp, &[scalar(f16::ONE), scalar(-14i32)], &[f16::MIN_POSITIVE]);
    assert_evaluates(F::Ldexp, &[scalar(f32::MIN_POSITIVE), scalar(253i32)], &[2f32.powi(127)]);
}

/// Functions with an equivalent instruction. No two of them have the same expected values.
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
        assert_evaluates_near(fun, &[vector(&[0.25f32, 0.75])], &[0.25, 0.75].map(function), 1e-6);
        assert_evaluates_near(fun, &[scalar(f16::from_f32(0.5))], &[function(0.5)], 1e-3);
        assert_evaluates_near(fun, &[scalar(0.3f64)], &[function(0.3)], 1e-14);
    }
    assert_evaluates_near(F::Acosh, &[vector(&[1f32, 2.5])], &[0.0, 2.5f64.acosh()], 1e-6);
    assert_evaluates_near(F::InverseSqrt, &[vector(&[4f32, 0.25])], &[0.5, 2.0], 0.0);
}

#[test]
fn pow_atan2_radians_and_degrees() {
    assert_evaluates(
        F::Pow,
        &[vector(&[2f32, 9.0, 5.0]), vector(&[3f32, 0.5, 0.0])],
        &[8f32, 3.0, 1.0],
    );
    let pi_4 = std::f64::consts::FRAC_PI_4;
    let (y, x) = (vector(&[1f32, 1.0, -1.0]), vector(&[1f32, -1.0, -1.0]));
    assert_evaluates_near(F::Atan2, &[y, x], &[pi_4, 3.0 * pi_4, -3.0 * pi_4], 1e-6);
    assert_evaluates_near(F::Radians, &[scalar(180f32)], &[std::f64::consts::PI], 1e-6);
    assert_evaluates_near(F::Radians, &[scalar(f16::from_f32(90.0))], &[2.0 * pi_4], 2e-3);
    assert_evaluates_near(F::Degrees, &[scalar(pi_4)], &[45.0], 1e-15);
    assert_evaluates_near(F::Degrees, &[scalar(f16::ONE)], &[1f64.to_degrees()], 1e-3);
}

#[test]
fn fma_and_mix() {
    let operands = [vector(&[2f32, 0.5]), vector(&[3f32, -4.0]), vector(&[1f32, 2.0])];
    assert_evaluates(F::Fma, &operands, &[7f32, 0.0]);
    let operands = || [vector(&[2f32, -4.0, 8.0]), vector(&[4f32, 4.0, 0.1])];
    let mix = |weight| {
        let [x, y] = operands();
        super::call(F::Mix, &[x, y, weight])
    };
    assert_eq!(mix(scalar(0.5f32)), super::constants(&[3f32, 0.0, 4.05]));
    assert_eq!(mix(vector(&[0f32, 0.25, 1.0])), super::constants(&[2f32, -2.0, 0.1]));
    let f16_operands = [scalar(f16::ZERO), scalar(f16::ONE), scalar(f16::from_f32(0.25))];
    assert_evaluates(F::Mix, &f16_operands, &f16s([0.25]));
}

#[test]
fn step_and_smoothstep() {
    assert_evaluates(
        F::Step,
        &[vector(&[1f32; 3]), vector(&[0.5f32, 1.0, 2.0])],
        &[0f32, 1.0, 1.0],
    );
    assert_evaluates(F::Step, &[scalar(f16::ONE), scalar(f16::ZERO)], &[f16::ZERO]);
    let smooth = [vector(&[2f32; 4]), vector(&[4f32; 4]), vector(&[1f32, 2.5, 3.0, 9.0])];
    assert_evaluates(F::SmoothStep, &smooth, &[0f32, 0.15625, 0.5, 1.0]);
    // `low` may be above `high`.
    let swapped = [scalar(f16::ONE), scalar(f16::ZERO), scalar(f16::from_f32(0.25))];
    assert_evaluates(F::SmoothStep, &swapped, &f16s([0.84375]));
}

#[test]
fn quantize_rounds_to_f16() {
    assert_evaluates(F::QuantizeToF16, &[vector(&[1f32, 2049.0, 1e-9])], &[1f32, 2048.0, 0.0]);
    assert_evaluates(F::QuantizeToF16, &[scalar(0.1f32)], &[0.099_975_586f32]);
}
