// Distances between all queries and all points. Preceded by point_tiles.wgsl, and by
//
//     fn store_rows(row: u32, column: u32, sums: Distances), which calls `store` for each row.

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
    let sums = distances_of(group.y * QUERIES, group.x * 64u, local_index);
    let row = group.y * QUERIES + local_index / 16u * ROWS;
    let column = group.x * 64u + local_index % 16u;
    store_rows(row, column, sums);
}
