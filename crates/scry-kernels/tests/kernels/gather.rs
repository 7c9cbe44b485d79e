//! Tests of rows that indices select: gathering, scattering and adding.

use scry_gpu::{Binding, Buffer, Device};
use scry_kernels::{KernelOptions, Kernels};
use scry_test_support::{devices, on_each_device, random_f32, succeed};

use crate::for_each_number;
use crate::support::{Bits, any_bits, bits_of, each_variant, supported, type_name};

/// Rows, columns and indices: rows of every granule and number of granules.
const SHAPES: [[usize; 3]; 15] = [
    [1, 1, 1],
    [7, 1, 1009],
    [1009, 1, 257],
    [33, 2, 31],
    [5, 3, 129],
    [3, 4, 127],
    [9, 33, 33],
    [31, 128, 9],
    [17, 129, 5],
    [3, 257, 4],
    [4, 770, 3],
    [2, 1009, 3],
    [3, 4097, 2],
    [2, 16_400, 3],
    [40, 7, 4097],
];

/// Returns indices of rows, of which about a seventh is out of range.
fn indices(rows: usize, count: usize) -> Vec<u32> {
    let out_of_range = [rows as u32, u32::MAX, 1 << 31, rows as u32 + 1];
    let index = |(at, bits): (usize, u32)| match at % 7 {
        6 => out_of_range[at / 7 % 4],
        _ => (bits >> 4) % rows as u32,
    };
    any_bits::<u32>(9, count).into_iter().enumerate().map(index).collect()
}

/// A buffer of elements, followed by one that must not be written.
fn output<T: Bits>(gpu: &Device, len: usize) -> (Vec<T>, Buffer<T>) {
    let y = any_bits(7, len + 1);
    let buffer = succeed(gpu.upload(&y));
    (y, buffer)
}

#[track_caller]
fn assert_same<T: Bits>(what: &str, actual: &Buffer<T>, expected: &[T]) {
    let actual = succeed(actual.download());
    let differs = actual.iter().zip(expected).position(|(a, b)| a.bits() != b.bits());
    assert_eq!(differs, None, "{what}: an element differs");
}

fn check_gather<T: Bits>(kernels: &Kernels, what: &str) {
    let gpu = kernels.device();
    for [rows, columns, count] in SHAPES {
        let (x, indices) = (any_bits::<T>(1, rows * columns), indices(rows, count));
        let (input, selected) = (succeed(gpu.upload(&x)), succeed(gpu.upload(&indices)));
        let (mut expected, y) = output::<T>(gpu, count * columns);
        let op = kernels.gather_rows(&input, &selected, &y, rows, columns, count);
        let Some(op) = supported(op) else { return };
        succeed(op.run());
        for (row, index) in expected.chunks_mut(columns).zip(&indices) {
            match x.chunks(columns).nth(*index as usize) {
                Some(selected) => row.copy_from_slice(selected),
                None => row.fill(T::from_low_bits(0)),
            }
        }
        let what = format!("{what}, {} {rows} x {columns}, {count}", type_name::<T>());
        assert_same(&what, &y, &expected);
    }
}

#[test]
fn gathered_rows_are_exact() {
    each_variant("gather_rows", |kernels, what| {
        for_each_number!(check_gather(kernels, what));
    });
}

fn check_scatter<T: Bits>(kernels: &Kernels, what: &str) {
    let gpu = kernels.device();
    for [rows, columns, count] in SHAPES {
        let (x, indices) = (any_bits::<T>(1, count * columns), indices(rows, count));
        let (input, selected) = (succeed(gpu.upload(&x)), succeed(gpu.upload(&indices)));
        let (mut expected, y) = output::<T>(gpu, rows * columns);
        let op = kernels.scatter_rows(&input, &selected, &y, rows, columns, count);
        let Some(op) = supported(op) else { return };
        succeed(op.run());
        for (row, index) in x.chunks(columns).zip(&indices) {
            if (*index as usize) < rows {
                expected[*index as usize * columns..][..columns].copy_from_slice(row);
            }
        }
        let what = format!("{what}, {} {rows} x {columns}, {count}", type_name::<T>());
        assert_same(&what, &y, &expected);
    }
}

#[test]
fn last_scattered_row_wins() {
    each_variant("scatter_rows", |kernels, what| {
        for_each_number!(check_scatter(kernels, what));
    });
}

