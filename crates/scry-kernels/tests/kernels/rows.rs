//! Tests of softmax and norms.

use scry_kernels::Kernels;
use scry_test_support::succeed;

use crate::for_each_float;
use crate::support::{
    Float, SIZES, assert_close, each_variant, poisoned, random, supported, type_name,
};

/// Rows and columns: short and long rows, and rows longer than the invocations of a workgroup hold.
const SHAPES: [[usize; 2]; 8] =
    [[1, 1], [3, 2], [257, 5], [33, 33], [7, 1000], [5, 1024], [2, 4097], [2, 20_011]];

/// Returns each row's results of a function, in f64.
fn by_rows<T: Float>(x: &[T], columns: usize, row: impl Fn(&[f64]) -> Vec<f64>) -> Vec<f64> {
    let rows = x.chunks(columns);
    rows.flat_map(|x| row(&x.iter().map(|x| x.wide()).collect::<Vec<_>>())).collect()
}

/// The softmax of a row, or its logarithm.
fn softmax(row: &[f64], is_logarithm: bool) -> Vec<f64> {
    let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = row.iter().map(|x| (x - largest).exp()).sum();
    let result = |x: &f64| match is_logarithm {
        true => x - largest - sum.ln(),
        false => (x - largest).exp() / sum,
    };
    row.iter().map(result).collect()
}

fn check_softmax<T: Float>(kernels: &Kernels, what: &str, is_logarithm: bool) {
    let gpu = kernels.device();
    for [rows, columns] in SHAPES {
        let x: Vec<T> =
            random::<f32>(1, rows * columns).into_iter().map(|x| T::round(8.0 * x)).collect();
        // One more element, which must not be written.
        let y = poisoned::<T>(gpu, rows * columns + 1);
        let input = succeed(gpu.upload(&x));
        let op = match is_logarithm {
            true => kernels.log_softmax(&input, &y, rows, columns),
            false => kernels.softmax(&input, &y, rows, columns),
        };
        let Some(op) = supported(op) else { return };
        succeed(op.run());
        let y = succeed(y.download());
        let expected = by_rows(&x, columns, |row| softmax(row, is_logarithm));
        let what = format!("{what}, {} {rows} x {columns}", type_name::<T>());
        let scale = if is_logarithm { 20.0 } else { 1.0 };
        assert_close(&what, 16.0, scale, &y[..rows * columns], &expected);
        assert!(y[rows * columns].wide().is_nan(), "{what}: wrote beyond the matrix");
    }
}

#[test]
fn softmax_matches_reference() {
    each_variant("softmax", |kernels, what| {
        for_each_float!(check_softmax(kernels, what, false));
    });
    each_variant("log_softmax", |kernels, what| {
        for_each_float!(check_softmax(kernels, what, true));
    });
}

#[test]
fn softmax_of_special_values() {
    const INFINITY: f32 = f32::INFINITY;
    let x = [
        [0.0, -INFINITY, 0.0, -INFINITY],
        [-INFINITY; 4],
        [1.0, f32::NAN, 2.0, 3.0],
        [f32::MAX, -f32::MAX, f32::MAX, 0.0],
        [1e-40, -1e-40, 0.0, -0.0],
    ];
    const NAN: f64 = f64::NAN;
    let expected = [[0.5, 0.0, 0.5, 0.0], [NAN; 4], [NAN; 4], [0.5, 0.0, 0.5, 0.0], [0.25; 4]];
    each_variant("softmax", |kernels, what| {
        let input = succeed(kernels.device().upload(x.as_flattened()));
        let y = poisoned::<f32>(kernels.device(), 20);
        let Some(op) = supported(kernels.softmax(&input, &y, 5, 4)) else { return };
        succeed(op.run());
        assert_close(what, 4.0, 1.0, &succeed(y.download()), expected.as_flattened());
    });
}

/// Layer norm, or RMS norm, of a row.
fn norm(row: &[f64], is_centered: bool, epsilon: f64, weight: &[f64], bias: &[f64]) -> Vec<f64> {
    let count = row.len() as f64;
    let mean = if is_centered { row.iter().sum::<f64>() / count } else { 0.0 };
    let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
    let scale = 1.0 / (variance + epsilon).sqrt();
    row.iter().zip(weight).zip(bias).map(|((x, w), b)| (x - mean) * scale * w + b).collect()
}

