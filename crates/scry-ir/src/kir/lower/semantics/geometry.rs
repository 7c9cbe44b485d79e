//! Geometric functions.

use half::f16;
use naga::MathFunction as F;

use super::{comes_near, gives, scalar, vector};

fn halves<const N: usize>(numbers: [f32; N]) -> [f16; N] {
    numbers.map(f16::from_f32)
}

#[test]
fn dot_products() {
    gives(F::Dot, &[vector(&[1f32, 2.0, 3.0, 4.0]), vector(&[5f32, 6.0, 7.0, -8.0])], &[6f32]);
    gives(F::Dot, &[vector(&[i32::MAX, 2, 3]), vector(&[2i32, -5, 6])], &[6i32]);
    gives(F::Dot, &[vector(&[1u32 << 31, 7]), vector(&[2u32, 3])], &[21u32]);
    gives(F::Dot, &[vector(&halves([0.5, 8.0])), vector(&halves([4.0, 0.25]))], &halves([4.0]));
    gives(F::Dot, &[vector(&[1i64 << 40, 3]), vector(&[1i64 << 10, 5])], &[(1i64 << 50) + 15]);
}

#[test]
fn cross_products() {
    let (x, y) = ([1f32, 2.0, 3.0], [-4f32, 5.0, 0.5]);
    gives(F::Cross, &[vector(&x), vector(&y)], &[-14f32, -12.5, 13.0]);
    // Parallel vectors give zero although their products are not exact.
    let x = [0.1f32, 0.7, -1.3];
    gives(F::Cross, &[vector(&x), vector(&x)], &[0f32; 3]);
}

#[test]
fn lengths() {
    gives(F::Length, &[vector(&[3f32, -4.0])], &[5f32]);
    gives(F::Length, &[vector(&[2f64, 4.0, 5.0, 6.0])], &[9f64]);
    gives(F::Length, &[vector(&halves([0.0, 6.0, 8.0]))], &halves([10.0]));
    // The square of a scalar could overflow.
    gives(F::Length, &[scalar(-1e30f32)], &[1e30f32]);
    gives(F::Distance, &[vector(&[4f32, 1.0]), vector(&[1f32, 5.0])], &[5f32]);
    gives(F::Distance, &[scalar(1e30f32), scalar(-1e30f32)], &[2e30f32]);
}

#[test]
fn directions() {
    comes_near(F::Normalize, &[vector(&[3f32, 0.0, -4.0])], &[0.6, 0.0, -0.8], 3e-7);
    comes_near(F::Normalize, &[vector(&halves([8.0, 6.0]))], &[0.8, 0.6], 2e-3);
}

#[test]
fn face_forward_turns_against_the_incident() {
    let turn = |incident: [f32; 2], expected: [f32; 2]| {
        let operands = [vector(&[1f32, -2.0]), vector(&incident), vector(&[0f32, 1.0])];
        gives(F::FaceForward, &operands, &expected);
    };
    turn([5.0, -1.0], [1.0, -2.0]);
    turn([5.0, 1.0], [-1.0, 2.0]);
    turn([5.0, 0.0], [-1.0, 2.0]);
}

#[test]
fn reflection() {
    let (incident, normal) = ([1f32, -2.0, 3.0], [0f32, 1.0, 0.0]);
    gives(F::Reflect, &[vector(&incident), vector(&normal)], &[1f32, 2.0, 3.0]);
    // 2 * dot = -2: the normal need not have length 1.
    let (incident, normal) = (halves([1.0, -2.0]), halves([1.0, 1.0]));
    gives(F::Reflect, &[vector(&incident), vector(&normal)], &halves([3.0, 0.0]));
}

#[test]
fn refraction() {
    let normal = || vector(&[0f32, 1.0]);
    let straight = [vector(&[0f32, -1.0]), normal(), scalar(0.5f32)];
    gives(F::Refract, &straight, &[0f32, -1.0]);
    // Total reflection: k = 1 - 4 * (1 - 0.36) < 0.
    let flat = [vector(&[0.8f32, -0.6]), normal(), scalar(2f32)];
    gives(F::Refract, &flat, &[0f32, 0.0]);
    // By Snell's law the sine is multiplied by 0.75.
    let bent = [vector(&[0.8f32, -0.6]), normal(), scalar(0.75f32)];
    comes_near(F::Refract, &bent, &[0.6, -0.8], 1e-6);
    let [x, y] = [halves([0.8, -0.6]), halves([0.0, 1.0])];
    let bent = [vector(&x), vector(&y), scalar(f16::from_f32(0.75))];
    comes_near(F::Refract, &bent, &[0.6, -0.8], 4e-3);
}
