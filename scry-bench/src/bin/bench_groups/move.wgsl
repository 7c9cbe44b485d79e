// Moves each centroid to the mean of its points. Sums have their low and their high 16 bits apart.

@group(0) @binding(0) var<storage, read> sums: array<u32>;
@group(0) @binding(1) var<storage, read_write> centroids: array<f32>;

fn sum(at: u32) -> f32 {
    return f32(sums[1088u + at]) + f32(sums[at]) / 65536.0;
}

@compute @workgroup_size(64)
fn move_centroids(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= arrayLength(&centroids) { return; }
    let cluster = id.x / 16u;
    let count = sum(17u * cluster + 16u);
    if count > 0.0 { centroids[id.x] = sum(17u * cluster + id.x % 16u) / count; }
}
