//! Tests of matrix products.

use scry_gpu::{Binding, GpuError, bf16, f16};
use scry_kernels::{Activation, Epilogue, Gemm, Kernels, Layout, MatrixLayout, PtxType};
use scry_test_support::succeed;

use crate::harness::{
    TestElement, assert_close, having_variant, kernels, null_h200_kernels, poisoned, random,
};

/// m, n and k: near tile sizes and multiples of 16 bytes; tall, wide and flat matrices.
const SHAPES: [[usize; 3]; 12] = [
    [1, 1, 1],
    [7, 33, 5],
    [33, 7, 127],
    [64, 128, 64],
    [127, 129, 65],
    [1, 1023, 4097],
    [16, 256, 512],
    [4097, 1, 33],
    [5, 4097, 7],
    [129, 33, 1023],
    [1023, 127, 256],
    [512, 512, 512],
];

/// A product and its row-major operands.
struct Case<T> {
    mnk: [usize; 3],
    a: Vec<T>,
    b: Vec<T>,
}

impl<T: TestElement> Case<T> {
    fn new(mnk: [usize; 3]) -> Self {
        let [m, n, k] = mnk;
        Self { mnk, a: random(1, m * k), b: random(2, k * n) }
    }

    /// Returns about 1500 expected results, the last one among them: index, sum of products, and
    /// sum of absolute products.
    fn sample_results(&self) -> Vec<(usize, f64, f64)> {
        let [m, n, k] = self.mnk;
        let step = (m * n).div_ceil(1500).max(1) | 1;
        let indices = (0..m * n).step_by(step).chain([m * n - 1]);
        let sum = |at: usize| {
            let products =
                (0..k).map(|l| self.a[at / n * k + l].to_f64() * self.b[l * n + at % n].to_f64());
            products
                .fold((at, 0.0, 0.0), |(at, sum, abs_sum), it| (at, sum + it, abs_sum + it.abs()))
        };
        indices.map(sum).collect()
    }
}

/// Multiplies on the device, and compares.
fn check<T: TestElement>(kernels: &Kernels, mnk: [usize; 3]) {
    let ([m, n, k], gpu, case) = (mnk, kernels.device(), Case::<T>::new(mnk));
    let (a, b) = (succeed(gpu.upload(&case.a)), succeed(gpu.upload(&case.b)));
    let out = poisoned::<T>(gpu, m * n);
    let op = succeed(kernels.matmul(&a, &b, &out, m, n, k));
    succeed(op.run());
    let (out, sample) = (succeed(out.download()), case.sample_results());
    let scale = sample.iter().fold(0.0, |scale: f64, (_, _, abs_sum)| scale.max(*abs_sum));
    let (variant, element) = (op.explain().variant(), std::any::type_name::<T>());
    let what = format!("{variant}, {element} {m} x {n} x {k}");
    assert!(out.iter().all(|x| x.to_f64().is_finite()), "{what}: not all elements were written");
    let results: Vec<_> = sample.iter().map(|(at, sum, _)| (out[*at], *sum)).collect();
    assert_close(&what, scale, &results);
}

#[test]
fn matmul_of_every_type_matches_reference() {
    for kernels in kernels() {
        for mnk in SHAPES {
            check::<bf16>(&kernels, mnk);
            check::<f16>(&kernels, mnk);
            check::<f32>(&kernels, mnk);
        }
    }
}

#[test]
fn cublas_matmul_matches_reference() {
    for kernels in kernels() {
        let kernels = having_variant(&kernels, "cublas");
        let [one, out] = [(); 2].map(|()| poisoned::<f32>(kernels.device(), 1));
        let multiplied = kernels.matmul(&one, &one, &out, 1, 1, 1);
        if let Err(missing @ GpuError::Library(_)) = multiplied {
            eprintln!("skipped: {missing}");
            return;
        }
        for mnk in SHAPES {
            check::<bf16>(&kernels, mnk);
            check::<f32>(&kernels, mnk);
        }
    }
}

#[test]
fn empty_matmul_launches_nothing() {
    for kernels in kernels() {
        let gpu = kernels.device();
        let (none, out) = (succeed(gpu.alloc::<bf16>(0)), poisoned::<bf16>(gpu, 6));
        for variant in ["ptx", "cublas"] {
            let kernels = having_variant(&kernels, variant);
            succeed(out.fill(bf16::NAN));
            let sum_of_none = succeed(kernels.matmul(&none, &none, &out, 2, 3, 0));
            succeed(sum_of_none.run());
            assert_eq!(succeed(out.download()), [bf16::ZERO; 6], "{variant}");
            let empty = succeed(kernels.matmul(&none, &out, &none, 0, 3, 2));
            assert!(empty.kernel_names().is_empty(), "{variant}");
            succeed(empty.run());
        }
    }
}

