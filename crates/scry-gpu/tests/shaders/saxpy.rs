//! Tests of saxpy, `y = a·x + y`.

use scry_gpu::{Device, shaders};
use scry_test_support::{on_each_device, random_f32, succeed};

use crate::harness::{LENGTHS, assert_close};

fn saxpy(a: f32, x: &[f32], y: &[f32]) -> Vec<f64> {
    x.iter().zip(y).map(|(x, y)| f64::from(a) * f64::from(*x) + f64::from(*y)).collect()
}

fn check(gpu: &Device, source: &str, n: usize, invocations: usize) {
    let (x, y) = (random_f32(1, n), random_f32(2, n));
    let launch = || {
        let kernel = gpu.compile(source)?;
        let (x, y) = (gpu.upload(&x)?, gpu.upload(&y)?);
        gpu.run_with_immediates(&kernel, &[&x, &y], invocations, &-1.75f32)?;
        y.download()
    };
    assert_close(&format!("length {n}"), &succeed(launch()), &saxpy(-1.75, &x, &y));
}

#[test]
fn saxpy_matches_reference() {
    on_each_device(|gpu| {
        for n in LENGTHS {
            check(gpu, shaders::saxpy::SAXPY, n, n);
            check(gpu, shaders::saxpy::SAXPY_VEC4, 4 * n, n);
        }
    });
}