#[test]
fn elements_are_gathered_by_signed_indices() {
    each_variant("gather", |kernels, what| {
        let gpu = kernels.device();
        let (x, indices) = (any_bits::<f32>(1, 300), indices(300, 70_001));
        let signed: Vec<i32> = indices.iter().map(|index| *index as i32).collect();
        let (input, selected) = (succeed(gpu.upload(&x)), succeed(gpu.upload(&signed)));
        let (mut expected, y) = output::<f32>(gpu, indices.len());
        let op = kernels.gather(&input, &selected, &y, x.len(), indices.len());
        let Some(op) = supported(op) else { return };
        succeed(op.run());
        for (y, index) in expected.iter_mut().zip(&indices) {
            *y = x.get(*index as usize).copied().unwrap_or_default();
        }
        assert_same(what, &y, &expected);
    });
}

#[test]
fn integers_are_added_exactly() {
    each_variant("scatter_add_rows", |kernels, what| {
        let gpu = kernels.device();
        for [rows, columns, count] in SHAPES {
            let (x, indices) = (any_bits::<u32>(1, count * columns), indices(rows, count));
            let (input, selected) = (succeed(gpu.upload(&x)), succeed(gpu.upload(&indices)));
            let (mut expected, y) = output::<u32>(gpu, rows * columns);
            let op = kernels.scatter_add_rows(&input, &selected, &y, rows, columns, count);
            let Some(op) = supported(op) else { return };
            succeed(op.run());
            for (row, index) in x.chunks(columns).zip(&indices) {
                let sums = expected[..rows * columns].chunks_mut(columns).nth(*index as usize);
                for (sum, x) in sums.into_iter().flatten().zip(row) {
                    *sum = sum.wrapping_add(*x);
                }
            }
            assert_same(&format!("{what}, {rows} x {columns}, {count}"), &y, &expected);
        }
    });
}

/// Adds rows on a device; returns `y`, and the expected one.
fn add_rows(
    kernels: &Kernels,
    [rows, columns]: [usize; 2],
    indices: &[u32],
) -> Option<(Vec<f32>, Vec<f64>)> {
    let gpu = kernels.device();
    let (x, y) = (random_f32(1, indices.len() * columns), random_f32(2, rows * columns + 1));
    let (input, selected) = (succeed(gpu.upload(&x)), succeed(gpu.upload(indices)));
    let output = succeed(gpu.upload(&y));
    let op = kernels.scatter_add_rows(&input, &selected, &output, rows, columns, indices.len());
    succeed(supported(op)?.run());
    let mut expected: Vec<f64> = y.iter().map(|y| f64::from(*y)).collect();
    for (row, index) in x.chunks(columns).zip(indices) {
        let sums = expected[..rows * columns].chunks_mut(columns).nth(*index as usize);
        for (sum, x) in sums.into_iter().flatten().zip(row) {
            *sum += f64::from(*x);
        }
    }
    Some((succeed(output.download()), expected))
}

#[test]
fn floats_are_added() {
    each_variant("scatter_add_rows", |kernels, what| {
        let lists = SHAPES.map(|[rows, columns, count]| ([rows, columns], indices(rows, count)));
        // All rows are one, and equal rows that span chunks of the sums.
        let equal = [([3, 5], vec![1; 5000]), ([1, 1], vec![0; 129]), ([9, 2], vec![8; 64])];
        let runs: Vec<u32> = (0..3000).map(|at| at / 170).collect();
        // Sorts of several tiles by one, two and three digits.
        let digits = [255, 256, 70_001].map(|rows| ([rows, 2], indices(rows, 5000)));
        let lists = lists.into_iter().chain(equal).chain([([17, 3], runs)]).chain(digits);
        for (shape, indices) in lists {
            let Some((y, expected)) = add_rows(kernels, shape, &indices) else { return };
            // Each of the terms, which are below 1, is rounded at most as the sum of all.
            let limit = 2e-7 * (indices.len() + 1) as f64;
            for (at, (y, expected)) in y.iter().zip(&expected).enumerate() {
                let difference = (f64::from(*y) - expected).abs();
                assert!(
                    difference <= limit,
                    "{what}, {shape:?}, {}: element {at} is {y}, expected {expected}",
                    indices.len()
                );
            }
        }
    });
}

#[test]
fn indices_out_of_range_are_dropped() {
    // The last one is the number of rows: the element after them must not change.
    let indices = [-1, 1, i32::MIN, i32::MAX, 2];
    let check = |operation: &str, expected: [f32; 3]| {
        each_variant(operation, |kernels, what| {
            let gpu = kernels.device();
            let x = succeed(gpu.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0]));
            let (selected, y) = (succeed(gpu.upload(&indices)), succeed(gpu.upload(&[10.0f32; 3])));
            let op = match operation {
                "scatter_rows" => kernels.scatter_rows(&x, &selected, &y, 2, 1, 5),
                _ => kernels.scatter_add_rows(&x, &selected, &y, 2, 1, 5),
            };
            let Some(op) = supported(op) else { return };
            succeed(op.run());
            assert_eq!(succeed(y.download()), expected, "{what}");
        });
    };
    check("scatter_rows", [10.0, 2.0, 10.0]);
    check("scatter_add_rows", [10.0, 12.0, 10.0]);
}

