//! Data-parallel k-means: 2^26 points of 16 coordinates, 64 clusters, 20 iterations.

use std::sync::Barrier;
use std::time::Instant;

use anyhow::{Result, ensure};
use scry_gpu::{Batch, Buffer, Device, DeviceGroup, GroupTransport, Launch, ReduceOp};

use crate::{Bench, on_each};

const POINTS: usize = 1 << 26;
const COORDINATES: usize = 16;
const CLUSTERS: usize = 64;
const ITERATIONS: usize = 20;

/// Buffers of the points of a rank.
const PARTS: usize = 2;

/// Points of a workgroup.
const BLOCK: usize = 256 * 64;
/// Sums of a workgroup: of coordinates and points for each cluster.
const SUMS: usize = CLUSTERS * (COORDINATES + 1);
/// Rows of partial sums that one invocation adds up.
const ROWS: usize = 64;

/// Fills a buffer with the same points on any number of ranks.
const POINTS_OF: &str = "
    var<immediate> first: u32;
    @group(0) @binding(0) var<storage, read_write> x: array<f32>;
    @compute @workgroup_size(256) fn fill(
        @builtin(global_invocation_id) id: vec3u,
        @builtin(num_workgroups) groups: vec3u,
    ) {
        for (var i = id.x; i < arrayLength(&x); i += groups.x * 256u) {
            let at = first + i;
            var h = at * 747796405u + 2891336453u;
            h = ((h >> ((h >> 28u) + 4u)) ^ h) * 277803737u;
            let point = at / 16u;
            let place = f32((point * 2654435761u) >> 26u) / 80.0;
            x[i] = place + f32(h >> 8u) / 16777216.0 * 0.2;
        }
    }";

/// Measures one GPU and all.
pub fn run(bench: &mut Bench) -> Result<()> {
    let (one, expected) = seconds(&bench.gpus[..1], POINTS)?;
    let (all, found) = seconds(&bench.gpus, POINTS)?;
    ensure!(found == expected, "the centroids depend on the number of ranks");
    let world = bench.gpus.len();
    bench.scaling(&format!("k-means 2^26 × 16 on {world}"), all, one);
    Ok(())
}

/// Returns the seconds of the slowest rank, and the centroids.
fn seconds(devices: &[Device], points: usize) -> Result<(f64, Vec<f32>)> {
    let barrier = Barrier::new(devices.len());
    let results = on_each(devices, |group| Ok(cluster(group, points, &barrier)?))?;
    let slowest = results.iter().map(|(seconds, _)| *seconds).fold(0.0, f64::max);
    Ok((slowest, results.into_iter().next().map(|(_, it)| it).unwrap_or_default()))
}

fn cluster(
    group: &DeviceGroup,
    points: usize,
    barrier: &Barrier,
) -> scry_gpu::Result<(f64, Vec<f32>)> {
    let gpu = group.device();
    let share = points / group.world_size();
    let fill = gpu.compile(POINTS_OF)?;
    // Two buffers: all points on one rank have more bytes than a binding.
    let part = share / PARTS * COORDINATES;
    let points = (0..PARTS).map(|index| {
        let points = gpu.alloc::<f32>(part)?;
        let first = (group.rank() * share * COORDINATES + index * part) as u32;
        gpu.run(&fill, &[&points], Launch::workgroups([4096, 1, 1]).immediates(&first))?;
        Ok(points)
    });
    let points = points.collect::<scry_gpu::Result<Vec<_>>>()?;
    let assign = gpu.compile(include_str!("kmeans.wgsl"))?;
    let split_rows = gpu.compile(include_str!("split.wgsl"))?;
    let add_rows = gpu.compile(include_str!("sum.wgsl"))?;
    let move_centroids = gpu.compile(include_str!("move.wgsl"))?;
    let blocks = (share / PARTS).div_ceil(BLOCK);
    let partial = gpu.alloc::<u32>(PARTS * blocks * SUMS)?;
    let level = (PARTS * blocks).div_ceil(ROWS);
    let (some, sums) = (gpu.alloc::<u32>(level * 2 * SUMS)?, gpu.alloc::<u32>(2 * SUMS)?);
    let start: Vec<f32> = (0..CLUSTERS * COORDINATES)
        .map(|i| (i / COORDINATES) as f32 / 80.0 + (i % COORDINATES) as f32 * 0.01)
        .collect();
    let centroids = gpu.alloc::<f32>(start.len())?;
    let iterate = || {
        let mut batch = gpu.batch();
        for (index, points) in points.iter().enumerate() {
            let sums = partial.slice(index * blocks * SUMS..(index + 1) * blocks * SUMS)?;
            let launch = Launch::workgroups([blocks as u32, 1, 1]);
            batch.run(&assign, &[points, &centroids, &sums], launch)?;
        }
        let columns = (SUMS / 64) as u32;
        let rows = Launch::workgroups([columns, level as u32, 1]).immediates(&(ROWS as u32));
        batch.run(&split_rows, &[&partial, &some], rows)?;
        let rows = Launch::workgroups([2 * columns, 1, 1]).immediates(&(level as u32));
        batch.run(&add_rows, &[&some, &sums], rows)?;
        reduce(group, &mut batch, &sums)?;
        batch.run(&move_centroids, &[&sums, &centroids], start.len())?;
        batch.submit_async().map(drop)
    };
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        centroids.write(&start)?;
        iterate()?;
        centroids.write(&start)?;
        gpu.wait()?;
        barrier.wait();
        let begin = Instant::now();
        (0..ITERATIONS).try_for_each(|_| iterate())?;
        gpu.wait()?;
        best = best.min(begin.elapsed().as_secs_f64());
    }
    Ok((best, centroids.download()?))
}

/// Adds up the sums of all ranks, after the commands of the batch.
fn reduce(group: &DeviceGroup, batch: &mut Batch, sums: &Buffer<u32>) -> scry_gpu::Result<()> {
    match group.transport() {
        _ if group.world_size() == 1 => Ok(()),
        GroupTransport::Nccl => batch.all_reduce(group, sums, sums, ReduceOp::Sum).map(drop),
        _ => {
            batch.submit()?;
            group.all_reduce(sums, sums, ReduceOp::Sum)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn centroids_do_not_depend_on_ranks() {
        let centroids = |world: usize| {
            let cpus: Vec<Device> =
                (0..world).map(|_| Device::open("cpu").expect("the CPU is present")).collect();
            seconds(&cpus, 1 << 17).expect("the ranks make the same calls").1
        };
        let expected = centroids(1);
        assert!(expected.iter().any(|it| *it > 0.1) && expected.iter().all(|it| *it < 1.0));
        assert_eq!(centroids(2), expected);
        assert_eq!(centroids(4), expected);
    }
}
