// RMS norm without weights: one row for each invocation.

struct Sizes { rows: u32, columns: u32 }
var<immediate> sizes: Sizes;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= sizes.rows {
        return;
    }
    let start = id.x * sizes.columns;
    var square = 0.0;
    for (var i = 0u; i < sizes.columns; i++) {
        square += x[start + i] * x[start + i];
    }
    let factor = inverseSqrt(square / f32(sizes.columns) + 1.0e-5);
    for (var i = 0u; i < sizes.columns; i++) {
        y[start + i] = x[start + i] * factor;
    }
}
