// c = a b with b column-major: one result for each invocation.

struct Sizes { m: u32, n: u32, k: u32 }
var<immediate> sizes: Sizes;
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> c: array<f32>;

@compute @workgroup_size(16, 16)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= sizes.n || id.y >= sizes.m {
        return;
    }
    var sum = 0.0;
    for (var i = 0u; i < sizes.k; i++) {
        sum += a[id.y * sizes.k + i] * b[id.x * sizes.k + i];
    }
    c[id.y * sizes.n + id.x] = sum;
}
