// y[j, k, i] = x[i, j, k]: one element for each invocation.

struct Sizes { i: u32, j: u32, k: u32 }
var<immediate> sizes: Sizes;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= sizes.i * sizes.j * sizes.k {
        return;
    }
    let i = id.x % sizes.i;
    let k = id.x / sizes.i % sizes.k;
    let j = id.x / sizes.i / sizes.k;
    y[id.x] = x[(i * sizes.j + j) * sizes.k + k];
}
