//! Tests of distances between points, and of nearest points.

use scry_gpu::Device;
use scry_kernels::{Kernels, Metric, Nearest};
use scry_test_support::{on_each_device, succeed};

use crate::for_each_float;
use crate::support::{Float, assert_close, each_variant, poisoned, random, supported, type_name};

const METRICS: [Metric; 3] = [Metric::SquaredEuclidean, Metric::Cosine, Metric::L1];

/// The distance of two points in f64.
fn distance(metric: Metric, a: &[f64], b: &[f64]) -> f64 {
    let pairs = || a.iter().zip(b);
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    match metric {
        Metric::SquaredEuclidean => pairs().map(|(a, b)| (a - b).powi(2)).sum(),
        Metric::L1 => pairs().map(|(a, b)| (a - b).abs()).sum(),
        Metric::Cosine => {
            let norms = (dot(a, a) * dot(b, b)).sqrt();
            if norms == 0.0 { 1.0 } else { 1.0 - dot(a, b) / norms }
        }
    }
}

/// Points in f64, without the rounding that their type does not have.
fn wide<T: Float>(points: &[T]) -> Vec<f64> {
    points.iter().map(|x| x.wide()).collect()
}

/// Queries, points and coordinates: whole and partial tiles with few, some and many queries, quads
/// and odd numbers.
const SHAPES: [[usize; 3]; 11] = [
    [1, 1, 1],
    [3, 2, 4],
    [64, 64, 16],
    [65, 63, 17],
    [33, 127, 3],
    [129, 31, 20],
    [2, 257, 129],
    [70, 1, 128],
    [5, 6, 1009],
    [17, 5, 6],
    [129, 16_321, 3],
];

fn check_pairwise<T: Float>(kernels: &Kernels, what: &str) {
    let gpu = kernels.device();
    for ([m, n, dim], metric) in SHAPES.iter().flat_map(|shape| METRICS.map(|it| (shape, it))) {
        let (m, n, dim) = (*m, *n, *dim);
        if m * n > 1 << 20 && (metric != Metric::L1 || T::EPSILON > 1e-6) {
            continue; // one comparison of millions of distances takes long enough
        }
        let (a, b): (Vec<T>, Vec<T>) = (random(1, m * dim), random(2, n * dim));
        let (device_a, device_b) = (succeed(gpu.upload(&a)), succeed(gpu.upload(&b)));
        let out = poisoned::<f32>(gpu, m * n + 1);
        let op = kernels.pairwise_distances(metric, &device_a, &device_b, &out, m, n, dim);
        let Some(op) = supported(op) else { return };
        succeed(op.run());
        let out = succeed(out.download());
        let (a, b) = (wide(&a), wide(&b));
        let row = |rows: &[f64], nth: usize| rows[nth * dim..][..dim].to_vec();
        let expected: Vec<f64> =
            (0..m * n).map(|at| distance(metric, &row(&a, at / n), &row(&b, at % n))).collect();
        let what = format!("{what}, {metric:?}, {} {m} x {n} x {dim}", type_name::<T>());
        let scale = if metric == Metric::Cosine { 4.0 } else { 4.0 * dim as f64 };
        assert_close(&what, 8.0, scale, &out[..m * n], &expected);
        assert!(out[m * n].is_nan(), "{what}: wrote beyond the distances");
    }
}

#[test]
fn distances_match_reference() {
    each_variant("pairwise_distances", |kernels, what| {
        for_each_float!(check_pairwise(kernels, what));
    });
}

#[test]
fn distances_of_special_points() {
    const INFINITY: f32 = f32::INFINITY;
    // Points with one coordinate, and the expected distances from the last one.
    let points = [0.0, f32::NAN, INFINITY, -2e5, 1e5 + 0.015625, 1e5];
    let nan = f64::NAN;
    let expected = [
        (Metric::SquaredEuclidean, [1e10, nan, f64::INFINITY, 9e10, 2.44140625e-4, 0.0]),
        (Metric::L1, [1e5, nan, f64::INFINITY, 3e5, 0.015625, 0.0]),
        (Metric::Cosine, [1.0, nan, nan, 2.0, 0.0, 0.0]),
    ];
    each_variant("pairwise_distances", |kernels, what| {
        let gpu = kernels.device();
        let (b, a) = (succeed(gpu.upload(&points)), succeed(gpu.upload(&points[5..])));
        for (metric, expected) in expected {
            let out = poisoned::<f32>(gpu, 6);
            let op = kernels.pairwise_distances(metric, &a, &b, &out, 1, 6, 1);
            let Some(op) = supported(op) else { return };
            succeed(op.run());
            for (out, expected) in succeed(out.download()).into_iter().zip(expected) {
                let difference = (f64::from(out) - expected).abs();
                let is_close = difference <= 1e-6 * expected || f64::from(out) == expected;
                let is_close = is_close || (out.is_nan() && expected.is_nan());
                assert!(is_close, "{what}, {metric:?}: {out}, expected {expected}");
            }
        }
    });
}

