//! Tests of reductions.

use scry_gpu::{Element, bf16, f16};
use scry_kernels::{Kernels, Reduction};
use scry_test_support::{on_each_device, succeed};

use crate::numbers::{Number, assert_near, poisoned_numbers};
use crate::support::{SIZES, each_variant, error_on_cpu, supported, type_name};
use crate::{for_each_float, for_each_number};

const VARIANCE: Reduction = Reduction::Variance { correction: 1 };

/// Reductions of any numbers.
const NUMBERS: [Reduction; 5] =
    [Reduction::Sum, Reduction::Min, Reduction::Max, Reduction::ArgMin, Reduction::ArgMax];

/// Reductions of floats only.
const FLOATS: [Reduction; 4] =
    [Reduction::Mean, Reduction::Variance { correction: 0 }, VARIANCE, Reduction::Norm];

/// Lengths around vectors and tiles, and with several segments.
const LENGTHS: [usize; 7] = [1023, 1024, 1027, 8193, 49_155, 65_536, 100_003];

/// Rows and columns: short, long, odd and many rows, and few that are split.
const SHAPES: [[usize; 2]; 12] = [
    [1, 1],
    [3, 2],
    [257, 5],
    [5, 257],
    [33, 33],
    [64, 64],
    [1000, 8],
    [7, 1009],
    [2, 4097],
    [2, 70_000],
    [70_001, 3],
    [20_000, 65],
];

/// A result, and the scale of its error.
struct Expected {
    value: f64,
    scale: f64,
}

/// Returns the position of the first NaN, or of the first extreme value.
fn position(values: &[f64], is_better: fn(f64, f64) -> bool) -> usize {
    let better = |best: usize, at: usize| {
        let (old, new) = (values[best], values[at]);
        if !old.is_nan() && (new.is_nan() || is_better(new, old)) { at } else { best }
    };
    (0..values.len()).fold(0, better)
}

fn expected<T: Number>(reduction: Reduction, elements: &[T]) -> Expected {
    let values: Vec<f64> = elements.iter().map(|x| x.wide()).collect();
    let count = values.len() as f64;
    let magnitude = values.iter().map(|x| x.abs()).sum::<f64>();
    let (smallest, largest) = (position(&values, |a, b| a < b), position(&values, |a, b| a > b));
    let mean = values.iter().sum::<f64>() / count;
    let squares = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
    let (value, scale) = match reduction {
        Reduction::Sum => (T::sum(elements), magnitude),
        Reduction::Min => (values[smallest], 0.0),
        Reduction::Max => (values[largest], 0.0),
        Reduction::ArgMin => (smallest as f64, 0.0),
        Reduction::ArgMax => (largest as f64, 0.0),
        Reduction::Mean => (mean, magnitude / count),
        Reduction::Variance { correction } => {
            let variance = squares / (count - f64::from(correction));
            (if count <= correction.into() { f64::NAN } else { variance }, variance)
        }
        Reduction::Norm => {
            let norm = values.iter().map(|x| x * x).sum::<f64>().sqrt();
            (norm, norm)
        }
        other => panic!("{other:?} is not tested here"),
    };
    Expected { value, scale }
}

/// Runs a reduction of type `T` to `R`; `axis` is `None` for all elements. Returns the results, one
/// more than there are.
fn run<T: Element, R: Number>(
    kernels: &Kernels,
    reduction: Reduction,
    (x, [rows, columns]): (&[T], [usize; 2]),
    operation: &str,
) -> Option<Vec<R>> {
    let gpu = kernels.device();
    let x = succeed(gpu.upload(x));
    let results = match operation {
        "reduce" => 1,
        "reduce_rows" => rows,
        _ => columns,
    };
    let out = poisoned_numbers::<R>(gpu, results + 1);
    let op = supported(match operation {
        "reduce" => kernels.reduce(reduction, &x, &out),
        "reduce_rows" => kernels.reduce_rows(reduction, &x, &out, rows, columns),
        _ => kernels.reduce_columns(reduction, &x, &out, rows, columns),
    })?;
    succeed(op.run());
    Some(succeed(out.download()))
}

/// Compares one more result than there are with the reference.
fn compare<T: Number, R: Number>(
    what: &str,
    reduction: Reduction,
    lists: &[Vec<T>],
    results: Option<Vec<R>>,
) {
    let Some(results) = results else { return };
    let (last, results) = results.split_last().expect("there is one more");
    assert!(last.is_same(R::POISON), "{what}: wrote beyond the results");
    assert_eq!(results.len(), lists.len(), "{what}");
    for (nth, (result, list)) in results.iter().zip(lists).enumerate() {
        let expected = expected(reduction, list);
        let what = format!("{what}, {reduction:?} of {} {}, {nth}", list.len(), type_name::<T>());
        assert_near(&what, 8.0, expected.scale, *result, expected.value);
    }
}

