// Points with a multiple of four dimensions.

struct Shape {
    queries: u32,
    points: u32,
    dimensions: u32,
}

@group(0) @binding(0) var<storage, read> queries: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> points: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> distances: array<f32>;
var<immediate> shape: Shape;

fn load_query(row: u32, column: u32) -> vec4<f32> {
    if row < shape.queries && column < shape.dimensions {
        return queries[row * (shape.dimensions / 4u) + column / 4u];
    }
    return vec4<f32>();
}

fn load_point(row: u32, column: u32) -> vec4<f32> {
    if row < shape.points && column < shape.dimensions {
        return points[row * (shape.dimensions / 4u) + column / 4u];
    }
    return vec4<f32>();
}

