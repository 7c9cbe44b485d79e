// Points with any number of dimensions, read one element at a time.

struct Shape {
    queries: u32,
    points: u32,
    dimensions: u32,
}

@group(0) @binding(0) var<storage, read> queries: array<f32>;
@group(0) @binding(1) var<storage, read> points: array<f32>;
@group(0) @binding(2) var<storage, read_write> distances: array<f32>;
var<immediate> shape: Shape;

fn load_query(row: u32, column: u32) -> vec4<f32> {
    var value = vec4<f32>();
    if row < shape.queries {
        let at = row * shape.dimensions + column;
        if column < shape.dimensions { value.x = queries[at]; }
        if column + 1u < shape.dimensions { value.y = queries[at + 1u]; }
        if column + 2u < shape.dimensions { value.z = queries[at + 2u]; }
        if column + 3u < shape.dimensions { value.w = queries[at + 3u]; }
    }
    return value;
}

fn load_point(row: u32, column: u32) -> vec4<f32> {
    var value = vec4<f32>();
    if row < shape.points {
        let at = row * shape.dimensions + column;
        if column < shape.dimensions { value.x = points[at]; }
        if column + 1u < shape.dimensions { value.y = points[at + 1u]; }
        if column + 2u < shape.dimensions { value.z = points[at + 2u]; }
        if column + 3u < shape.dimensions { value.w = points[at + 3u]; }
    }
    return value;
}