fn check<T: Number>(
    (kernels, what, operation): (&Kernels, &str, &str),
    reductions: &[Reduction],
    x: &[T],
    shape: [usize; 2],
) {
    let columns = shape[1];
    let lists: Vec<Vec<T>> = match operation {
        "reduce" => vec![x.to_vec()],
        "reduce_rows" => x.chunks(columns).map(<[T]>::to_vec).collect(),
        _ => (0..columns).map(|at| x.iter().skip(at).step_by(columns).copied().collect()).collect(),
    };
    for reduction in reductions {
        let input = (x, shape);
        if matches!(reduction, Reduction::ArgMin | Reduction::ArgMax) {
            let results = run::<T, u32>(kernels, *reduction, input, operation);
            compare(what, *reduction, &lists, results);
        } else {
            let results = run::<T, T>(kernels, *reduction, input, operation);
            compare(what, *reduction, &lists, results);
        }
    }
}

fn check_lengths<T: Number>(kernels: &Kernels, what: &str, reductions: &[Reduction]) {
    for length in SIZES.into_iter().chain(LENGTHS) {
        let x = T::random(length as u64, length);
        check((kernels, what, "reduce"), reductions, &x, [1, length]);
    }
}

#[test]
fn reduction_of_all_matches_reference() {
    each_variant("reduce", |kernels, what| {
        check_lengths::<f32>(kernels, what, &[&NUMBERS[..], &FLOATS].concat());
        check_lengths::<f16>(kernels, what, &[Reduction::Sum, VARIANCE]);
        check_lengths::<bf16>(kernels, what, &[Reduction::Max, Reduction::Mean]);
        check_lengths::<i32>(kernels, what, &[Reduction::Min, Reduction::ArgMax]);
        check_lengths::<u32>(kernels, what, &[Reduction::Sum, Reduction::ArgMin]);
    });
}

fn check_shapes<T: Number>(
    kernels: &Kernels,
    what: &str,
    operation: &str,
    reductions: &[Reduction],
) {
    for [rows, columns] in SHAPES {
        let x = T::random(rows as u64, rows * columns);
        check((kernels, what, operation), reductions, &x, [rows, columns]);
    }
}

#[test]
fn reduction_of_rows_matches_reference() {
    each_variant("reduce_rows", |kernels, what| {
        let check =
            |reductions: &[_]| check_shapes::<f32>(kernels, what, "reduce_rows", reductions);
        check(&[Reduction::Sum, Reduction::ArgMax, VARIANCE]);
        check_shapes::<f16>(kernels, what, "reduce_rows", &[Reduction::Mean]);
        check_shapes::<i32>(kernels, what, "reduce_rows", &[Reduction::Max]);
    });
}

#[test]
fn reduction_of_columns_matches_reference() {
    each_variant("reduce_columns", |kernels, what| {
        let check =
            |reductions: &[_]| check_shapes::<f32>(kernels, what, "reduce_columns", reductions);
        check(&[Reduction::Sum, Reduction::ArgMin, VARIANCE]);
        check_shapes::<bf16>(kernels, what, "reduce_columns", &[Reduction::ArgMax]);
        check_shapes::<u32>(kernels, what, "reduce_columns", &[Reduction::Max]);
    });
}

fn check_product<T: Number>(kernels: &Kernels, what: &str) {
    for length in [1, 3, 257, 1009, 70_001] {
        // Powers of two, whose products are exact, and few that are not 1.
        let power = |x: u32| {
            [1.0, -1.0, 2.0, 0.5][if x.is_multiple_of(64) { x as usize / 64 % 4 } else { 0 }]
        };
        let x: Vec<f64> = u32::random(length as u64, length).into_iter().map(power).collect();
        let product = x.iter().product::<f64>();
        let x: Vec<T> = x.into_iter().map(T::round).collect();
        let input = (x.as_slice(), [1, length]);
        let Some(results) = run::<T, T>(kernels, Reduction::Product, input, "reduce") else {
            return;
        };
        let what = format!("{what}, {length} {}", type_name::<T>());
        assert!(results[0].is_same(T::round(product)), "{what}: {}", results[0].wide());
    }
}

#[test]
fn products_match_reference() {
    each_variant("reduce", |kernels, what| {
        for_each_float!(check_product(kernels, what));
        let x: Vec<u32> = (0..1009).map(|x| 2 * x + 1).collect();
        let wrapped = x.iter().fold(1u32, |product, x| product.wrapping_mul(*x));
        let results = run::<u32, u32>(kernels, Reduction::Product, (&x, [1, 1009]), "reduce");
        assert!(results.is_none_or(|results| results[0] == wrapped), "{what}");
    });
}

