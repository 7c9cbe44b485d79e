//! Tests of buffers of more than 4 GiB: positions in bytes exceed 32 bits. Kernels in WGSL bind
//! less than that and reject them; the others compute with 64-bit addresses. They run on request
//! only, since the device needs 9 GiB.

use scry_gpu::{Buffer, Device, DeviceKind, GpuError};
use scry_kernels::{Kernels, ScanKind};
use scry_test_support::succeed;

use crate::support::{assert_close, each_variant};

/// The elements of each row of a matrix.
const COLUMNS: usize = 8192;

/// Rows of a matrix with more than 2^30 elements of four bytes.
const ROWS: usize = (1 << 17) + 5;

/// Rows on both sides of what 32-bit positions reach, in elements and in bytes of four.
const SAMPLES: [usize; 8] =
    [0, (1 << 15) - 1, 1 << 15, (1 << 16) - 1, 1 << 16, (1 << 17) - 1, 1 << 17, ROWS - 1];

/// Returns a matrix of random numbers from 0 to 1; `None` if the device has no such buffers.
fn matrix(gpu: &Device) -> Option<Buffer<f32>> {
    let limit = gpu.info().limits.max_buffer_size;
    if gpu.info().kind == DeviceKind::Software || limit < 4 * (ROWS * COLUMNS) as u64 {
        eprintln!("skipped on {}: a buffer has at most {limit} bytes", gpu.name());
        return None;
    }
    let x = succeed(gpu.alloc::<f32>(ROWS * COLUMNS));
    let kernels = succeed(Kernels::new(gpu));
    // Parts that WGSL can bind.
    let half = ROWS / 2 * COLUMNS;
    for (seed, part) in [(1, x.slice(..half)), (2, x.slice(half..))] {
        succeed(succeed(kernels.random_uniform(&succeed(part), seed)).run());
    }
    Some(x)
}

/// Returns a row in f64.
fn row(x: &Buffer<f32>, nth: usize, columns: usize) -> Vec<f64> {
    let row = succeed(succeed(x.slice(nth * columns..(nth + 1) * columns)).download());
    row.into_iter().map(f64::from).collect()
}

/// Returns whether a variant is rejected on a device, which is correct if the error names the size
/// of bindings, or a capability or library that the variant needs.
fn is_rejected(what: &str, prepared: &scry_gpu::Result<scry_kernels::Op>) -> bool {
    let Err(error) = prepared else { return false };
    let is_expected = match error {
        GpuError::Capability(_) | GpuError::Library(_) => true,
        other => other.to_string().contains("4 GiB") || other.to_string().contains("binding"),
    };
    assert!(is_expected, "{what}: {error}");
    let text = error.to_string();
    assert!(text.matches("Kernels::").count() == 1, "{what}: the function is named twice: {text}");
    eprintln!("skipped: {error}");
    true
}

#[test]
#[ignore = "needs 9 GiB on the device"]
fn rows_beyond_4_gib_match_reference() {
    each_variant("softmax", |kernels, what| {
        let Some(x) = matrix(kernels.device()) else { return };
        let y = succeed(kernels.device().alloc::<f32>(ROWS * COLUMNS));
        let op = kernels.softmax(&x, &y, ROWS, COLUMNS);
        if is_rejected(what, &op) {
            return;
        }
        succeed(succeed(op).run());
        for nth in SAMPLES {
            let exponentials: Vec<f64> = row(&x, nth, COLUMNS).into_iter().map(f64::exp).collect();
            let sum: f64 = exponentials.iter().sum();
            let expected: Vec<f64> = exponentials.iter().map(|x| x / sum).collect();
            let found = succeed(succeed(y.slice(nth * COLUMNS..(nth + 1) * COLUMNS)).download());
            assert_close(&format!("{what}, row {nth}"), 32.0, 1.0 / sum, &found, &expected);
        }
    });
}

#[test]
#[ignore = "needs 5 GiB on the device"]
fn products_beyond_4_gib_match_reference() {
    const N: usize = 4;
    each_variant("matmul", |kernels, what| {
        let Some(a) = matrix(kernels.device()) else { return };
        let host_b: Vec<f32> = (0..COLUMNS * N).map(|at| (at % 7) as f32 - 3.0).collect();
        let b = succeed(kernels.device().upload(&host_b));
        let out = succeed(kernels.device().alloc::<f32>(ROWS * N));
        let op = kernels.matmul(&a, &b, &out, ROWS, N, COLUMNS);
        if is_rejected(what, &op) {
            return;
        }
        succeed(succeed(op).run());
        for nth in SAMPLES {
            let a = row(&a, nth, COLUMNS);
            let dot = |column| -> f64 {
                a.iter().enumerate().map(|(at, a)| a * f64::from(host_b[at * N + column])).sum()
            };
            let expected: Vec<f64> = (0..N).map(dot).collect();
            let found = succeed(succeed(out.slice(nth * N..(nth + 1) * N)).download());
            // Terms of magnitude 1, thousands of them.
            assert_close(&format!("{what}, row {nth}"), 64.0, COLUMNS as f64, &found, &expected);
        }
    });
}

#[test]
#[ignore = "needs 9 GiB on the device"]
fn bindings_beyond_4_gib_are_rejected() {
    each_variant("scan", |kernels, what| {
        let Some(x) = matrix(kernels.device()) else { return };
        let y = succeed(kernels.device().alloc::<f32>(ROWS * COLUMNS));
        let op = kernels.scan(ScanKind::Inclusive, &x, &y);
        assert!(is_rejected(what, &op), "{what}: a scan of more than 4 GiB is prepared");
    });
}
