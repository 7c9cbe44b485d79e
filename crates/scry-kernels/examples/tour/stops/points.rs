//! Distances of points, and the nearest ones.

use scry_kernels::{Metric, Nearest};

use super::{Result, Tour, check, check_equal, wide};

pub(super) fn visit(tour: &mut Tour) -> Result {
    let (points, queries, dim, k) = (100 * tour.scale, 30, 24, 5);
    let ((a, host_a), (b, host_b)) =
        (tour.random(1, queries * dim)?, tour.random(2, points * dim)?);
    let (host_a, host_b) = (wide(&host_a), wide(&host_b));
    let distance = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum();
    let of_query = |a: &[f64]| -> Vec<f64> { host_b.chunks(dim).map(|b| distance(a, b)).collect() };
    let expected: Vec<f64> = host_a.chunks(dim).flat_map(of_query).collect();

    let (metric, out) = (Metric::SquaredEuclidean, tour.gpu.alloc::<f32>(queries * points)?);
    let op = tour.kernels.pairwise_distances(metric, &a, &b, &out, queries, points, dim);
    let sizes = format!("f32 {queries} x {points} x {dim}");
    let bytes = 4 * (points * dim + queries * points);
    tour.show("pairwise_distances", &sizes, op, bytes, || check(&out, &expected, 1e-5))?;

    let (mut nearest, mut least) = (Vec::new(), Vec::new());
    for distances in expected.chunks(points) {
        let mut order: Vec<usize> = (0..points).collect();
        order.sort_by(|a, b| distances[*a].total_cmp(&distances[*b]));
        nearest.extend(order[..k].iter().map(|at| *at as u32));
        least.extend(order[..k].iter().map(|at| distances[*at]));
    }
    let (indices, distances) =
        (tour.gpu.alloc::<u32>(queries * k)?, tour.gpu.alloc::<f32>(queries * k)?);
    let search = Nearest { metric, points, queries, dim, k };
    let op = tour.kernels.nearest(&b, &a, &indices, &distances, &search);
    tour.show("nearest", &format!("{sizes}, k = {k}"), op, 4 * points * dim, || {
        check(&distances, &least, 1e-5)?;
        check_equal(&indices, &nearest)
    })
}
