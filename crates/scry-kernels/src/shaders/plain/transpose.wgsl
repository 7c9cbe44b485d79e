// Transposes matrices, an element by each invocation. Preceded by the elements' definitions and by
// transpose_outer.wgsl.

@group(0) @binding(0) var<storage, read> x: array<Stored>;
@group(0) @binding(1) var<storage, read_write> y: array<Stored>;

@compute @workgroup_size(16, 16)
fn transpose_plain(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= shape.columns || id.y >= shape.rows {
        return;
    }
    let start = outer_positions(id.z);
    y[start.y + id.x * shape.y_row + id.y] = x[start.x + id.y * shape.x_row + id.x];
}
