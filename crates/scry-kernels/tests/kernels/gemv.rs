//! Tests of products of a matrix and a vector.

use scry_gpu::{Binding, Device};
use scry_kernels::Kernels;
use scry_test_support::{on_each_device, succeed};

use crate::for_each_float;
use crate::support::{Float, assert_close, each_variant, poisoned, random, supported, type_name};

/// Rows and columns: chunks and single elements, short, long and few rows, and sums that are split.
const SHAPES: [[usize; 2]; 18] = [
    [1, 1],
    [3, 2],
    [257, 3],
    [1009, 4],
    [33, 8],
    [31, 127],
    [5, 128],
    [129, 256],
    [64, 1009],
    [2, 4097],
    [7, 4104],
    [1, 70_001],
    [1, 80_000],
    [3, 40_000],
    [40_000, 3],
    [70_001, 1],
    [20_000, 12],
    [4097, 31],
];

fn check_gemv<T: Float>(kernels: &Kernels, what: &str, is_transposed: bool) {
    let gpu = kernels.device();
    for [rows, columns] in SHAPES {
        let (from, to) = if is_transposed { (rows, columns) } else { (columns, rows) };
        let (a, x): (Vec<T>, Vec<T>) = (random(1, rows * columns), random(2, from));
        let (device_a, device_x) = (succeed(gpu.upload(&a)), succeed(gpu.upload(&x)));
        let y = poisoned::<T>(gpu, to + 1);
        let op = match is_transposed {
            true => kernels.gemv_transposed(&device_a, &device_x, &y, rows, columns),
            false => kernels.gemv(&device_a, &device_x, &y, rows, columns),
        };
        let Some(op) = supported(op) else { return };
        succeed(op.run());
        let mut expected = vec![0.0; to];
        for (at, a) in a.iter().enumerate() {
            let (row, column) = (at / columns, at % columns);
            let (i, j) = if is_transposed { (column, row) } else { (row, column) };
            expected[i] += a.wide() * x[j].wide();
        }
        let y = succeed(y.download());
        let what = format!("{what}, {} {rows} x {columns}", type_name::<T>());
        let scale = (from as f64).sqrt().max(1.0);
        assert_close(&what, 8.0, scale, &y[..to], &expected);
        assert!(y[to].wide().is_nan(), "{what}: wrote beyond the vector");
    }
}

#[test]
fn products_match_reference() {
    each_variant("gemv", |kernels, what| {
        for_each_float!(check_gemv(kernels, what, false));
    });
}

#[test]
fn transposed_products_match_reference() {
    each_variant("gemv_transposed", |kernels, what| {
        for_each_float!(check_gemv(kernels, what, true));
    });
}

#[test]
fn special_values_stay_in_their_rows() {
    // Rows of 20 elements: what is beyond the end of a row is the next one.
    let mut a = vec![1.0f32; 60];
    (a[20], a[45]) = (f32::NAN, f32::INFINITY);
    each_variant("gemv", |kernels, what| {
        let gpu = kernels.device();
        let (device_a, x) = (succeed(gpu.upload(&a)), succeed(gpu.upload(&[1.0f32; 20])));
        let y = poisoned::<f32>(gpu, 3);
        let Some(op) = supported(kernels.gemv(&device_a, &x, &y, 3, 20)) else { return };
        succeed(op.run());
        let expected = [20.0, f64::NAN, f64::INFINITY];
        assert_close(what, 0.0, 1.0, &succeed(y.download()), &expected);
    });
    each_variant("gemv_transposed", |kernels, what| {
        let gpu = kernels.device();
        let (device_a, x) = (succeed(gpu.upload(&a)), succeed(gpu.upload(&[1.0f32; 3])));
        let y = poisoned::<f32>(gpu, 20);
        let Some(op) = supported(kernels.gemv_transposed(&device_a, &x, &y, 3, 20)) else {
            return;
        };
        succeed(op.run());
        let mut expected = [3.0; 20];
        (expected[0], expected[5]) = (f64::NAN, f64::INFINITY);
        assert_close(what, 0.0, 1.0, &succeed(y.download()), &expected);
    });
}

#[test]
fn sums_of_nothing_are_zero() {
    on_each_device(|gpu| {
        let kernels = succeed(Kernels::new(gpu));
        let none = succeed(gpu.alloc::<f32>(0));
        let y = poisoned::<f32>(gpu, 5);
        succeed(succeed(kernels.gemv(&none, &none, &y, 3, 0)).run());
        let read = succeed(y.download());
        assert_eq!(read[..3], [0.0; 3]);
        assert!(read[3].is_nan());
        succeed(succeed(kernels.gemv_transposed(&none, &none, &y, 0, 4)).run());
        let read = succeed(y.download());
        assert_eq!(read[..4], [0.0; 4]);
        assert!(read[4].is_nan());
        assert!(succeed(kernels.gemv(&none, &none, &y, 0, 0)).kernel_names().is_empty());
    });
}

#[test]
fn invalid_arguments_are_rejected() {
    let gpu = succeed(Device::open("cpu"));
    let kernels = succeed(Kernels::new(&gpu));
    let a = succeed(gpu.alloc::<f32>(6));
    let (x, y) = (succeed(gpu.alloc::<f32>(2)), succeed(gpu.alloc::<f32>(3)));
    let error = |a: &dyn Binding| kernels.gemv(a, &x, &y, 2, 3).unwrap_err().to_string();
    assert_eq!(
        error(&a),
        "Kernels::gemv: buffer `x` has 2 elements, but rows=2, columns=3 needs at least 3; help: \
         pass a longer buffer, or smaller sizes"
    );
    assert_eq!(
        error(&succeed(gpu.alloc::<u32>(6))),
        "Kernels::gemv: buffer `a` has elements of u32, but f32, f16 or bf16 is needed; help: \
         pass a buffer of f32, f16 or bf16"
    );
    let error = kernels.gemv_transposed(&a, &x, &x, 2, 2).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Kernels::gemv_transposed: buffer `y` is written, but shares bytes 0..8 of its memory with \
         buffer `x`; help: pass buffers or slices that do not overlap"
    );
}
