//! Tests of matrix products.

use half::f16;
use scry_gpu::{Device, Features, Launch, shaders};
use scry_test_support::{on_each_device, random_f32, succeed};

use crate::harness::{assert_close, run, to_u32};

/// m, n and k: products with vectors, and sizes at, near and far from multiples of tile sizes.
const SHAPES: [[usize; 3]; 10] = [
    [1, 1, 1],
    [7, 33, 5],
    [33, 7, 127],
    [1, 1023, 33],
    [1023, 1, 33],
    [127, 129, 65],
    [64, 64, 16],
    [65, 63, 17],
    [3, 5, 1023],
    [130, 131, 9],
];

/// Shapes whose n and k are multiples of four.
const SHAPES_VEC4: [[usize; 3]; 5] =
    [[1, 4, 4], [33, 36, 12], [127, 132, 68], [1023, 4, 8], [5, 260, 1020]];

/// Returns C = A × B.
fn matmul(a: &[f32], b: &[f32], [m, n, k]: [usize; 3]) -> Vec<f64> {
    let mut c = vec![0.0; m * n];
    for row in 0..m {
        for i in 0..k {
            let value = f64::from(a[row * k + i]);
            for column in 0..n {
                c[row * n + column] += value * f64::from(b[i * n + column]);
            }
        }
    }
    c
}

/// Tests a kernel, each invocation of which computes `edge` × `edge` elements, on each shape.
fn check(name: &str, source: &str, edge: usize, shapes: &[[usize; 3]]) {
    on_each_device(|gpu| {
        for (seed, &[m, n, k]) in (1..).zip(shapes) {
            let a = random_f32(seed, m * k);
            let b = random_f32(seed + 100, k * n);
            let launch = Launch::invocations([n.div_ceil(edge), m.div_ceil(edge)]).immediates(&[
                to_u32(m),
                to_u32(n),
                to_u32(k),
            ]);
            let c = run(gpu, source, &[&a, &b], m * n, launch);
            let expected = matmul(&a, &b, [m, n, k]);
            assert_close(&format!("{name}, m {m}, n {n}, k {k}"), &c, &expected);
        }
    });
}

#[test]
fn tiled_16x16_matches_reference() {
    check("TILED_16X16", shaders::matmul::TILED_16X16, 1, &SHAPES);
}

#[test]
fn coarse_64x64_matches_reference() {
    check("COARSE_64X64", shaders::matmul::COARSE_64X64, 4, &SHAPES);
    check("COARSE_64X64_VEC4", shaders::matmul::COARSE_64X64_VEC4, 4, &SHAPES_VEC4);
}

#[test]
fn coarse_8x8_matches_reference() {
    check("COARSE_8X8", shaders::matmul::COARSE_8X8, 8, &SHAPES);
    check("COARSE_8X8_VEC4", shaders::matmul::COARSE_8X8_VEC4, 8, &SHAPES_VEC4);
}

/// The features that the kernels with `f16` operands need.
const COOPERATIVE_FEATURES: Features = Features::COOPERATIVE_MATRIX.union(Features::F16);

/// Returns C = A × B with `f16` operands. Checks that the elements after C in its buffer stay
/// unchanged.
fn run_cooperative(
    gpu: &Device,
    source: &str,
    [m, n, k]: [usize; 3],
    a: &[f16],
    b: &[f16],
) -> Vec<f32> {
    const EXTRA: usize = 300;
    let launch = Launch::workgroups([to_u32(n.div_ceil(128)), to_u32(m.div_ceil(128)), 1]);
    let shape = [to_u32(m), to_u32(n), to_u32(k)];
    let launch = || {
        let kernel = gpu.compile(source)?;
        let (a, b) = (gpu.upload(a)?, gpu.upload(b)?);
        let c = gpu.upload(&vec![f32::NAN; m * n + EXTRA])?;
        gpu.run(&kernel, &[&a, &b, &c], launch.immediates(&shape))?;
        c.download()
    };
    let mut c = succeed(launch());
    let extra = c.split_off(m * n);
    assert!(extra.iter().all(|c| c.is_nan()), "m {m}, n {n}, k {k}: stores beyond C");
    c
}

fn check_cooperative(name: &str, source: &str, shapes: &[[usize; 3]]) {
    on_each_device(|gpu| {
        if !gpu.info().features.contains(COOPERATIVE_FEATURES) {
            return;
        }
        for (seed, &[m, n, k]) in (1..).zip(shapes) {
            let operand = |seed, len| -> Vec<f16> {
                random_f32(seed, len).into_iter().map(f16::from_f32).collect()
            };
            let (a, b) = (operand(seed, m * k), operand(seed + 100, k * n));
            let c = run_cooperative(gpu, source, [m, n, k], &a, &b);
            let to_f32 = |x: &[f16]| x.iter().map(|x| x.to_f32()).collect::<Vec<_>>();
            let expected = matmul(&to_f32(&a), &to_f32(&b), [m, n, k]);
            assert_close(&format!("{name}, m {m}, n {n}, k {k}"), &c, &expected);
        }
    });
}

#[test]
fn cooperative_f16_matches_reference() {
    check_cooperative("COOPERATIVE_F16", shaders::matmul::COOPERATIVE_F16, &SHAPES);
    let vec4 = [&SHAPES_VEC4[..], &[[128, 128, 64], [256, 260, 36]]].concat();
    check_cooperative("COOPERATIVE_F16_VEC4", shaders::matmul::COOPERATIVE_F16_VEC4, &vec4);
}
