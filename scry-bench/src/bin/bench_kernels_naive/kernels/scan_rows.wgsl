// Inclusive prefix sums of rows: one row for each invocation.

struct Sizes { rows: u32, columns: u32 }
var<immediate> sizes: Sizes;
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= sizes.rows {
        return;
    }
    var sum = 0u;
    for (var i = id.x * sizes.columns; i < (id.x + 1u) * sizes.columns; i++) {
        sum += x[i];
        y[i] = sum;
    }
}
