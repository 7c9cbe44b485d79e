//! Tests of matrix products.

use scry_gpu::Binding;
use scry_kernels::{Activation, Epilogue, Gemm, Kernels, Layout, MatrixLayout, PtxType};
use scry_test_support::{on_each_device, succeed};

use crate::for_each_float;
use crate::support::{Float, assert_close, each_variant, poisoned, random, supported, type_name};

/// m, n and k: below, at and above tiles, and flat, tall and wide matrices.
const SHAPES: [[usize; 3]; 8] = [
    [1, 1, 1],
    [7, 33, 5],
    [64, 64, 16],
    [65, 129, 17],
    [1, 513, 127],
    [257, 1, 33],
    [5, 3, 1001],
    [130, 70, 64],
];

fn check_matmul<T: Float>(kernels: &Kernels, what: &str) {
    let gpu = kernels.device();
    for [m, n, k] in SHAPES {
        let (a, b) = (random::<T>(1, m * k), random::<T>(2, k * n));
        let (device_a, device_b) = (succeed(gpu.upload(&a)), succeed(gpu.upload(&b)));
        let out = poisoned::<T>(gpu, m * n + 1);
        let op = kernels.matmul(&device_a, &device_b, &out, m, n, k);
        let Some(op) = supported(op) else { return };
        succeed(op.run());
        let out = succeed(out.download());
        let sum = |at: usize| {
            (0..k).map(|l| a[at / n * k + l].wide() * b[l * n + at % n].wide()).sum::<f64>()
        };
        let expected: Vec<f64> = (0..m * n).map(sum).collect();
        let what = format!("{what}, {} {m} x {n} x {k}", type_name::<T>());
        assert_close(&what, 8.0, (k as f64).sqrt().max(1.0), &out[..m * n], &expected);
        assert!(out[m * n].wide().is_nan(), "{what}: wrote beyond the matrix");
    }
}

#[test]
fn special_values_stay_in_their_lines() {
    for [m, n, k] in [[3, 5, 20], [65, 70, 40]] {
        let (mut a, mut b) = (vec![1.0f32; m * k], vec![1.0f32; k * n]);
        // NaN in the second row of `a`, an infinity in the third column of `b`.
        (a[k], b[4 * n + 2]) = (f32::NAN, f32::INFINITY);
        let expected = |at: usize| match (at / n, at % n) {
            (1, _) => f64::NAN,
            (_, 2) => f64::INFINITY,
            _ => k as f64,
        };
        let expected: Vec<f64> = (0..m * n).map(expected).collect();
        each_variant("matmul", |kernels, what| {
            let gpu = kernels.device();
            let (device_a, device_b) = (succeed(gpu.upload(&a)), succeed(gpu.upload(&b)));
            let out = poisoned::<f32>(gpu, m * n);
            let op = kernels.matmul(&device_a, &device_b, &out, m, n, k);
            let Some(op) = supported(op) else { return };
            succeed(op.run());
            let what = format!("{what}, {m} x {n} x {k}");
            assert_close(&what, 0.0, 1.0, &succeed(out.download()), &expected);
        });
    }
}

#[test]
fn matmul_matches_reference() {
    each_variant("matmul", |kernels, what| {
        for_each_float!(check_matmul(kernels, what));
    });
}

/// A position in a batch of matrices.
fn position(layout: MatrixLayout, [batch, row, column]: [usize; 3]) -> usize {
    let (row, column) = match layout.order {
        Layout::RowMajor => (row * layout.ld as usize, column),
        Layout::ColMajor => (row, column * layout.ld as usize),
    };
    batch * layout.stride as usize + row + column
}

/// The activation of a number, as documented.
fn activate(activation: Activation, x: f64) -> f64 {
    match activation {
        Activation::None => x,
        Activation::Relu => x.max(0.0),
        Activation::Gelu => {
            let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3));
            x / 2.0 * (1.0 + inner.tanh())
        }
        Activation::GeluErf => {
            // The derivative of the error function, by Simpson's rule.
            let (at, steps) = ((x / std::f64::consts::SQRT_2).clamp(-6.0, 6.0), 400);
            let density = |n: i32| (-(at * f64::from(n) / f64::from(steps)).powi(2)).exp();
            let weight = |n: i32| [2.0, 4.0][(n % 2) as usize];
            let inner: f64 = (1..steps).map(|n| weight(n) * density(n)).sum();
            let integral = (density(0) + inner + density(steps)) * at / f64::from(3 * steps);
            x / 2.0 * (1.0 + integral * std::f64::consts::FRAC_2_SQRT_PI)
        }
        Activation::Silu => x / (1.0 + (-x).exp()),
    }
}