#[test]
fn cublas_products_over_nothing_are_zero_fills() {
    let kernels = having_variant(&null_h200_kernels(), "cublas");
    let buffer = || succeed(kernels.device().alloc::<f32>(6));
    let [a, b, out] = [buffer(), buffer(), buffer()];
    let names = |k| {
        let op = succeed(kernels.matmul(&a, &b, &out, 2, 3, k));
        op.kernel_names().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(names(2), ["cublas_matmul"]);
    assert!(matches!(&names(0)[..], [name] if name.starts_with("gemm_")), "{:?}", names(0));
}

/// `relu(2 * a * b + 3 * out + bias)` for each product of a batch, with column-major `a` and `b`.
#[test]
fn full_gemm_matches_reference() {
    let (m, n, k, batch) = (65, 129, 33, 3);
    for kernels in kernels() {
        let gpu = kernels.device();
        let mut gemm =
            Gemm::new(m, n, k, PtxType::F16).with_layouts(Layout::ColMajor, Layout::ColMajor);
        gemm.batch = batch;
        gemm.epilogue =
            Epilogue { alpha: 2.0, beta: 3.0, bias: true, activation: Activation::Relu };
        let [m, n, k, batch] = [m, n, k, batch].map(|side| side as usize);
        let (a, b) = (random::<f16>(1, batch * m * k), random::<f16>(2, batch * k * n));
        let (bias, initial) = (random::<f16>(3, n), random::<f16>(4, batch * m * n));
        let inputs = [&a, &b, &bias, &initial].map(|data| succeed(gpu.upload(data)));
        let buffers: Vec<&dyn Binding> = inputs.iter().map(|it| it as _).collect();
        succeed(succeed(kernels.gemm(&gemm, &buffers)).run());
        let out = succeed(inputs[3].download());
        let result = |at: usize| {
            let (z, i, j) = (at / (m * n), at / n % m, at % n);
            let product =
                |l: usize| a[(z * k + l) * m + i].to_f64() * b[(z * n + j) * k + l].to_f64();
            let sum: f64 = (0..k).map(product).sum();
            (out[at], (2.0 * sum + 3.0 * initial[at].to_f64() + bias[j].to_f64()).max(0.0))
        };
        let results: Vec<_> = (0..batch * m * n).map(result).collect();
        assert_close("gemm", 2.0 * k as f64, &results);
    }
}

/// Small products of unaligned rows, which are copied as they are, in all layouts.
#[test]
fn unaligned_layouts_match_reference() {
    const LAYOUTS: [Layout; 2] = [Layout::RowMajor, Layout::ColMajor];
    let sides = [[100, 100, 200], [101, 99, 201], [33, 17, 131], [1000, 501, 1], [70, 30, 3001]];
    let layouts = LAYOUTS.map(|a| LAYOUTS.map(|b| LAYOUTS.map(|out| [a, b, out])));
    for kernels in kernels() {
        for ([m, n, k], layouts) in sides.iter().flat_map(|sides| {
            layouts.as_flattened().as_flattened().iter().map(move |it| (*sides, *it))
        }) {
            let gpu = kernels.device();
            let [a_layout, b_layout, out_layout] = layouts;
            let mut gemm = Gemm::new(m, n, k, PtxType::F16).with_layouts(a_layout, b_layout);
            gemm.out = MatrixLayout::packed(out_layout, m, n);
            let [m, n, k] = [m, n, k].map(|side| side as usize);
            let (a, b) = (random::<f16>(1, m * k), random::<f16>(2, k * n));
            let out = poisoned::<f16>(gpu, m * n);
            let (x, y) = (succeed(gpu.upload(&a)), succeed(gpu.upload(&b)));
            succeed(succeed(kernels.gemm(&gemm, &[&x, &y, &out])).run());
            let out = succeed(out.download());
            let at = |layout, [row, column]: [usize; 2], [rows, columns]: [usize; 2]| match layout {
                Layout::RowMajor => row * columns + column,
                Layout::ColMajor => column * rows + row,
            };
            let result = |nth: usize| {
                let (i, j) = (nth / n, nth % n);
                let product = |l: usize| {
                    a[at(a_layout, [i, l], [m, k])].to_f64()
                        * b[at(b_layout, [l, j], [k, n])].to_f64()
                };
                (out[at(out_layout, [i, j], [m, n])], (0..k).map(product).sum())
            };
            let results: Vec<(f16, f64)> = (0..m * n).step_by(7).map(result).collect();
            assert_close(&format!("{m}x{n}x{k} {layouts:?}"), k as f64, &results);
        }
    }
}

#[test]
fn slices_are_multiplied_in_place() {
    for kernels in kernels() {
        let gpu = kernels.device();
        let case = Case::<bf16>::new([40, 24, 16]);
        // The operands are the second halves of buffers.
        let upload_twice = |data: &[bf16]| succeed(gpu.upload(&[data, data].concat()));
        let (a, b) = (upload_twice(&case.a), upload_twice(&case.b));
        let out = poisoned::<bf16>(gpu, 2 * 40 * 24);
        let (a, b) = (succeed(a.slice(40 * 16..)), succeed(b.slice(16 * 24..)));
        let half = succeed(out.slice(40 * 24..));
        let gemm = Gemm::new(40, 24, 16, PtxType::Bf16);
        succeed(succeed(kernels.gemm(&gemm, &[&a, &b, &half])).run());
        let out = succeed(out.download());
        assert!(out[..40 * 24].iter().all(|x| x.is_nan()), "the first half was written");
        let results: Vec<_> =
            case.sample_results().iter().map(|(at, sum, _)| (out[40 * 24 + at], *sum)).collect();
        assert_close("slices", 16.0, &results);
    }
}
