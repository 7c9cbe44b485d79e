//! Products on the CPU device.

use scry_gpu::{HostArguments, HostThreads, PreparedLaunch, Result};
use scry_ptx::kernels::gemm::{Activation, Gemm, Layout, MatrixLayout};

use super::Product;
use crate::host::{HostNumbers, write_as_f32};
use crate::host_gemm::{HostStrides, host_gemm};
use crate::operation::Preparation;
use crate::ptx;

pub(super) fn prepare(it: &Product, preparation: &Preparation<'_>) -> Result<Vec<PreparedLaunch>> {
    let gemm = it.gemm;
    preparation.host("host_gemm", it.arguments.clone(), move |arguments| {
        multiply(&gemm, arguments);
    })
}

/// Multiplies each matrix of a batch.
fn multiply(gemm: &Gemm, arguments: &mut HostArguments<'_>) {
    let (element, output) = (ptx::dtype(gemm.element), ptx::dtype(gemm.output));
    let [a, b] = [0, 1].map(|binding| HostNumbers::read(arguments, binding, element));
    let bias = gemm.epilogue.bias.then(|| HostNumbers::read(arguments, 2, output));
    let out = 2 + usize::from(gemm.epilogue.bias);
    let bias = bias.as_ref().map(HostNumbers::as_slice);
    let threads = arguments.threads();
    write_as_f32(arguments, out, output, |out| {
        products(gemm, threads, [a.as_slice(), b.as_slice()], bias, out);
    });
}

fn products(
    gemm: &Gemm,
    threads: HostThreads<'_>,
    [a, b]: [&[f32]; 2],
    bias: Option<&[f32]>,
    out: &mut [f32],
) {
    let [m, n, k] = [gemm.m, gemm.n, gemm.k].map(|size| size as usize);
    let scalars = [gemm.epilogue.alpha, gemm.epilogue.beta];
    for z in 0..gemm.batch as usize {
        let [a_start, b_start, out_start] =
            [gemm.a, gemm.b, gemm.out].map(|layout| z * layout.stride as usize);
        let a = (a.get(a_start..).unwrap_or_default(), strides(gemm.a));
        let b = (b.get(b_start..).unwrap_or_default(), strides(gemm.b));
        let out = &mut out[out_start..];
        host_gemm(Some(threads), [m, n, k], scalars, a, b, (out, strides(gemm.out)));
        finish(gemm, threads, bias, out);
    }
}

/// Returns the distances between neighbours in a matrix.
pub(in crate::ops) fn strides(layout: MatrixLayout) -> HostStrides {
    let ld = layout.ld as usize;
    match layout.order {
        Layout::RowMajor => HostStrides { rows: ld, columns: 1 },
        Layout::ColMajor => HostStrides { rows: 1, columns: ld },
    }
}

/// The fewest results for which another thread is worth it.
const MIN_RESULTS: usize = 1 << 11;

/// Adds the bias, and applies the activation.
fn finish(gemm: &Gemm, threads: HostThreads<'_>, bias: Option<&[f32]>, out: &mut [f32]) {
    let activation = gemm.epilogue.activation;
    let (m, n) = (gemm.m as usize, gemm.n as usize);
    if (bias.is_none() && activation == Activation::None) || m == 0 || n == 0 {
        return;
    }
    let finished = |result: f32, column: usize| {
        activate(activation, result + bias.map_or(0.0, |bias| bias[column]))
    };
    let HostStrides { rows, columns } = strides(gemm.out);
    if (rows, columns) == (n, 1) {
        let rows_of_part = MIN_RESULTS.div_ceil(n);
        return threads.for_each_chunk(&mut out[..m * n], rows_of_part * n, |_, part| {
            for row in part.chunks_exact_mut(n) {
                let results = row.iter_mut().enumerate();
                results.for_each(|(column, result)| *result = finished(*result, column));
            }
        });
    }
    for row in 0..m {
        for column in 0..n {
            let result = &mut out[row * rows + column * columns];
            *result = finished(*result, column);
        }
    }
}

fn activate(activation: Activation, x: f32) -> f32 {
    match activation {
        Activation::None => x,
        // Not `max`, which is 0 for NaN.
        Activation::Relu if x < 0.0 => 0.0,
        Activation::Relu => x,
        Activation::Gelu => x / (1.0 + (-1.595_769 * x * (1.0 + 0.044_715 * x * x)).exp()),
        Activation::GeluErf => {
            // `(x + |x| * erf(|x| / sqrt(2))) / 2`, with Abramowitz and Stegun, 7.1.26.
            let at = x.abs() * std::f32::consts::FRAC_1_SQRT_2;
            let t = 1.0 / (1.0 + 0.327_591_1 * at);
            let polynomial = [-1.453_152, 1.421_413_8, -0.284_496_74, 0.254_829_6]
                .into_iter()
                .fold(1.061_405_4, |sum, coefficient| sum * t + coefficient);
            0.5 * (x + x.abs() * (1.0 - polynomial * t * (-at * at).exp()))
        }
        Activation::Silu => x / (1.0 + (-x).exp()),
    }
}