fn check_gemm(kernels: &Kernels, what: &str, gemm: &Gemm) -> bool {
    let gpu = kernels.device();
    let lens: Vec<_> = gemm.buffers().expect("it is valid").iter().map(|it| it.len).collect();
    let mut data: Vec<Vec<f32>> =
        (1..).zip(&lens).map(|(seed, len)| random(seed, *len as usize)).collect();
    if gemm.epilogue.beta == 0.0 {
        // Not read.
        data[lens.len() - 1].fill(f32::NAN);
    }
    let buffers: Vec<_> = data.iter().map(|data| succeed(gpu.upload(data))).collect();
    let arguments: Vec<&dyn Binding> = buffers.iter().map(|buffer| buffer as _).collect();
    let Some(op) = supported(kernels.gemm(gemm, &arguments)) else { return false };
    succeed(op.run());
    let (out, previous) = (succeed(buffers[lens.len() - 1].download()), &data[lens.len() - 1]);
    let mut expected: Vec<f64> = previous.iter().map(|x| f64::from(*x)).collect();
    let [m, n, k, batch] = [gemm.m, gemm.n, gemm.k, gemm.batch].map(|size| size as usize);
    let Epilogue { alpha, beta, bias, activation } = gemm.epilogue;
    for (z, i, j) in (0..batch * m * n).map(|at| (at / (m * n), at / n % m, at % n)) {
        let product = |l: usize| {
            f64::from(data[0][position(gemm.a, [z, i, l])])
                * f64::from(data[1][position(gemm.b, [z, l, j])])
        };
        let at = position(gemm.out, [z, i, j]);
        let mut value = f64::from(alpha) * (0..k).map(product).sum::<f64>();
        value += if beta == 0.0 { 0.0 } else { f64::from(beta) * f64::from(previous[at]) };
        value += if bias { f64::from(data[2][j]) } else { 0.0 };
        expected[at] = activate(activation, value);
    }
    let scale = (k as f64).sqrt().max(8.0);
    assert_close(&format!("{what}, {gemm:?}"), 32.0, scale, &out, &expected);
    true
}

#[test]
fn gemm_of_any_layout_matches_reference() {
    each_variant("gemm", |kernels, what| {
        for a in [Layout::RowMajor, Layout::ColMajor] {
            for b in [Layout::RowMajor, Layout::ColMajor] {
                let mut gemm = Gemm::new(37, 70, 19, PtxType::F32).with_layouts(a, b);
                gemm.batch = 3;
                gemm.a.ld += 5;
                gemm.a.stride = 40 * 50;
                gemm.b.stride = 0;
                gemm.out.ld += 2;
                gemm.out.stride = 40 * 80;
                if !check_gemm(kernels, what, &gemm) {
                    return;
                }
            }
        }
    });
}

/// Few rows or columns, contiguous along `k`: around the sizes that the CPU device multiplies
/// without packing, and those of its tiles.
#[test]
fn gemm_of_few_contiguous_rows_matches_reference() {
    each_variant("gemm", |kernels, what| {
        for [m, n, k] in [
            [2, 71, 256],
            [3, 2, 300],
            [4, 1001, 256],
            [900, 5, 260],
            [3, 70, 255],
            [7, 33, 257],
            [70, 6, 263],
            [33, 32, 264],
            [33, 32, 1024],
            [33, 34, 270],
            [1, 5, 400],
            [2, 3, 16_384],
            [2, 3, 16_385],
        ] {
            let mut gemm = Gemm::new(m, n, k, PtxType::F32);
            gemm = gemm.with_layouts(Layout::RowMajor, Layout::ColMajor);
            gemm.a.ld += 3;
            gemm.b.ld += 1;
            gemm.out.ld += 2;
            gemm.epilogue = Epilogue { alpha: 0.5, beta: -2.0, ..gemm.epilogue };
            if !check_gemm(kernels, what, &gemm) {
                return;
            }
            gemm.epilogue.beta = 0.0;
            gemm.out = MatrixLayout::packed(Layout::ColMajor, m + 1, n);
            check_gemm(kernels, what, &gemm);
        }
    });
}

