// Points whose number of coordinates is a multiple of 4. Preceded by the quads' definitions, and by
// `struct Shape` with the fields `queries`, `points` and `dimensions`.

@group(0) @binding(0) var<storage, read> queries: array<Quad>;
@group(0) @binding(1) var<storage, read> points: array<Quad>;

var<immediate> shape: Shape;

// Loads four coordinates; those beyond the end are 0.
fn load_query(row: u32, column: u32) -> vec4<f32> {
    if row < shape.queries && column < shape.dimensions {
        return widen_quad(queries[row * (shape.dimensions / 4u) + column / 4u]);
    }
    return vec4<f32>();
}

fn load_point(row: u32, column: u32) -> vec4<f32> {
    if row < shape.points && column < shape.dimensions {
        return widen_quad(points[row * (shape.dimensions / 4u) + column / 4u]);
    }
    return vec4<f32>();
}