fn check_norm<T: Float>(kernels: &Kernels, what: &str, is_centered: bool) {
    let gpu = kernels.device();
    for [rows, columns] in SHAPES {
        for terms in 0..=2 {
            let x: Vec<T> = random(1, rows * columns);
            let [weight, bias] = [2, 3].map(|seed| random::<T>(seed, columns));
            let y = poisoned::<T>(gpu, rows * columns);
            let inputs = [&x, &weight, &bias].map(|data| succeed(gpu.upload(data)));
            let w = (terms > 0).then_some(&inputs[1] as &dyn scry_gpu::Binding);
            let b = (terms > 1 && is_centered).then_some(&inputs[2] as &dyn scry_gpu::Binding);
            let op = match is_centered {
                true => kernels.layer_norm(&inputs[0], w, b, &y, rows, columns, 1e-3),
                false => kernels.rms_norm(&inputs[0], w, &y, rows, columns, 1e-3),
            };
            let Some(op) = supported(op) else { return };
            succeed(op.run());
            let wide = |data: &[T], is_used: bool, neutral: f64| -> Vec<f64> {
                data.iter().map(|x| if is_used { x.wide() } else { neutral }).collect()
            };
            let (weight, bias) = (wide(&weight, w.is_some(), 1.0), wide(&bias, b.is_some(), 0.0));
            let expected = by_rows(&x, columns, |row| norm(row, is_centered, 1e-3, &weight, &bias));
            let what = format!("{what}, {} {rows} x {columns}, {terms}", type_name::<T>());
            assert_close(&what, 16.0, 8.0, &succeed(y.download()), &expected);
        }
    }
}

#[test]
fn norms_match_reference() {
    each_variant("layer_norm", |kernels, what| {
        for_each_float!(check_norm(kernels, what, true));
    });
    each_variant("rms_norm", |kernels, what| {
        for_each_float!(check_norm(kernels, what, false));
    });
}

#[test]
fn norms_of_special_values() {
    const NAN: f64 = f64::NAN;
    let x = [
        [1.0, f32::NAN, 2.0, 3.0],
        [f32::INFINITY, 1.0, -1.0, 0.0],
        [2.0, -2.0, 2.0, -2.0],
        [0.0, -0.0, 0.0, -0.0],
    ];
    let (rest, zeros) = ([1.0, -1.0, 1.0, -1.0], [0.0; 4]);
    let check = |kernels: &Kernels, what: &str, is_centered: bool, expected: [[f64; 4]; 4]| {
        let input = succeed(kernels.device().upload(x.as_flattened()));
        let y = poisoned::<f32>(kernels.device(), 16);
        let op = match is_centered {
            true => kernels.layer_norm(&input, None, None, &y, 4, 4, 1e-30),
            false => kernels.rms_norm(&input, None, &y, 4, 4, 1e-30),
        };
        let Some(op) = supported(op) else { return };
        succeed(op.run());
        assert_close(what, 4.0, 1.0, &succeed(y.download()), expected.as_flattened());
    };
    each_variant("layer_norm", |kernels, what| {
        check(kernels, what, true, [[NAN; 4], [NAN; 4], rest, zeros]);
    });
    each_variant("rms_norm", |kernels, what| {
        // Numbers divided by infinity are 0, infinity divided by itself is NaN.
        check(kernels, what, false, [[NAN; 4], [NAN, 0.0, 0.0, 0.0], rest, zeros]);
    });
}

#[test]
fn empty_matrices_launch_nothing() {
    each_variant("softmax", |kernels, what| {
        let gpu = kernels.device();
        let (x, y) = (poisoned::<f32>(gpu, 4), poisoned::<f32>(gpu, 4));
        for [rows, columns] in [[0, 4], [4, 0], [0, 0]] {
            let Some(op) = supported(kernels.softmax(&x, &y, rows, columns)) else { continue };
            assert!(op.kernel_names().is_empty(), "{what}");
            succeed(op.run());
        }
        assert!(succeed(y.download()).iter().all(|y| y.is_nan()), "{what}");
    });
}

#[test]
fn many_short_rows_are_all_computed() {
    let rows = 70_001;
    each_variant("softmax", |kernels, what| {
        let gpu = kernels.device();
        let x = succeed(gpu.upload(&vec![1.0f32; rows * SIZES[2]]));
        let y = poisoned::<f32>(gpu, rows * SIZES[2]);
        let Some(op) = supported(kernels.softmax(&x, &y, rows, SIZES[2])) else { return };
        succeed(op.run());
        let third = 1.0 / 3.0;
        let y = succeed(y.download());
        assert!(y.iter().all(|y| (y - third).abs() < 1e-6), "{what}");
    });
}
