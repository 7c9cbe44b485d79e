//! Tests of the largest elements of rows.

use std::cmp::Ordering;

use scry_gpu::{bf16, f16};
use scry_kernels::Kernels;
use scry_test_support::succeed;

use crate::numbers::{Number, poisoned_numbers};
use crate::support::{each_variant, error_on_cpu, supported, type_name};

/// Rows, columns and k: small ones, all of a row, several segments and stages, and more than are
/// selected without sorting.
const SHAPES: [[usize; 3]; 14] = [
    [1, 1, 1],
    [3, 5, 2],
    [33, 33, 33],
    [2, 127, 1],
    [5, 1009, 17],
    [3, 1024, 1024],
    [2, 1025, 1000],
    [1, 4096, 3],
    [1, 4097, 64],
    [2, 20_000, 1024],
    [1, 300_007, 64],
    [1, 100_000, 1000],
    [1, 3000, 2000],
    [5, 1500, 1025],
];

/// Compares in the documented order: NaN first, then descending.
fn order(a: f64, b: f64) -> Ordering {
    b.is_nan().cmp(&a.is_nan()).then(b.partial_cmp(&a).unwrap_or(Ordering::Equal))
}

fn check<T: Number>(kernels: &Kernels, what: &str, x: &[T], [rows, columns, k]: [usize; 3]) {
    let gpu = kernels.device();
    let values = poisoned_numbers::<T>(gpu, rows * k + 1);
    let indices = poisoned_numbers::<u32>(gpu, rows * k + 1);
    let input = succeed(gpu.upload(x));
    let Some(op) = supported(kernels.top_k(&input, &values, &indices, rows, columns, k)) else {
        return;
    };
    succeed(op.run());
    let (values, indices) = (succeed(values.download()), succeed(indices.download()));
    let what = format!("{what}, {k} of {rows} x {columns} {}", type_name::<T>());
    for (nth, row) in x.chunks(columns).enumerate() {
        let mut expected: Vec<usize> = (0..columns).collect();
        expected.sort_by(|a, b| order(row[*a].wide(), row[*b].wide()));
        for (at, expected) in (nth * k..).zip(&expected[..k]) {
            assert_eq!(indices[at] as usize, *expected, "{what}, result {at}");
            assert!(values[at].is_same(row[*expected]), "{what}, value {at}");
        }
    }
    assert!(values[rows * k].is_same(T::POISON), "{what}: wrote beyond the values");
    assert!(indices[rows * k].is_same(u32::POISON), "{what}: wrote beyond the indices");
}

fn check_shapes<T: Number>(kernels: &Kernels, what: &str, shapes: &[[usize; 3]]) {
    for shape in shapes {
        check(kernels, what, &T::random(shape[1] as u64, shape[0] * shape[1]), *shape);
    }
}

#[test]
fn largest_match_reference() {
    each_variant("top_k", |kernels, what| {
        check_shapes::<f32>(kernels, what, &SHAPES);
        check_shapes::<f16>(kernels, what, &SHAPES[8..11]);
        check_shapes::<bf16>(kernels, what, &SHAPES[4..5]);
        check_shapes::<i32>(kernels, what, &SHAPES[8..10]);
        check_shapes::<u32>(kernels, what, &SHAPES[2..6]);
    });
}

#[test]
fn first_of_equal_elements_are_taken() {
    each_variant("top_k", |kernels, what| {
        for [columns, k] in [[100, 7], [1000, 999], [10_000, 100], [100_000, 1000], [5000, 3000]] {
            let few: Vec<f32> = (0..columns).map(|at| [0.0, -0.0, 3.0, -1.0][at * 7 % 4]).collect();
            check(kernels, what, &few, [1, columns, k]);
            check(kernels, what, &vec![u32::MAX; columns], [1, columns, k]);
            check(kernels, what, &vec![0u32; columns], [1, columns, k]);
            check(kernels, what, &vec![f32::NEG_INFINITY; columns], [1, columns, k]);
        }
    });
}

#[test]
fn nan_is_the_largest() {
    each_variant("top_k", |kernels, what| {
        for [columns, k] in [[64, 5], [20_000, 10], [4000, 2000]] {
            let mut x = f32::random(3, columns);
            (x[3], x[columns - 1]) = (f32::NAN, f32::from_bits(0xffc0_0001));
            (x[5], x[columns / 2]) = (f32::INFINITY, f32::MAX);
            check(kernels, what, &x, [1, columns, k]);
        }
    });
}

#[test]
fn nothing_is_selected_from_nothing() {
    each_variant("top_k", |kernels, what| {
        let x = succeed(kernels.device().upload(&[1.0f32; 6]));
        let values = poisoned_numbers::<f32>(kernels.device(), 1);
        let indices = poisoned_numbers::<u32>(kernels.device(), 1);
        for [rows, columns, k] in [[0, 3, 2], [2, 3, 0], [2, 0, 0]] {
            let op = kernels.top_k(&x, &values, &indices, rows, columns, k);
            let op = supported(op);
            assert!(op.is_none_or(|op| op.kernel_names().is_empty()), "{what}");
        }
        assert!(succeed(indices.download())[0].is_same(u32::POISON), "{what}");
    });
}

#[test]
fn invalid_selections_are_rejected() {
    assert_eq!(
        error_on_cpu(|it| {
            let x = succeed(it.device().alloc::<f32>(6));
            let indices = succeed(it.device().alloc::<u32>(8));
            it.top_k(&x, &x, &indices, 2, 3, 4)
        }),
        "Kernels::top_k: `k` is 4, but rows have 3 elements; help: pass at most the number of \
         columns"
    );
    assert_eq!(
        error_on_cpu(|it| {
            let gpu = it.device();
            let (x, indices) = (succeed(gpu.alloc::<f32>(6)), succeed(gpu.alloc::<u32>(3)));
            it.top_k(&x, &succeed(gpu.alloc::<f32>(4)), &indices, 2, 3, 2)
        }),
        "Kernels::top_k: buffer `indices` has 3 elements, but rows=2, columns=3, k=2 needs at \
         least 4; help: pass a longer buffer, or smaller sizes"
    );
}
