// Transposes of a batch of matrices: one element for each invocation.

struct Sizes { batch: u32, rows: u32, columns: u32 }
var<immediate> sizes: Sizes;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(16, 16)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= sizes.columns || id.y >= sizes.rows {
        return;
    }
    let start = id.z * sizes.rows * sizes.columns;
    y[start + id.x * sizes.rows + id.y] = x[start + id.y * sizes.columns + id.x];
}
