//! Tests of geometric functions.

use half::f16;
use naga::MathFunction as F;

use super::{assert_evaluates, assert_evaluates_near, scalar, vector};

fn f16s<const N: usize>(numbers: [f32; N]) -> [f16; N] {
    numbers.map(f16::from_f32)
}

#[test]
fn dot_products() {
    assert_evaluates(
        F::Dot,
        &[vector(&[1f32, 2.0, 3.0, 4.0]), vector(&[5f32, 6.0, 7.0, -8.0])],
        &[6f32],
    );
    assert_evaluates(F::Dot, &[vector(&[i32::MAX, 2, 3]), vector(&[2i32, -5, 6])], &[6i32]);
    assert_evaluates(F::Dot, &[vector(&[1u32 << 31, 7]), vector(&[2u32, 3])], &[21u32]);
    assert_evaluates(
        F::Dot,
        &[vector(&f16s([0.5, 8.0])), vector(&f16s([4.0, 0.25]))],
        &f16s([4.0]),
    );
    assert_evaluates(
        F::Dot,
        &[vector(&[1i64 << 40, 3]), vector(&[1i64 << 10, 5])],
        &[(1i64 << 50) + 15],
    );
}

#[test]
fn cross_products() {
    let (x, y) = ([1f32, 2.0, 3.0], [-4f32, 5.0, 0.5]);
    assert_evaluates(F::Cross, &[vector(&x), vector(&y)], &[-14f32, -12.5, 13.0]);
    // The cross product of parallel vectors is exactly zero: it is lowered without `Fma`.
    let x = [0.1f32, 0.7, -1.3];
    assert_evaluates(F::Cross, &[vector(&x), vector(&x)], &[0f32; 3]);
}

#[test]
fn lengths() {
    assert_evaluates(F::Length, &[vector(&[3f32, -4.0])], &[5f32]);
    assert_evaluates(F::Length, &[vector(&[2f64, 4.0, 5.0, 6.0])], &[9f64]);
    assert_evaluates(F::Length, &[vector(&f16s([0.0, 6.0, 8.0]))], &f16s([10.0]));
    // The length of a scalar is its absolute value; its square could overflow.
    assert_evaluates(F::Length, &[scalar(-1e30f32)], &[1e30f32]);
    assert_evaluates(F::Distance, &[vector(&[4f32, 1.0]), vector(&[1f32, 5.0])], &[5f32]);
    assert_evaluates(F::Distance, &[scalar(1e30f32), scalar(-1e30f32)], &[2e30f32]);
}

#[test]
fn normalize() {
    assert_evaluates_near(F::Normalize, &[vector(&[3f32, 0.0, -4.0])], &[0.6, 0.0, -0.8], 3e-7);
    assert_evaluates_near(F::Normalize, &[vector(&f16s([8.0, 6.0]))], &[0.8, 0.6], 2e-3);
}

#[test]
fn face_forward_depends_on_dot_sign() {
    let assert_face_forward = |incident: [f32; 2], expected: [f32; 2]| {
        let operands = [vector(&[1f32, -2.0]), vector(&incident), vector(&[0f32, 1.0])];
        assert_evaluates(F::FaceForward, &operands, &expected);
    };
    assert_face_forward([5.0, -1.0], [1.0, -2.0]);
    assert_face_forward([5.0, 1.0], [-1.0, 2.0]);
    assert_face_forward([5.0, 0.0], [-1.0, 2.0]);
}

#[test]
fn reflection() {
    let (incident, normal) = ([1f32, -2.0, 3.0], [0f32, 1.0, 0.0]);
    assert_evaluates(F::Reflect, &[vector(&incident), vector(&normal)], &[1f32, 2.0, 3.0]);
    // 2 * dot(normal, incident) = -2: the normal need not be normalised.
    let (incident, normal) = (f16s([1.0, -2.0]), f16s([1.0, 1.0]));
    assert_evaluates(F::Reflect, &[vector(&incident), vector(&normal)], &f16s([3.0, 0.0]));
}

#[test]
fn refraction() {
    let normal = || vector(&[0f32, 1.0]);
    let straight = [vector(&[0f32, -1.0]), normal(), scalar(0.5f32)];
    assert_evaluates(F::Refract, &straight, &[0f32, -1.0]);
    // Total internal reflection: k = 1 - 4 * (1 - 0.36) < 0.
    let grazing = [vector(&[0.8f32, -0.6]), normal(), scalar(2f32)];
    assert_evaluates(F::Refract, &grazing, &[0f32, 0.0]);
    // By Snell's law the sine is multiplied by 0.75.
    let operands = [vector(&[0.8f32, -0.6]), normal(), scalar(0.75f32)];
    assert_evaluates_near(F::Refract, &operands, &[0.6, -0.8], 1e-6);
    let [x, y] = [f16s([0.8, -0.6]), f16s([0.0, 1.0])];
    let operands = [vector(&x), vector(&y), scalar(f16::from_f32(0.75))];
    assert_evaluates_near(F::Refract, &operands, &[0.6, -0.8], 4e-3);
}
