// Distances between all queries and all points. Preceded by point_tiles.wgsl.

@group(0) @binding(2) var<storage, read_write> distances: array<f32>;

// Stores the distances of a query from four points that are 16 apart.
fn store(row: u32, column: u32, values: vec4<f32>) {
    if row >= shape.queries {
        return;
    }
    let at = row * shape.points + column;
    if column < shape.points {
        distances[at] = values.x;
    }
    if column + 16u < shape.points {
        distances[at + 16u] = values.y;
    }
    if column + 32u < shape.points {
        distances[at + 32u] = values.z;
    }
    if column + 48u < shape.points {
        distances[at + 48u] = values.w;
    }
}

@compute @workgroup_size(256)
fn pairwise(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    let sums = distances_of(group.y * 64u, group.x * 64u, local_index);
    let row = group.y * 64u + local_index / 16u * 4u;
    let column = group.x * 64u + local_index % 16u;
    store(row, column, sums.a);
    store(row + 1u, column, sums.b);
    store(row + 2u, column, sums.c);
    store(row + 3u, column, sums.d);
}
