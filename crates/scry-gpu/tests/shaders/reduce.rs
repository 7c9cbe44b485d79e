//! Tests of reductions to one number.

use scry_gpu::{Device, Launch, shaders};
use scry_test_support::{on_each_device, random_f32};

use crate::harness::{assert_close_scaled, run};

/// Lengths below, at and above the 2048 elements that a workgroup reads at once.
const LENGTHS: [usize; 9] = [1, 7, 33, 127, 1023, 2048, 2049, 6143, 100_003];

fn sum(x: &[f32]) -> f64 {
    x.iter().copied().map(f64::from).sum()
}

fn max(x: &[f32]) -> f64 {
    x.iter().copied().map(f64::from).fold(f64::NEG_INFINITY, f64::max)
}

fn min(x: &[f32]) -> f64 {
    x.iter().copied().map(f64::from).fold(f64::INFINITY, f64::min)
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

/// Runs both passes: `first` with this number of workgroups, then `second` over their results.
fn reduce(gpu: &Device, first: &str, second: &str, inputs: &[&[f32]], groups: u32) -> f32 {
    let launch = Launch::workgroups([groups, 1, 1]);
    let partial = run(gpu, first, inputs, groups as usize, launch);
    run(gpu, second, &[&partial], 1, Launch::workgroups([1, 1, 1]))[0]
}

/// Compares a kernel, whose elements are `width` floats, with its reference on every length, with
/// few and with many workgroups. `sources` are the kernels of both passes.
fn check(sources: [&str; 2], width: usize, reference: fn(&[f32]) -> f64) {
    on_each_device(|gpu| {
        for n in LENGTHS {
            let x = random_f32(n as u64, n * width);
            let scale = x.iter().map(|x| f64::from(x.abs())).sum();
            for groups in [1, 3, 64] {
                let result = reduce(gpu, sources[0], sources[1], &[&x], groups);
                let what = format!("length {}, {groups} workgroups", x.len());
                assert_close_scaled(scale, &what, &[result], &[reference(&x)]);
            }
        }
    });
}

#[test]
fn sum_matches_reference() {
    check([shaders::reduce::SUM; 2], 1, sum);
    check([shaders::reduce::SUM_VEC4, shaders::reduce::SUM], 4, sum);
}

#[test]
fn max_matches_reference() {
    check([shaders::reduce::MAX; 2], 1, max);
    check([shaders::reduce::MAX_VEC4, shaders::reduce::MAX], 4, max);
}

#[test]
fn min_matches_reference() {
    check([shaders::reduce::MIN; 2], 1, min);
    check([shaders::reduce::MIN_VEC4, shaders::reduce::MIN], 4, min);
}

#[test]
fn dot_matches_reference() {
    on_each_device(|gpu| {
        for n in LENGTHS {
            let (a, b) = (random_f32(1, n), random_f32(2, n));
            let scale = a.iter().zip(&b).map(|(a, b)| f64::from((a * b).abs())).sum();
            let result = reduce(gpu, shaders::reduce::DOT, shaders::reduce::SUM, &[&a, &b], 5);
            assert_close_scaled(scale, &format!("length {n}"), &[result], &[dot(&a, &b)]);
        }
    });
}

#[test]
fn max_and_min_of_last_element() {
    // The maximum of negative numbers is the last element: the result must be neither a wrong
    // neutral element nor out-of-bounds data.
    on_each_device(|gpu| {
        for n in LENGTHS {
            let mut x: Vec<f32> = random_f32(3, n).iter().map(|x| x.abs() - 3.0).collect();
            x[n - 1] = -0.5;
            let largest = reduce(gpu, shaders::reduce::MAX, shaders::reduce::MAX, &[&x], 2);
            assert_eq!(largest, -0.5, "length {n}");
            let x: Vec<f32> = x.iter().map(|x| -x).collect();
            let smallest = reduce(gpu, shaders::reduce::MIN, shaders::reduce::MIN, &[&x], 2);
            assert_eq!(smallest, 0.5, "length {n}");
        }
    });
}
