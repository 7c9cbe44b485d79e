// Squared distances in tiles of 64×64: 256 invocations, each with 4×4 distances in registers.
// Coordinates are staged in workgroup memory, 16 at a time. Differences are squared directly: close
// points suffer no cancellation, and no distance is negative.
//
// Appended to io_scalar.wgsl or io_vec4.wgsl, which define `shape` and the loads.

const TILE_K: u32 = 16u;
// `vec4`s from one point to the next in a tile; one of them is padding, which avoids bank
// conflicts.
const PITCH: u32 = 5u;

var<workgroup> tile_q: array<vec4<f32>, 320>;
var<workgroup> tile_p: array<vec4<f32>, 320>;

fn add_squares(sum: f32, d: vec4<f32>) -> f32 {
    return fma(d.w, d.w, fma(d.z, d.z, fma(d.y, d.y, fma(d.x, d.x, sum))));
}

// Adds the terms of four coordinates to one query's distances from four points.
fn accumulate(
    sum: vec4<f32>, q: vec4<f32>, p0: vec4<f32>, p1: vec4<f32>, p2: vec4<f32>, p3: vec4<f32>,
) -> vec4<f32> {
    return vec4(
        add_squares(sum.x, q - p0),
        add_squares(sum.y, q - p1),
        add_squares(sum.z, q - p2),
        add_squares(sum.w, q - p3),
    );
}

// Writes one query's distances from four points that are 16 apart.
fn store(row: u32, column: u32, value: vec4<f32>) {
    if row < shape.queries {
        let at = row * shape.points + column;
        if column < shape.points { distances[at] = value.x; }
        if column + 16u < shape.points { distances[at + 16u] = value.y; }
        if column + 32u < shape.points { distances[at + 32u] = value.z; }
        if column + 48u < shape.points { distances[at + 48u] = value.w; }
    }
}

@compute @workgroup_size(16, 16)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    let row_in_tile = local_index / 4u;
    let quad_in_row = local_index % 4u;
    let at = row_in_tile * PITCH + quad_in_row;
    let q_row = group.y * 64u + row_in_tile;
    let p_row = group.x * 64u + row_in_tile;
    let steps = (shape.dimensions + TILE_K - 1u) / TILE_K;

    var d0 = vec4<f32>();
    var d1 = vec4<f32>();
    var d2 = vec4<f32>();
    var d3 = vec4<f32>();

    var next_q = load_query(q_row, quad_in_row * 4u);
    var next_p = load_point(p_row, quad_in_row * 4u);
    for (var step = 0u; step < steps; step++) {
        workgroupBarrier();
        tile_q[at] = next_q;
        tile_p[at] = next_p;
        workgroupBarrier();
        let column = (step + 1u) * TILE_K + quad_in_row * 4u;
        next_q = load_query(q_row, column);
        next_p = load_point(p_row, column);

        for (var quad = 0u; quad < 4u; quad++) {
            let q_at = local.y * 4u * PITCH + quad;
            let q0 = tile_q[q_at];
            let q1 = tile_q[q_at + PITCH];
            let q2 = tile_q[q_at + 2u * PITCH];
            let q3 = tile_q[q_at + 3u * PITCH];

            let p_at = local.x * PITCH + quad;
            let p0 = tile_p[p_at];
            let p1 = tile_p[p_at + 16u * PITCH];
            let p2 = tile_p[p_at + 32u * PITCH];
            let p3 = tile_p[p_at + 48u * PITCH];
            d0 = accumulate(d0, q0, p0, p1, p2, p3);
            d1 = accumulate(d1, q1, p0, p1, p2, p3);
            d2 = accumulate(d2, q2, p0, p1, p2, p3);
            d3 = accumulate(d3, q3, p0, p1, p2, p3);
        }
    }

    let row = group.y * 64u + local.y * 4u;
    let column = group.x * 64u + local.x;
    store(row, column, d0);
    store(row + 1u, column, d1);
    store(row + 2u, column, d2);
    store(row + 3u, column, d3);
}
