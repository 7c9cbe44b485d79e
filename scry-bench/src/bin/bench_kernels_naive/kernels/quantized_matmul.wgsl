// y = x wᵀ with quantised weights: one result for each invocation.

struct Sizes { rows: u32, k: u32, n: u32 }
var<immediate> sizes: Sizes;
@group(0) @binding(0) var<storage, read> blocks: array<u32>;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= sizes.rows {
        return;
    }
    var sum = 0.0;
    for (var i = 0u; i < sizes.k; i++) {
        sum += weight(id.x * sizes.k + i) * x[id.y * sizes.k + i];
    }
    y[id.y * sizes.rows + id.x] = sum;
}
