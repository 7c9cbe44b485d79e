// Distances between all queries and all points, one by each invocation. Preceded by distances.wgsl.

@group(0) @binding(2) var<storage, read_write> distances: array<f32>;

@compute @workgroup_size(16, 16)
fn pairwise_plain(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < shape.points && id.y < shape.queries {
        distances[id.y * shape.points + id.x] = distance_of(id.y, id.x);
    }
}
