//! Tests of prefix sums.

use scry_gpu::{bf16, f16};
use scry_kernels::{Kernels, ScanKind};
use scry_test_support::succeed;

use crate::for_each_number;
use crate::numbers::{Number, assert_near, poisoned_numbers};
use crate::support::{SIZES, each_variant, error_on_cpu, supported, type_name};

const KINDS: [ScanKind; 2] = [ScanKind::Inclusive, ScanKind::Exclusive];

/// Lengths around vectors, tiles and chunks, with and without elements after the last vector.
const LENGTHS: [usize; 9] = [4, 129, 1024, 4095, 4096, 4097, 8193, 65_536, 300_001];

/// Rows and columns: short, long, odd and many rows, and rows in several chunks.
const SHAPES: [[usize; 2]; 9] = [
    [3, 1],
    [257, 5],
    [33, 33],
    [5, 257],
    [100, 64],
    [7, 1000],
    [3, 40_000],
    [2, 70_001],
    [20_001, 8],
];

/// Compares the sums of rows of a matrix, and one more element, with the reference.
fn check<T: Number>(what: &str, kind: ScanKind, x: &[T], columns: usize, y: &[T]) {
    let what = format!("{what}, {kind:?} {} in rows of {columns} {}", x.len(), type_name::<T>());
    assert!(y[x.len()].is_same(T::POISON), "{what}: wrote beyond the matrix");
    for (row, sums) in x.chunks(columns).zip(y.chunks(columns)) {
        let (mut before, mut magnitude) = (0.0, 0.0);
        for (nth, (element, sum)) in row.iter().zip(sums).enumerate() {
            // Integers wrap.
            let after = T::sum(&[T::round(before), *element]);
            let after = if T::EPSILON > 0.0 { before + element.wide() } else { after };
            magnitude += element.wide().abs();
            let expected = if kind == ScanKind::Inclusive { after } else { before };
            assert_near(&format!("{what}, {nth}"), 8.0, magnitude, *sum, expected);
            before = after;
        }
    }
}

fn check_lengths<T: Number>(kernels: &Kernels, what: &str, kinds: &[ScanKind], lengths: &[usize]) {
    for length in lengths {
        for kind in kinds {
            let x = T::random(*length as u64, *length);
            let y = poisoned_numbers::<T>(kernels.device(), length + 1);
            let op = kernels.scan(*kind, &succeed(kernels.device().upload(&x)), &y);
            let Some(op) = supported(op) else { return };
            succeed(op.run());
            check(what, *kind, &x, *length, &succeed(y.download()));
        }
    }
}

/// Rounding a constant has the same sign each time: errors of sums one by one would add up.
#[test]
fn sums_of_a_constant_are_near() {
    each_variant("scan", |kernels, what| {
        let x = vec![0.1f32; 1 << 20];
        let y = poisoned_numbers::<f32>(kernels.device(), x.len() + 1);
        let input = succeed(kernels.device().upload(&x));
        let Some(op) = supported(kernels.scan(ScanKind::Inclusive, &input, &y)) else { return };
        succeed(op.run());
        let y = succeed(y.download());
        check(what, ScanKind::Inclusive, &x, x.len(), &y);
    });
}

#[test]
fn scan_matches_reference() {
    let all: Vec<_> = SIZES.into_iter().chain(LENGTHS).collect();
    each_variant("scan", |kernels, what| {
        check_lengths::<f32>(kernels, what, &KINDS, &all);
        check_lengths::<u32>(kernels, what, &KINDS[1..], &all);
        check_lengths::<i32>(kernels, what, &KINDS[..1], &[31, 4097, 100_000]);
        check_lengths::<f16>(kernels, what, &KINDS[..1], &[3, 1009, 70_001]);
        check_lengths::<bf16>(kernels, what, &KINDS[1..], &[33, 4096, 70_001]);
    });
}

fn check_shapes<T: Number>(kernels: &Kernels, what: &str, kind: ScanKind) {
    for [rows, columns] in SHAPES {
        let x = T::random(rows as u64, rows * columns);
        let y = poisoned_numbers::<T>(kernels.device(), rows * columns + 1);
        let input = succeed(kernels.device().upload(&x));
        let Some(op) = supported(kernels.scan_rows(kind, &input, &y, rows, columns)) else {
            return;
        };
        succeed(op.run());
        check(what, kind, &x, columns, &succeed(y.download()));
    }
}

fn check_long_scan(kernels: &Kernels, what: &str, length: u32) {
    let x: Vec<u32> = (0..length).map(|x| x.wrapping_mul(0x9e37_79b9) >> 7).collect();
    let y = poisoned_numbers::<u32>(kernels.device(), x.len());
    let input = succeed(kernels.device().upload(&x));
    let Some(op) = supported(kernels.scan(ScanKind::Inclusive, &input, &y)) else { return };
    succeed(op.run());
    let sums = x.iter().scan(0u32, |sum, x| {
        *sum = sum.wrapping_add(*x);
        Some(*sum)
    });
    let wrong = sums.zip(succeed(y.download())).position(|(expected, y)| y != expected);
    assert_eq!(wrong, None, "{what}: the first wrong sum of {length}");
}