#[test]
fn sorted_additions_are_reproducible() {
    let indices = indices(1000, 20_000);
    let mut results = Vec::new();
    for gpu in devices() {
        for variant in ["cpu", "wgsl-lookback", "wgsl"] {
            let variant = Some(variant.to_owned());
            let options = KernelOptions { variant, deterministic: true, ..Default::default() };
            let kernels = succeed(Kernels::with_options(&gpu, options));
            for _ in 0..3 {
                let Some((y, _)) = add_rows(&kernels, [1000, 3], &indices) else { break };
                results.push(bits_of(&y));
            }
        }
    }
    assert!(results.len() >= 3 && results.iter().all(|y| *y == results[0]), "results differ");
}

#[test]
fn nothing_is_written_without_indices() {
    on_each_device(|gpu| {
        let kernels = succeed(Kernels::new(gpu));
        let (x, none) = (succeed(gpu.upload(&[1.0f32; 4])), succeed(gpu.alloc::<u32>(0)));
        let y = succeed(gpu.upload(&[2.0f32; 4]));
        for op in [
            kernels.gather_rows(&x, &none, &y, 2, 2, 0),
            kernels.scatter_rows(&x, &none, &y, 2, 2, 0),
            kernels.scatter_add_rows(&x, &none, &y, 2, 2, 0),
        ] {
            let op = succeed(op);
            assert!(op.kernel_names().is_empty());
            succeed(op.run());
        }
        assert_eq!(succeed(y.download()), [2.0; 4]);
    });
}

#[test]
fn empty_table_has_rows_of_zeros() {
    each_variant("gather_rows", |kernels, what| {
        let gpu = kernels.device();
        let (x, indices) = (succeed(gpu.alloc::<f32>(0)), succeed(gpu.upload(&[0u32, 1])));
        let y = succeed(gpu.upload(&[2.0f32; 5]));
        let Some(op) = supported(kernels.gather_rows(&x, &indices, &y, 0, 2, 2)) else { return };
        succeed(op.run());
        assert_eq!(succeed(y.download()), [0.0, 0.0, 0.0, 0.0, 2.0], "{what}");
        let op = succeed(kernels.scatter_add_rows(&y, &indices, &x, 0, 2, 2));
        assert!(op.kernel_names().is_empty(), "{what}");
    });
}

#[test]
fn invalid_arguments_are_rejected() {
    let gpu = succeed(Device::open("cpu"));
    let kernels = succeed(Kernels::new(&gpu));
    let x = succeed(gpu.alloc::<f32>(6));
    let y = succeed(gpu.alloc::<f32>(6));
    let indices = succeed(gpu.alloc::<u32>(3));
    let gather = |x: &dyn Binding, indices: &dyn Binding, sizes: [usize; 3]| {
        let [rows, columns, count] = sizes;
        kernels.gather_rows(x, indices, &y, rows, columns, count).unwrap_err().to_string()
    };
    assert_eq!(
        gather(&x, &indices, [4, 2, 3]),
        "Kernels::gather_rows: buffer `x` has 6 elements, but rows=4, columns=2, count=3 needs at \
         least 8; help: pass a longer buffer, or smaller sizes"
    );
    assert_eq!(
        gather(&x, &indices, [6, 1, 4]),
        "Kernels::gather_rows: buffer `indices` has 3 elements, but rows=6, columns=1, count=4 \
         needs at least 4; help: pass a longer buffer, or smaller sizes"
    );
    assert_eq!(
        gather(&x, &x, [3, 2, 3]),
        "Kernels::gather_rows: buffer `indices` has elements of f32, but u32 or i32 is needed; \
         help: pass a buffer of u32 or i32"
    );
    assert_eq!(
        gather(&x, &indices, [usize::MAX, 2, 3]),
        "Kernels::gather_rows: the table has more than 2^64 - 1 elements with \
         rows=18446744073709551615, columns=2, count=3; help: pass smaller sizes"
    );
    let halves = succeed(gpu.alloc::<scry_gpu::f16>(6));
    let error = kernels.scatter_add_rows(&halves, &indices, &halves, 3, 2, 3).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Kernels::scatter_add_rows: buffer `x` has elements of f16, but f32, i32 or u32 \
         is needed; help: pass a buffer of f32, i32 or u32"
    );
    let error = kernels.gather(&x, &indices, &x, 6, 3).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Kernels::gather: buffer `y` is written, but shares bytes 0..24 of its memory with buffer \
         `x`; help: pass buffers or slices that do not overlap"
    );
}