fn check_dot<T: Number>(kernels: &Kernels, what: &str) {
    let gpu = kernels.device();
    for length in SIZES.into_iter().chain([1027, 4096, 70_001]) {
        let [a, b] = [1, 2].map(|seed| T::random(seed, length));
        let out = poisoned_numbers::<T>(gpu, 2);
        let [device_a, device_b] = [&a, &b].map(|data| succeed(gpu.upload(data)));
        let Some(op) = supported(kernels.reduce_dot(&device_a, &device_b, &out)) else { return };
        succeed(op.run());
        let results = succeed(out.download());
        let scale = a.iter().zip(&b).map(|(a, b)| (a.wide() * b.wide()).abs()).sum();
        let what = format!("{what}, {length} {}", type_name::<T>());
        assert_near(&what, 8.0, scale, results[0], T::dot(&a, &b));
        assert!(results[1].is_same(T::POISON), "{what}: wrote beyond the result");
    }
}

#[test]
fn inner_products_match_reference() {
    each_variant("reduce_dot", |kernels, what| {
        for_each_number!(check_dot(kernels, what));
    });
}

#[test]
fn results_of_16_bit_floats_can_be_f32() {
    each_variant("reduce_rows", |kernels, what| {
        let x = vec![f16::from_f32(1000.0); 2 * 300];
        let results = run::<f16, f32>(kernels, Reduction::Sum, (&x, [2, 300]), "reduce_rows");
        let expected = [300_000.0, 300_000.0];
        assert!(results.is_none_or(|results| results[..2] == expected), "{what}");
    });
}

#[test]
fn nan_is_the_extreme_value_wherever_it_is() {
    const INFINITY: f32 = f32::INFINITY;
    let negative_nan = f32::from_bits(0xffc0_0001);
    each_variant("reduce", |kernels, what| {
        for length in [2, 3, 300, 5000] {
            for at in [0, 1, length / 2, length - 1] {
                for nan in [f32::NAN, negative_nan] {
                    let mut x = vec![-INFINITY; length];
                    x[length / 2 + 1..].fill(INFINITY);
                    x[at..].fill(nan);
                    let reductions = [&NUMBERS[1..], &FLOATS].concat();
                    check((kernels, what, "reduce"), &reductions, &x, [1, length]);
                }
            }
        }
    });
}

#[test]
fn extremes_and_zeros_are_ordered() {
    const LOWEST: f32 = -f32::MAX;
    let cases: [(&[f32], [f32; 2], [u32; 2]); 5] = [
        (&[0.0, -0.0, 0.0], [-0.0, 0.0], [0, 0]),
        (&[-0.0, 1.0, 0.0], [-0.0, 1.0], [0, 1]),
        (&[f32::INFINITY, LOWEST, f32::MAX], [LOWEST, f32::INFINITY], [1, 0]),
        (&[1e-40, -1e-40, 0.0], [-1e-40, 1e-40], [1, 0]),
        (&[f32::NEG_INFINITY; 7], [f32::NEG_INFINITY; 2], [0, 0]),
    ];
    on_each_device(|gpu| {
        let kernels = succeed(Kernels::new(gpu));
        for (x, [min, max], positions) in cases {
            let x = succeed(gpu.upload(x));
            assert_eq!(succeed(kernels.min(&x)).to_bits(), min.to_bits(), "{x:?}");
            assert_eq!(succeed(kernels.max(&x)).to_bits(), max.to_bits(), "{x:?}");
            let found = [succeed(kernels.argmin(&x)), succeed(kernels.argmax(&x))];
            assert_eq!(found, positions, "{x:?}");
        }
        let x = succeed(gpu.upload(&[i32::MIN, i32::MAX, -1, 0]));
        assert_eq!((succeed(kernels.min(&x)), succeed(kernels.max(&x))), (i32::MIN, i32::MAX));
        let x = succeed(gpu.upload(&[u32::MAX; 3]));
        assert_eq!((succeed(kernels.min(&x)), succeed(kernels.argmin(&x))), (u32::MAX, 0));
    });
}

#[test]
fn variance_far_from_zero_is_accurate() {
    on_each_device(|gpu| {
        let kernels = succeed(Kernels::new(gpu));
        for length in [1000, 100_001] {
            let x: Vec<f32> = f32::random(7, length).iter().map(|x| 4096.0 + x).collect();
            let expected = expected(VARIANCE, &x).value;
            let result = f64::from(succeed(kernels.variance(&succeed(gpu.upload(&x)), 1)));
            assert!((result / expected - 1.0).abs() < 1e-5, "{length}: {result}, not {expected}");
        }
        let constant = succeed(gpu.upload(&[3.3e37f32; 1003]));
        assert_eq!(succeed(kernels.variance(&constant, 0)), 0.0);
    });
}

