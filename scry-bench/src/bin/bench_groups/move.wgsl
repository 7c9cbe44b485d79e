// Moves each centroid to the mean of its points.

@group(0) @binding(0) var<storage, read> sums: array<f32>;
@group(0) @binding(1) var<storage, read_write> centroids: array<f32>;

@compute @workgroup_size(64)
fn move_centroids(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= arrayLength(&centroids) { return; }
    let cluster = id.x / 16u;
    let count = sums[17u * cluster + 16u];
    if count > 0.0 { centroids[id.x] = sums[17u * cluster + id.x % 16u] / count; }
}
