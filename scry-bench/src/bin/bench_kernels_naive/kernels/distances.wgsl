// Squared distances: one pair of points for each invocation.

struct Sizes { queries: u32, points: u32, dim: u32 }
var<immediate> sizes: Sizes;
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(16, 16)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= sizes.points || id.y >= sizes.queries {
        return;
    }
    var sum = 0.0;
    for (var i = 0u; i < sizes.dim; i++) {
        let difference = a[id.y * sizes.dim + i] - b[id.x * sizes.dim + i];
        sum += difference * difference;
    }
    out[id.y * sizes.points + id.x] = sum;
}
