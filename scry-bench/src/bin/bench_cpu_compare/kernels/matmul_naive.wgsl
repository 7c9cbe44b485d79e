// C = A · B, a dot product for each invocation, any size.

struct Shape {
    m: u32,
    n: u32,
    k: u32,
}

@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> c: array<f32>;
var<immediate> shape: Shape;

@compute @workgroup_size(16, 16)
fn matmul(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= shape.n || id.y >= shape.m {
        return;
    }
    var sum = 0.0;
    for (var i = 0u; i < shape.k; i++) {
        sum += a[id.y * shape.k + i] * b[i * shape.n + id.x];
    }
    c[id.y * shape.n + id.x] = sum;
}
