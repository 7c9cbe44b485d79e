//! Tests of products of a matrix and a vector.

use scry_gpu::{Binding, Device};
use scry_kernels::{Gemv, Kernels, Layout};
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

/// Batches: without gaps, with the same matrix or vector, with gaps that keep or break alignment,
/// sums that are split, more products than a dimension of a grid has workgroups, and none.
fn batches(order: Layout) -> Vec<Gemv> {
    let gemv = |rows, columns, batch| Gemv::new(rows, columns).with_layout(order).batched(batch);
    let gaps = |it: Gemv, [ld, a, x, y]: [u64; 4]| {
        let mut gemv = it;
        (gemv.x_stride, gemv.y_stride) = (it.x_stride + x, it.y_stride + y);
        gemv.a.ld += ld;
        gemv.a.stride = gemv.a.ld * it.a.lines(it.rows, it.columns).1 + a;
        gemv
    };
    let shared = |it: Gemv| Gemv { x_stride: 0, ..it };
    let mut one_matrix = gemv(17, 24, 5);
    one_matrix.a.stride = 0;
    vec![
        gemv(1, 1, 1),
        gemv(3, 7, 2),
        gemv(13, 31, 11),
        gemv(16, 64, 3),
        gaps(gemv(16, 64, 3), [8, 16, 8, 8]),
        gaps(gemv(16, 64, 3), [8, 16, 8, 1]),
        gaps(gemv(16, 64, 3), [3, 5, 1, 2]),
        gaps(gemv(7, 5, 1), [1, 1, 1, 1]),
        shared(gemv(8, 40, 4)),
        one_matrix,
        gemv(2, 4097, 3),
        gaps(gemv(4, 20_000, 2), [4, 0, 0, 4]),
        gemv(1, 3, 70_001),
        gemv(3, 0, 2),
        gemv(0, 3, 2),
        gemv(3, 4, 0),
    ]
}

/// Returns the results of a batch, and where they are not written NaN.
fn expected_batch<T: Float>(gemv: &Gemv, a: &[T], x: &[T], len: usize) -> Vec<f64> {
    let mut expected = vec![f64::NAN; len];
    let [row_stride, column_stride] = match gemv.a.order {
        Layout::RowMajor => [gemv.a.ld, 1],
        Layout::ColMajor => [1, gemv.a.ld],
    };
    for z in 0..gemv.batch {
        for row in 0..gemv.rows {
            let products = (0..gemv.columns).map(|column| {
                let at = z * gemv.a.stride + row * row_stride + column * column_stride;
                a[at as usize].wide() * x[(z * gemv.x_stride + column) as usize].wide()
            });
            expected[(z * gemv.y_stride + row) as usize] = products.sum();
        }
    }
    expected
}

fn check_batch<T: Float>(kernels: &Kernels, what: &str) {
    let gpu = kernels.device();
    for gemv in [Layout::RowMajor, Layout::ColMajor].into_iter().flat_map(batches) {
        let len = |stride: u64, elements: u64| (gemv.batch * stride + elements) as usize;
        let (_, lines) = gemv.a.lines(gemv.rows, gemv.columns);
        let a = random::<T>(1, len(gemv.a.stride, gemv.a.ld * lines));
        let x = random::<T>(2, len(gemv.x_stride, gemv.columns));
        let y = poisoned::<T>(gpu, len(gemv.y_stride, gemv.rows));
        let (device_a, device_x) = (succeed(gpu.upload(&a)), succeed(gpu.upload(&x)));
        let op = kernels.gemv_batch(&gemv, &device_a, &device_x, &y);
        let Some(op) = supported(op) else { return };
        succeed(op.run());
        let y = succeed(y.download());
        let what = format!("{what}, {}, {gemv:?}", type_name::<T>());
        let scale = (gemv.columns as f64).sqrt().max(1.0);
        assert_close(&what, 8.0, scale, &y, &expected_batch(&gemv, &a, &x, y.len()));
    }
}

#[test]
fn batches_match_reference() {
    each_variant("gemv_batch", |kernels, what| {
        for_each_float!(check_batch(kernels, what));
    });
}

#[test]
fn overlapping_batches_are_refused() {
    let gpu = succeed(Device::open("cpu"));
    let kernels = succeed(Kernels::new(&gpu));
    let (a, y) = (succeed(gpu.alloc::<f32>(60)), succeed(gpu.alloc::<f32>(60)));
    let error = |gemv: Gemv| kernels.gemv_batch(&gemv, &a, &a, &y).unwrap_err().to_string();
    let valid = Gemv::new(3, 4).batched(5);
    assert_eq!(
        error(Gemv { y_stride: 2, ..valid }),
        "Kernels::gemv_batch: `y_stride` is 2, less than the 3 results of a product; help: pass at \
         least that"
    );
    let mut overlapping = valid;
    overlapping.a.ld = 3;
    assert_eq!(
        error(overlapping),
        "Kernels::gemv_batch: `a.ld` is 3, less than the 4 elements of a row or column; help: pass \
         at least that"
    );
    assert_eq!(
        error(valid.batched(6)),
        "Kernels::gemv_batch: buffer `a` has 60 elements, but rows=3, columns=4, batch=6 needs at \
         least 72; help: pass a longer buffer, or smaller sizes"
    );
    assert_eq!(
        error(Gemv { x_stride: u64::MAX, ..valid }),
        "Kernels::gemv_batch: `x` has more than 2^64 - 1 elements with rows=3, columns=4, batch=5; \
         help: pass smaller sizes or strides"
    );
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
