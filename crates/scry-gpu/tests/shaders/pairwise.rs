//! Tests of distances between two sets of points.

use scry_gpu::{Launch, shaders};
use scry_test_support::{on_each_device, random_f32};

use crate::harness::{assert_close, run, to_u32};

/// Returns Σ (q − p)² for every query and every point.
fn euclidean_squared(queries: &[f32], points: &[f32], dimensions: usize) -> Vec<f64> {
    let square = |(q, p): (&f32, &f32)| (f64::from(*q) - f64::from(*p)).powi(2);
    let distance = |q: &[f32], p: &[f32]| q.iter().zip(p).map(square).sum();
    queries
        .chunks(dimensions)
        .flat_map(|q| points.chunks(dimensions).map(move |p| distance(q, p)))
        .collect()
}

/// Tests a kernel on each (n_q, n_t, d): numbers of queries, of points, and of dimensions.
fn check(name: &str, source: &str, shapes: &[[usize; 3]]) {
    on_each_device(|gpu| {
        for (seed, &[n_q, n_t, d]) in (1..).zip(shapes) {
            let queries = random_f32(seed, n_q * d);
            let points = random_f32(seed + 100, n_t * d);
            // Each invocation computes 4 × 4 distances.
            let launch = Launch::invocations([n_t.div_ceil(4), n_q.div_ceil(4)]).immediates(&[
                to_u32(n_q),
                to_u32(n_t),
                to_u32(d),
            ]);
            let distances = run(gpu, source, &[&queries, &points], n_q * n_t, launch);
            let expected = euclidean_squared(&queries, &points, d);
            assert_close(&format!("{name}, n_q {n_q}, n_t {n_t}, d {d}"), &distances, &expected);
        }
    });
}

#[test]
fn distances_match_reference() {
    let shapes = [
        [1, 1, 1],
        [7, 33, 5],
        [33, 7, 127],
        [1, 1023, 2],
        [1023, 1, 3],
        [127, 65, 17],
        [3, 5, 1023],
    ];
    check("EUCLIDEAN_SQUARED", shaders::pairwise::EUCLIDEAN_SQUARED, &shapes);
    let shapes = [[1, 1, 4], [33, 7, 128], [127, 65, 20], [5, 1023, 8]];
    check("EUCLIDEAN_SQUARED_VEC4", shaders::pairwise::EUCLIDEAN_SQUARED_VEC4, &shapes);
}

#[test]
fn distances_far_from_origin_are_exact() {
    // Far from the origin, `q² - 2qp + p²` would cancel these distances completely.
    let points = [4096.0, 4096.0, 4096.0, 4097.0, 4096.0, 4096.5];
    on_each_device(|gpu| {
        let launch = Launch::invocations([1, 1]).immediates(&[3u32, 3, 2]);
        let source = shaders::pairwise::EUCLIDEAN_SQUARED;
        let distances = run(gpu, source, &[&points, &points], 9, launch);
        assert_eq!(distances, [0.0, 1.0, 0.25, 1.0, 0.0, 0.25, 0.25, 0.25, 0.0]);
    });
}