/// The nearest points of a query by distances: the first of equal ones.
fn nearest(distances: &[f32], k: usize) -> Vec<u32> {
    let mut order: Vec<u32> = (0..distances.len() as u32).collect();
    let key = |at: &u32| distances[*at as usize].abs().to_bits();
    order.sort_by_key(key);
    order.truncate(k);
    order
}

/// Searches on a device, and compares with the distances that the device computes.
fn check_nearest<T: Float>(
    kernels: &Kernels,
    what: &str,
    (points, queries): (&[T], &[T]),
    sizes: &Nearest,
) -> bool {
    let gpu = kernels.device();
    let Nearest { metric, points: p, queries: q, dim, k } = *sizes;
    let (device_points, device_queries) =
        (succeed(gpu.upload(points)), succeed(gpu.upload(queries)));
    let indices = succeed(gpu.upload(&vec![77u32; q * k + 1]));
    let found = poisoned::<f32>(gpu, q * k + 1);
    let op = kernels.nearest(&device_points, &device_queries, &indices, &found, sizes);
    let Some(op) = supported(op) else { return false };
    succeed(op.run());
    let all = poisoned::<f32>(gpu, p * q);
    let plain = kernels.having(scry_kernels::KernelOptions::default());
    let op = plain.pairwise_distances(metric, &device_queries, &device_points, &all, q, p, dim);
    succeed(succeed(op).run());
    let (all, indices) = (succeed(all.download()), succeed(indices.download()));
    let found = succeed(found.download());
    let what = format!("{what}, {} {sizes:?}", type_name::<T>());
    for query in 0..q {
        let distances = &all[query * p..][..p];
        let expected = nearest(distances, k);
        assert_eq!(indices[query * k..][..k], expected, "{what}: query {query}");
        for (found, at) in found[query * k..][..k].iter().zip(&expected) {
            let distance = distances[*at as usize];
            let is_same = *found == distance || (found.is_nan() && distance.is_nan());
            assert!(is_same, "{what}: query {query}: {found}, expected {distance}");
        }
    }
    assert!(indices[q * k] == 77 && found[q * k].is_nan(), "{what}: wrote beyond the results");
    true
}

/// Points, queries, coordinates and k: one tile and many slices, lists that are not full, and many
/// queries.
const SEARCHES: [[usize; 4]; 11] = [
    [1, 1, 1, 1],
    [3, 2, 4, 3],
    [64, 65, 3, 10],
    [1009, 3, 17, 1],
    [4097, 2, 8, 64],
    [129, 31, 2, 33],
    [70_001, 1, 1, 5],
    [257, 200, 16, 10],
    [65, 1, 0, 3],
    [16_321, 129, 4, 7],
    [300, 17, 5, 2],
];

fn check_searches<T: Float>(kernels: &Kernels, what: &str) {
    // Kernels of k are compiled one by one, which takes time.
    let count = if T::EPSILON < 1e-6 { SEARCHES.len() } else { 3 };
    for (nth, [points, queries, dim, k]) in SEARCHES[..count].iter().copied().enumerate() {
        let metric = METRICS[nth % 3];
        let (p, q): (Vec<T>, Vec<T>) = (random(1, points * dim), random(2, queries * dim));
        let sizes = Nearest { metric, points, queries, dim, k };
        if !check_nearest(kernels, what, (&p, &q), &sizes) {
            return;
        }
    }
}

#[test]
fn nearest_points_match_distances() {
    each_variant("nearest", |kernels, what| {
        for_each_float!(check_searches(kernels, what));
    });
}

