// Rotary position embedding: one pair for each invocation.

struct Sizes { rows: u32, heads: u32, dim: u32 }
var<immediate> sizes: Sizes;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> positions: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let pairs = sizes.dim / 2u;
    if id.x >= sizes.rows * sizes.heads * pairs {
        return;
    }
    let pair = id.x % pairs;
    let head = id.x / pairs;
    let position = f32(positions[head / sizes.heads]);
    let angle = position * pow(10000.0, -2.0 * f32(pair) / f32(sizes.dim));
    let at = head * sizes.dim + pair;
    y[at] = x[at] * cos(angle) - x[at + pairs] * sin(angle);
    y[at + pairs] = x[at + pairs] * cos(angle) + x[at] * sin(angle);
}
