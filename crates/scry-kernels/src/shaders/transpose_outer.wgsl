// A batch of transposed matrices: those two axes of a permutation that are contiguous in `x` and in
// `y`. Preceded by
//
//     const OUTER: u32, the number of other axes, at most 4.

struct Shape {
    // Size and strides, in elements, of the axis that is contiguous in `y`, and of the one that is
    // contiguous in `x`.
    rows: u32,
    columns: u32,
    x_row: u32,
    y_row: u32,
    // Strides and sizes of the other axes in the order of `y`, the last one in `w`.
    x_outer: vec4<u32>,
    y_outer: vec4<u32>,
    outer: vec4<u32>,
}

var<immediate> shape: Shape;

// Returns the positions in `x` and `y` of the first element of a matrix.
fn outer_positions(matrix: u32) -> vec2<u32> {
    var position = vec4<u32>(0u, 0u, 0u, matrix);
    if OUTER > 1u {
        position.z = position.w / shape.outer.w;
        position.w %= shape.outer.w;
    }
    if OUTER > 2u {
        position.y = position.z / shape.outer.z;
        position.z %= shape.outer.z;
    }
    if OUTER > 3u {
        position.x = position.y / shape.outer.y;
        position.y %= shape.outer.y;
    }
    return vec2<u32>(dot(position, shape.x_outer), dot(position, shape.y_outer));
}
