//! Sorts, the largest elements, histograms and compaction.

use super::{Result, Tour, check, check_equal, words};

pub(super) fn visit(tour: &mut Tour) -> Result {
    sorts(tour)?;
    largest(tour)?;
    histogram(tour)?;
    compact(tour)
}

fn sorts(tour: &mut Tour) -> Result {
    let count = 20_000 * tour.scale;
    // Keys that repeat, so that the order of their values counts.
    let host_keys: Vec<u32> = words(1, count).iter().map(|word| word >> 18).collect();
    let mut positions: Vec<u32> = (0..count as u32).collect();
    positions.sort_by_key(|at| host_keys[*at as usize]);
    let sorted: Vec<u32> = positions.iter().map(|at| host_keys[*at as usize]).collect();
    let sizes = format!("u32 {count}");

    let keys = tour.gpu.upload(&host_keys)?;
    let indices = tour.gpu.alloc::<u32>(count)?;
    let op = tour.kernels.argsort(&keys, &indices);
    tour.show("argsort", &sizes, op, 8 * count, || check_equal(&indices, &positions))?;

    let values = tour.gpu.upload(&(0..count as u32).collect::<Vec<_>>())?;
    let pairs = tour.kernels.sort_pairs(&keys, &values);
    tour.show("sort_pairs", &format!("{sizes}, values u32"), pairs, 16 * count, || {
        check_equal(&keys, &sorted)?;
        check_equal(&values, &positions)
    })?;

    let keys = tour.gpu.upload(&host_keys)?;
    let op = tour.kernels.sort(&keys);
    tour.show("sort", &sizes, op, 8 * count, || check_equal(&keys, &sorted))
}

fn largest(tour: &mut Tour) -> Result {
    let (rows, columns, k) = (20 * tour.scale, 1000, 10);
    let (x, host_x) = tour.random(1, rows * columns)?;
    let (values, indices) = (tour.gpu.alloc::<f32>(rows * k)?, tour.gpu.alloc::<u32>(rows * k)?);
    let op = tour.kernels.top_k(&x, &values, &indices, rows, columns, k);
    let (mut numbers, mut positions) = (Vec::new(), Vec::new());
    for row in host_x.chunks(columns) {
        let mut order: Vec<usize> = (0..columns).collect();
        order.sort_by(|a, b| row[*b].total_cmp(&row[*a]));
        numbers.extend(order[..k].iter().map(|at| f64::from(row[*at])));
        positions.extend(order[..k].iter().map(|at| *at as u32));
    }
    let sizes = format!("f32 {rows} x {columns}, k = {k}");
    tour.show("top_k", &sizes, op, 4 * rows * columns, || {
        check(&values, &numbers, 0.0)?;
        check_equal(&indices, &positions)
    })
}

fn histogram(tour: &mut Tour) -> Result {
    let (count, bins) = (20_000 * tour.scale, 256);
    let (x, host_x) = tour.upload(words(1, count).iter().map(|word| word >> 23).collect())?;
    let counts = tour.gpu.alloc::<u32>(bins)?;
    let mut expected = vec![0u32; bins];
    host_x.iter().for_each(|x| {
        // What exceeds the bins is not counted.
        expected.get_mut(*x as usize).into_iter().for_each(|count| *count += 1);
    });
    let op = tour.kernels.histogram(&x, &counts);
    let sizes = format!("u32 {count}, {bins} bins");
    tour.show("histogram", &sizes, op, 4 * count, || check_equal(&counts, &expected))
}

fn compact(tour: &mut Tour) -> Result {
    let len = 20_000 * tour.scale;
    let (x, host_x) = tour.upload(words(1, len))?;
    let (flags, host_flags) = tour.upload(words(2, len).iter().map(|word| word & 1).collect())?;
    let (y, count) = (tour.gpu.alloc::<u32>(len)?, tour.gpu.alloc::<u32>(1)?);
    let selected = host_x.iter().zip(&host_flags).filter(|(_, flag)| **flag != 0);
    let expected: Vec<u32> = selected.map(|(x, _)| *x).collect();
    let op = tour.kernels.compact(&x, &flags, &y, &count);
    tour.show("compact", &format!("u32 {len}"), op, 12 * len, || {
        check_equal(&count, &[expected.len() as u32])?;
        check_equal(&y, &expected)
    })
}
