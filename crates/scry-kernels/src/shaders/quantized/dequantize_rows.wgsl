// Converts the rows of a table that indices select to elements. Preceded by the elements'
// definitions and the function `weight`.

struct Shape {
    rows: u32,
    columns: u32,
    // Indices.
    count: u32,
}

@group(0) @binding(1) var<storage, read> indices: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<Stored>;

var<immediate> shape: Shape;

@compute @workgroup_size(256)
fn dequantize_rows(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= shape.count * shape.columns {
        return;
    }
    let index = indices[id.x / shape.columns];
    var value = 0.0;
    if index < shape.rows {
        value = weight(index * shape.columns + id.x % shape.columns);
    }
    y[id.x] = narrow(value);
}
