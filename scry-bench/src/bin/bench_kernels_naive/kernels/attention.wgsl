// Causal attention: one row of q for each invocation, with a running maximum.

struct Sizes { heads: u32, length: u32, scale: f32 }
var<immediate> sizes: Sizes;
@group(0) @binding(0) var<storage, read> q: array<f32>;
@group(0) @binding(1) var<storage, read> k: array<f32>;
@group(0) @binding(2) var<storage, read> v: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;

const DIM = 32u;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= sizes.heads * sizes.length {
        return;
    }
    let head = id.x / sizes.length;
    var sums: array<f32, DIM>;
    var largest = -3.0e38;
    var total = 0.0;
    for (var row = 0u; row <= id.x % sizes.length; row++) {
        let start = (head * sizes.length + row) * DIM;
        var score = 0.0;
        for (var i = 0u; i < DIM; i++) {
            score += q[id.x * DIM + i] * k[start + i];
        }
        score *= sizes.scale;
        let next = max(largest, score);
        let keep = exp(largest - next);
        let weight = exp(score - next);
        total = total * keep + weight;
        for (var i = 0u; i < DIM; i++) {
            sums[i] = sums[i] * keep + weight * v[start + i];
        }
        largest = next;
    }
    for (var i = 0u; i < DIM; i++) {
        out[id.x * DIM + i] = sums[i] / total;
    }
}
