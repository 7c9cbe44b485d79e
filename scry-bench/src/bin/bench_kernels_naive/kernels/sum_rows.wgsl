// The sum of each row: one row for each invocation.

struct Sizes { rows: u32, columns: u32 }
var<immediate> sizes: Sizes;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= sizes.rows {
        return;
    }
    var sum = 0.0;
    for (var i = 0u; i < sizes.columns; i++) {
        sum += x[id.x * sizes.columns + i];
    }
    out[id.x] = sum;
}