#[test]
fn norm_neither_overflows_nor_underflows() {
    on_each_device(|gpu| {
        let kernels = succeed(Kernels::new(gpu));
        for (x, expected) in [
            (vec![3e37f32; 100], 3e38),
            (vec![3e-30; 100], 3e-29),
            (vec![1e-30, 1.0, 1e20], 1e20),
            (vec![0.0, -0.0], 0.0),
            (vec![f32::NEG_INFINITY, 0.0], f32::INFINITY),
            (vec![1e25; 10_000], 1e27),
        ] {
            let norm = succeed(kernels.norm(&succeed(gpu.upload(&x))));
            let is_close = norm == expected || (norm / expected - 1.0).abs() < 1e-6;
            assert!(is_close, "{norm}, not {expected}");
        }
    });
}

#[test]
fn reductions_of_nothing() {
    each_variant("reduce_rows", |kernels, what| {
        let gpu = kernels.device();
        let none = succeed(gpu.alloc::<f32>(0));
        for (reduction, value) in [(Reduction::Sum, 0.0), (Reduction::Product, 1.0)] {
            let results = run::<f32, f32>(kernels, reduction, (&[], [0, 0]), "reduce");
            assert!(results.is_none_or(|results| results[0] == value), "{what}");
            let results = run::<f32, f32>(kernels, reduction, (&[], [3, 0]), "reduce_rows");
            assert!(results.is_none_or(|results| results[..3] == [value; 3]), "{what}");
            let results = run::<f32, f32>(kernels, reduction, (&[], [0, 300]), "reduce_columns");
            assert!(results.is_none_or(|results| results[..300] == [value; 300]), "{what}");
        }
        let op = supported(kernels.reduce_rows(Reduction::Max, &none, &none, 0, 5));
        assert!(op.is_none_or(|op| op.kernel_names().is_empty()), "{what}");
    });
}

#[test]
fn invalid_reductions_are_rejected() {
    assert_eq!(
        error_on_cpu(|it| it.max(&succeed(it.device().alloc::<f32>(0)))),
        "Kernels::max: buffer `x` is empty, but the maximum of no elements is undefined; help: \
         pass at least one element"
    );
    assert_eq!(
        error_on_cpu(|it| {
            let x = succeed(it.device().alloc::<f32>(0));
            it.reduce_rows(Reduction::Mean, &x, &x, 3, 0)
        }),
        "Kernels::reduce_rows: `columns` is 0, but the mean of no elements is undefined; help: \
         pass rows of at least one element"
    );
    assert_eq!(
        error_on_cpu(|it| {
            let x = succeed(it.device().alloc::<f32>(0));
            it.reduce_columns(Reduction::ArgMin, &x, &succeed(it.device().alloc::<u32>(3)), 0, 3)
        }),
        "Kernels::reduce_columns: `rows` is 0, but the minimum of no elements is undefined; help: \
         pass columns of at least one element"
    );
    assert_eq!(
        error_on_cpu(|it| it.mean(&succeed(it.device().alloc::<i32>(3)))),
        "Kernels::mean: buffer `x` has elements of i32, but f32, f16 or bf16 is needed; help: \
         pass a buffer of f32, f16 or bf16"
    );
    assert_eq!(
        error_on_cpu(|it| {
            let x = succeed(it.device().alloc::<f32>(3));
            it.reduce(Reduction::ArgMax, &x, &succeed(it.device().alloc::<f32>(1)))
        }),
        "Kernels::reduce: buffer `out` has elements of f32, but u32 is needed; help: pass a \
         buffer of u32"
    );
    assert_eq!(
        error_on_cpu(|it| {
            let x = succeed(it.device().alloc::<f32>(5));
            it.reduce_rows(Reduction::Sum, &x, &succeed(it.device().alloc::<f32>(1)), 2, 3)
        }),
        "Kernels::reduce_rows: buffer `x` has 5 elements, but rows=2, columns=3 needs at least 6; \
         help: pass a longer buffer, or smaller sizes"
    );
    assert_eq!(
        error_on_cpu(|it| {
            let x = succeed(it.device().alloc::<f32>(5));
            it.reduce(Reduction::Sum, &x, &x)
        }),
        "Kernels::reduce: buffer `out` is written, but shares bytes 0..20 of its memory with \
         buffer `x`; help: pass buffers or slices that do not overlap"
    );
    assert_eq!(
        error_on_cpu(|it| {
            let gpu = it.device();
            it.dot(&succeed(gpu.alloc::<f32>(5)), &succeed(gpu.alloc::<f32>(4)))
        }),
        "Kernels::dot: buffer `b` has 4 elements, but `a` has 5; help: pass vectors of the same \
         length"
    );
}