#[test]
fn first_of_equal_points_are_nearest() {
    // Many equal distances, and points that come nearer and nearer, so that lists change often.
    let few: Vec<f32> = (0..5000).map(|at| (at * 7 % 5) as f32).collect();
    let falling: Vec<f32> = (0..5000).map(|at| (5000 - at) as f32).collect();
    let mut special = few.clone();
    (special[3], special[4000], special[2]) = (f32::NAN, f32::INFINITY, -f32::NAN);
    special.truncate(4003);
    each_variant("nearest", |kernels, what| {
        for (points, k) in [(&few, 64), (&falling, 20), (&special, 7)] {
            let sizes = Nearest { metric: Metric::L1, points: points.len(), queries: 3, dim: 1, k };
            if !check_nearest(kernels, what, (points, &[0.0, 2.0, 5000.0]), &sizes) {
                return;
            }
        }
        // All points are among the nearest: those at infinity, then those without distance.
        let sizes =
            Nearest { metric: Metric::SquaredEuclidean, points: 5, queries: 1, dim: 1, k: 5 };
        let points = [f32::NAN, f32::INFINITY, 1.0, f32::NAN, f32::NEG_INFINITY];
        check_nearest(kernels, what, (&points, &[1.0]), &sizes);
    });
}

#[test]
fn empty_sets_launch_nothing() {
    on_each_device(|gpu| {
        let kernels = succeed(Kernels::new(gpu));
        let (x, out) = (succeed(gpu.alloc::<f32>(4)), poisoned::<f32>(gpu, 4));
        let indices = succeed(gpu.alloc::<u32>(4));
        for [m, n] in [[0, 2], [2, 0]] {
            let op = kernels.pairwise_distances(Metric::L1, &x, &x, &out, m, n, 2);
            assert!(succeed(op).kernel_names().is_empty());
        }
        for (queries, k) in [(0, 1), (2, 0)] {
            let sizes = Nearest { metric: Metric::L1, points: 2, queries, dim: 2, k };
            let op = kernels.nearest(&x, &x, &indices, &out, &sizes);
            assert!(succeed(op).kernel_names().is_empty());
        }
        let none = succeed(gpu.alloc::<f32>(0));
        let op = kernels.pairwise_distances(Metric::L1, &none, &none, &out, 2, 2, 0);
        succeed(succeed(op).run());
        assert_eq!(succeed(out.download()), [0.0; 4]);
        let op = kernels.pairwise_distances(Metric::Cosine, &none, &none, &out, 2, 2, 0);
        succeed(succeed(op).run());
        assert_eq!(succeed(out.download()), [1.0; 4]);
    });
}

#[test]
fn invalid_arguments_are_rejected() {
    let gpu = succeed(Device::open("cpu"));
    let kernels = succeed(Kernels::new(&gpu));
    let (x, out) = (succeed(gpu.alloc::<f32>(6)), succeed(gpu.alloc::<f32>(6)));
    let indices = succeed(gpu.alloc::<u32>(6));
    let nearest = |points: usize, k: usize| {
        let sizes = Nearest { metric: Metric::L1, points, queries: 1, dim: 2, k };
        kernels.nearest(&x, &x, &indices, &out, &sizes).unwrap_err().to_string()
    };
    assert_eq!(
        nearest(3, 4),
        "Kernels::nearest: `Nearest::k` is 4, but at most 3 are supported; help: ask for at most \
         64 points, and no more than there are"
    );
    assert_eq!(
        nearest(100, 65),
        "Kernels::nearest: `Nearest::k` is 65, but at most 64 are supported; help: ask for at most \
         64 points, and no more than there are"
    );
    assert_eq!(
        nearest(4, 1),
        "Kernels::nearest: buffer `points` has 6 elements, but points=4, queries=1, dim=2, k=1 \
         needs at least 8; help: pass a longer buffer, or smaller sizes"
    );
    let error = kernels.pairwise_distances(Metric::L1, &x, &x, &out, 3, 3, 2).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Kernels::pairwise_distances: buffer `out` has 6 elements, but m=3, n=3, dim=2 needs at \
         least 9; help: pass a longer buffer, or smaller sizes"
    );
    let halves = succeed(gpu.alloc::<scry_gpu::f16>(6));
    let error = kernels.pairwise_distances(Metric::L1, &halves, &x, &out, 1, 1, 2).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Kernels::pairwise_distances: buffer `b` has elements of f32, but f16 is needed; help: \
         pass a buffer of f16"
    );
}