/// Products, and others that compute the same with strides that have no effect, such as those of a
/// tensor's batch of one, or as a batch of their rows.
fn equal_products() -> Vec<(Gemm, Gemm)> {
    let mut cases = Vec::new();
    for [m, n, k] in [[37, 70, 19], [1, 64, 40], [64, 1, 24], [68, 36, 1]] {
        let plain = Gemm::new(m, n, k, PtxType::F32);
        let mut other = plain;
        (other.a.stride, other.b.stride, other.out.stride) = (0, 7, 0);
        if m == 1 {
            (other.a.ld, other.out.ld) = (0, n + 9);
        }
        if k == 1 {
            other.b.ld = 2;
        }
        cases.push((plain, other));
        let mut batch = plain;
        (batch.batch, batch.b.stride) = (3, 0);
        cases.push((Gemm::new(3 * m, n, k, PtxType::F32), batch));
    }
    cases
}

#[test]
fn strides_without_effect_allow_all_variants() {
    let cases = equal_products();
    each_variant("gemm", |kernels, what| {
        for (plain, other) in &cases {
            let is_supported = check_gemm(kernels, what, plain);
            assert_eq!(check_gemm(kernels, what, other), is_supported, "{what}, {other:?}");
        }
    });
    on_each_device(|gpu| {
        let kernels = succeed(Kernels::new(gpu));
        let variant = |gemm| succeed(kernels.explain_gemm(gemm)).variant();
        for (plain, other) in &cases {
            assert_eq!(variant(other), variant(plain), "{other:?}");
        }
    });
}

#[test]
fn gemm_epilogues_match_reference() {
    each_variant("gemm", |kernels, what| {
        for activation in [
            Activation::None,
            Activation::Relu,
            Activation::Gelu,
            Activation::GeluErf,
            Activation::Silu,
        ] {
            for (bias, beta) in [(false, 0.5), (true, 0.0), (true, -2.0)] {
                let mut gemm = Gemm::new(17, 65, 33, PtxType::F32);
                gemm.epilogue = Epilogue { alpha: 0.25, beta, bias, activation };
                if !check_gemm(kernels, what, &gemm) {
                    return;
                }
            }
        }
    });
}

#[test]
fn activations_keep_nan() {
    each_variant("gemm", |kernels, what| {
        let gpu = kernels.device();
        for activation in
            [Activation::Relu, Activation::Gelu, Activation::GeluErf, Activation::Silu]
        {
            let mut gemm = Gemm::new(3, 5, 20, PtxType::F32);
            gemm.epilogue.activation = activation;
            let (mut a, b) = (vec![-1.0f32; 60], [1.0f32; 100]);
            a[20] = f32::NAN;
            let (a, b) = (succeed(gpu.upload(&a)), succeed(gpu.upload(&b)));
            let out = poisoned::<f32>(gpu, 15);
            let Some(op) = supported(kernels.gemm(&gemm, &[&a, &b, &out])) else { return };
            succeed(op.run());
            let out = succeed(out.download());
            // Only the second row of `a` has a NaN.
            let is_expected = |(n, x): (usize, &f32)| match n / 5 {
                1 => x.is_nan(),
                _ => x.abs() < 1e-6,
            };
            assert!(out.iter().enumerate().all(is_expected), "{what}, {activation:?}: {out:?}");
        }
    });
}

#[test]
fn product_over_nothing_is_zero() {
    each_variant("matmul", |kernels, what| {
        let gpu = kernels.device();
        let none = succeed(gpu.alloc::<f32>(0));
        let out = poisoned::<f32>(gpu, 6);
        let Some(op) = supported(kernels.matmul(&none, &none, &out, 2, 3, 0)) else { return };
        succeed(op.run());
        assert_eq!(succeed(out.download()), [0.0; 6], "{what}");
    });
}
