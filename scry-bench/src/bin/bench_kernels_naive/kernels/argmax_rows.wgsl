// The position of the largest element of each row: one row for each invocation.

struct Sizes { rows: u32, columns: u32 }
var<immediate> sizes: Sizes;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= sizes.rows {
        return;
    }
    var largest = x[id.x * sizes.columns];
    var position = 0u;
    for (var i = 1u; i < sizes.columns; i++) {
        let value = x[id.x * sizes.columns + i];
        if value > largest {
            largest = value;
            position = i;
        }
    }
    out[id.x] = position;
}
