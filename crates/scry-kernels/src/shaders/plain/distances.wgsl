// The distance of a query and a point: the terms are added in the order of point_tiles.wgsl. Preceded by the elements' definitions, and by
//
//     const METRIC: u32, L1 or the squared Euclidean distance; struct Shape { queries, points, dimensions: u32 }.

const L1: u32 = 2u;

@group(0) @binding(0) var<storage, read> queries: array<Stored>;
@group(0) @binding(1) var<storage, read> points: array<Stored>;

var<immediate> shape: Shape;

// Adds the term of a coordinate.
fn add_term(sum: f32, q: f32, p: f32) -> f32 {
    if METRIC == L1 {
        return sum + abs(q - p);
    }
    return fma(q - p, q - p, sum);
}

fn distance_of(query: u32, point: u32) -> f32 {
    let q_at = query * shape.dimensions;
    let p_at = point * shape.dimensions;
    var sum = 0.0;
    for (var nth = 0u; nth < shape.dimensions; nth++) {
        sum = add_term(sum, widen(queries[q_at + nth]), widen(points[p_at + nth]));
    }
    return sum;
}
