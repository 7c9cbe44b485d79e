//! Data-parallel k-means: each rank has a part of the points, and all have the same centroids.
//!
//! In each iteration a rank assigns its points to the nearest centroid and adds their coordinates
//! up; `all_reduce` adds up the sums of the ranks. Coordinates are integers, so that the sums are
//! exact and the result does not depend on how the points are distributed: rank 0 checks that
//! centroids of a single device have the same bits.
//!
//! As processes, one for each rank, on CUDA each with the GPU of its local rank:
//!
//!     cargo build --release -p scry-gpu --example multi_gpu_kmeans
//!     scry launch --ranks 2 -- target/release/examples/multi_gpu_kmeans
//!
//! On its own, the program is a group of all GPUs present, or of two CPU devices.

#[path = "shared/ranks.rs"]
mod ranks;

use scry_gpu::{DeviceGroup, ReduceOp, Result};

/// Points of all ranks, pairs of integers below [`SIDE`].
const POINTS: usize = 60_000;
const SIDE: u32 = 4096;
const CLUSTERS: usize = 8;
const ITERATIONS: usize = 15;

/// For each cluster the sums of both coordinates, and the number of its points.
const ASSIGN: &str = "
    @group(0) @binding(0) var<storage, read> points: array<vec2u>;
    @group(0) @binding(1) var<storage, read> centroids: array<vec2f>;
    @group(0) @binding(2) var<storage, read_write> sums: array<atomic<u32>>;

    @compute @workgroup_size(64)
    fn assign(@builtin(global_invocation_id) id: vec3u) {
        if id.x >= arrayLength(&points) { return; }
        let point = points[id.x];
        var nearest = 0u;
        var least = 1e30;
        for (var cluster = 0u; cluster < arrayLength(&centroids); cluster++) {
            let offset = vec2f(point) - centroids[cluster];
            let distance = dot(offset, offset);
            if distance < least {
                least = distance;
                nearest = cluster;
            }
        }
        atomicAdd(&sums[3u * nearest], point.x);
        atomicAdd(&sums[3u * nearest + 1u], point.y);
        atomicAdd(&sums[3u * nearest + 2u], 1u);
    }
";

/// Moves each centroid to the mean of its points, and clears the sums.
const MOVE: &str = "
    @group(0) @binding(0) var<storage, read_write> sums: array<u32>;
    @group(0) @binding(1) var<storage, read_write> centroids: array<vec2f>;

    @compute @workgroup_size(64)
    fn move_centroids(@builtin(global_invocation_id) id: vec3u) {
        let i = id.x;
        if i >= arrayLength(&centroids) { return; }
        if sums[3u * i + 2u] > 0u {
            let sum = vec2f(f32(sums[3u * i]), f32(sums[3u * i + 1u]));
            centroids[i] = sum / f32(sums[3u * i + 2u]);
        }
        for (var j = 0u; j < 3u; j++) { sums[3u * i + j] = 0u; }
    }
";

fn main() -> Result<()> {
    ranks::run(|group| {
        let points = points();
        let share = POINTS.div_ceil(group.world_size());
        let start = (group.rank() * share).min(POINTS);
        let part = &points[start..(start + share).min(POINTS)];
        let centroids = cluster(group, part)?;
        if group.rank() > 0 {
            return Ok(());
        }
        let alone = [group.device().clone()];
        let expected = DeviceGroup::on_each(&alone, |group| cluster(group, &points))?.remove(0);
        assert_eq!(centroids, expected, "the centroids depend on the number of ranks");
        println!(
            "{POINTS} points on {} ranks, through {}: centroids {centroids:.1?}",
            group.world_size(),
            group.transport()
        );
        Ok(())
    })
}

/// Returns the centroids of the points of all ranks, of which this one has `part`.
fn cluster(group: &DeviceGroup, part: &[[u32; 2]]) -> Result<Vec<[f32; 2]>> {
    let gpu = group.device();
    let (assign, move_centroids) = (gpu.compile(ASSIGN)?, gpu.compile(MOVE)?);
    let points = gpu.upload(part)?;
    let first: Vec<[f32; 2]> = (0..CLUSTERS).map(|i| [i as f32 * 500.0, 2000.0]).collect();
    let centroids = gpu.upload(&first)?;
    let sums = gpu.alloc::<u32>(3 * CLUSTERS)?;
    for _ in 0..ITERATIONS {
        if !points.is_empty() {
            gpu.run(&assign, &[&points, &centroids, &sums], points.len())?;
        }
        group.all_reduce(&sums, &sums, ReduceOp::Sum)?;
        gpu.run(&move_centroids, &[&sums, &centroids], CLUSTERS)?;
    }
    centroids.download()
}

/// Returns points around as many places as there are clusters.
fn points() -> Vec<[u32; 2]> {
    let mut state = 1u32;
    let mut below = |bound: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % bound
    };
    let places: Vec<[u32; 2]> = (0..CLUSTERS).map(|_| [below(SIDE), below(SIDE)]).collect();
    let mut near = |place: u32| (place + below(200) + below(200)).min(SIDE - 1);
    places.iter().cycle().take(POINTS).map(|place| place.map(&mut near)).collect()
}