#[test]
fn long_scans_match_reference() {
    each_variant("scan", |kernels, what| {
        // More than 1024 tiles of the look-back.
        check_long_scan(kernels, what, 9_000_001);
        if what.contains("lookback") {
            // As many large tiles.
            check_long_scan(kernels, what, 20_000_001);
        }
    });
}

#[test]
fn scan_of_rows_matches_reference() {
    each_variant("scan_rows", |kernels, what| {
        check_shapes::<f32>(kernels, what, ScanKind::Inclusive);
        check_shapes::<i32>(kernels, what, ScanKind::Exclusive);
        check_shapes::<f16>(kernels, what, ScanKind::Exclusive);
    });
}

#[test]
fn sums_before_nan_are_finite() {
    const INFINITY: f32 = f32::INFINITY;
    each_variant("scan", |kernels, what| {
        for (length, at) in [(8, 3), (5000, 4095), (100_003, 70_000)] {
            let mut x = vec![1.0f32; length];
            (x[at], x[at + 2]) = (INFINITY, -INFINITY);
            let y = poisoned_numbers::<f32>(kernels.device(), length);
            let input = succeed(kernels.device().upload(&x));
            let Some(op) = supported(kernels.scan(ScanKind::Inclusive, &input, &y)) else {
                return;
            };
            succeed(op.run());
            let y = succeed(y.download());
            let is_count = |(nth, sum): (usize, &f32)| *sum == (nth + 1) as f32;
            assert!(y[..at].iter().enumerate().all(is_count), "{what}");
            assert_eq!(y[at..at + 2], [INFINITY; 2], "{what}");
            assert!(y[at + 2..].iter().all(|sum| sum.is_nan()), "{what}");
        }
    });
}

#[test]
fn runs_have_equal_bits() {
    each_variant("scan", |kernels, what| {
        let x = succeed(kernels.device().upload(&f32::random(5, 1_000_003)));
        let run = || {
            let y = poisoned_numbers::<f32>(kernels.device(), 1_000_003);
            let op = supported(kernels.scan(ScanKind::Inclusive, &x, &y))?;
            succeed(op.run());
            succeed(op.run());
            Some(succeed(y.download()))
        };
        let first = run();
        assert!(first == run(), "{what}");
    });
}

fn check_empty<T: Number>(kernels: &Kernels, what: &str) {
    let gpu = kernels.device();
    let (none, y) = (succeed(gpu.alloc::<T>(0)), poisoned_numbers::<T>(gpu, 3));
    for [rows, columns] in [[0, 3], [3, 0]] {
        let op = kernels.scan_rows(ScanKind::Exclusive, &none, &y, rows, columns);
        let Some(op) = supported(op) else { return };
        assert!(op.kernel_names().is_empty(), "{what}");
        succeed(op.run());
    }
    assert!(succeed(y.download()).iter().all(|y| y.is_same(T::POISON)), "{what}");
}

#[test]
fn empty_scans_launch_nothing() {
    each_variant("scan_rows", |kernels, what| {
        for_each_number!(check_empty(kernels, what));
    });
}

#[test]
fn invalid_scans_are_rejected() {
    let alloc = |kernels: &Kernels, len| succeed(kernels.device().alloc::<f32>(len));
    assert_eq!(
        error_on_cpu(|it| it.scan(ScanKind::Inclusive, &alloc(it, 5), &alloc(it, 4))),
        "Kernels::scan: buffer `y` has 4 elements, but len=5 needs at least 5; help: pass a longer \
         buffer, or smaller sizes"
    );
    assert_eq!(
        error_on_cpu(|it| {
            let x = alloc(it, 6);
            it.scan_rows(ScanKind::Inclusive, &x, &x, 2, 3)
        }),
        "Kernels::scan_rows: buffer `y` is written, but shares bytes 0..24 of its memory with \
         buffer `x`; help: pass buffers or slices that do not overlap"
    );
    assert_eq!(
        error_on_cpu(|it| {
            let y = succeed(it.device().alloc::<i32>(6));
            it.scan_rows(ScanKind::Inclusive, &alloc(it, 6), &y, 2, 3)
        }),
        "Kernels::scan_rows: buffer `y` has elements of i32, but f32 is needed; help: pass a \
         buffer of f32"
    );
    assert_eq!(
        error_on_cpu(|it| {
            let x = succeed(it.device().alloc::<u64>(6));
            it.scan(ScanKind::Inclusive, &x, &alloc(it, 6))
        }),
        "Kernels::scan: buffer `x` has elements of u64, but f32, f16, bf16, i32 or u32 is needed; \
         help: pass a buffer of f32, f16, bf16, i32 or u32"
    );
}
