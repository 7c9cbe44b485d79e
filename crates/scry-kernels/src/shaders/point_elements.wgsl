// Points with any number of coordinates. Preceded by the elements' definitions, and by `struct Shape`
// with the fields `queries`, `points` and `dimensions`.

@group(0) @binding(0) var<storage, read> queries: array<Stored>;
@group(0) @binding(1) var<storage, read> points: array<Stored>;

var<immediate> shape: Shape;

// Returns the coordinates that are within a point: those beyond its end are 0.
fn within(values: vec4<f32>, is_used: bool, column: u32) -> vec4<f32> {
    let end = select(0u, shape.dimensions, is_used);
    let columns = vec4<u32>(column, column + 1u, column + 2u, column + 3u);
    return select(vec4<f32>(), values, columns < vec4<u32>(end));
}

// Loads four coordinates, unconditionally.
fn load_query(row: u32, column: u32) -> vec4<f32> {
    let at = row * shape.dimensions + column;
    let values = vec4<f32>(
        widen(queries[at]),
        widen(queries[at + 1u]),
        widen(queries[at + 2u]),
        widen(queries[at + 3u]),
    );
    return within(values, row < shape.queries, column);
}

fn load_point(row: u32, column: u32) -> vec4<f32> {
    let at = row * shape.dimensions + column;
    let values = vec4<f32>(
        widen(points[at]),
        widen(points[at + 1u]),
        widen(points[at + 2u]),
        widen(points[at + 3u]),
    );
    return within(values, row < shape.points, column);
}

