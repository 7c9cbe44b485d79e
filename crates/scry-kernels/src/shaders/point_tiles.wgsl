// Distances between queries and 64 points by a workgroup of 16 × 16 invocations, each of which computes
// ROWS × 4. Coordinates are staged in workgroup memory, 16 at a time. Preceded by the elements'
// definitions, by point_quads.wgsl or point_elements.wgsl, and by
//
//     const METRIC: u32, one of those below; const ROWS: u32, which is 1, 4 or 8; and
//     struct Distances { row0: vec4<f32>, … }, the distances of ROWS queries, each from four points that
//     are 16 apart; with
//     fn add_rows(sums: Distances, first: u32, p0: vec4<f32>, …, p3: vec4<f32>) -> Distances, which
//     accumulates the terms of the queries from memory[first] on; and
//     fn cosine_rows(sums: Distances, first_row: u32, norms: vec4<f32>) -> Distances.
//
// Rows are fields, not an array in a loop, since the CPU does not unroll loops.

const SQUARED_EUCLIDEAN: u32 = 0u;
const COSINE: u32 = 1u;
const L1: u32 = 2u;

// Quads of coordinates from one point to the next in a tile of 16 coordinates; one of them is padding,
// which avoids bank conflicts.
const PITCH: u32 = 5u;

// Queries of a workgroup, and how many of them an invocation loads.
const QUERIES: u32 = 16u * ROWS;
const QUERY_LOADS: u32 = (ROWS + 3u) / 4u;

// Coordinates of the queries, and of the points from POINTS_AT on. Other kernels use it for results.
const POINTS_AT: u32 = QUERIES * PITCH;
var<workgroup> memory: array<vec4<f32>, MEMORY>;

// Four coordinates of each query that an invocation stages.
struct QueryQuads {
    a: vec4<f32>,
    b: vec4<f32>,
}

// Adds the terms of four coordinates of a query and a point.
fn add_terms(sum: f32, q: vec4<f32>, p: vec4<f32>) -> f32 {
    if METRIC == COSINE {
        return fma(q.w, p.w, fma(q.z, p.z, fma(q.y, p.y, fma(q.x, p.x, sum))));
    }
    // Differences are not expanded: close points suffer no cancellation.
    let d = q - p;
    if METRIC == L1 {
        return sum + abs(d.x) + abs(d.y) + abs(d.z) + abs(d.w);
    }
    return fma(d.w, d.w, fma(d.z, d.z, fma(d.y, d.y, fma(d.x, d.x, sum))));
}

fn accumulate(
    sums: vec4<f32>,
    q: vec4<f32>,
    p0: vec4<f32>,
    p1: vec4<f32>,
    p2: vec4<f32>,
    p3: vec4<f32>,
) -> vec4<f32> {
    return vec4<f32>(
        add_terms(sums.x, q, p0),
        add_terms(sums.y, q, p1),
        add_terms(sums.z, q, p2),
        add_terms(sums.w, q, p3),
    );
}

fn load_queries(first_query: u32, row: u32, column: u32) -> QueryQuads {
    var quads: QueryQuads;
    if row < QUERIES {
        quads.a = load_query(first_query + row, column);
    }
    if QUERY_LOADS == 2u {
        quads.b = load_query(first_query + row + 64u, column);
    }
    return quads;
}

// Returns the distances of the queries from `ROWS * (local_index / 16)` on and the points
// `local_index % 16` plus multiples of 16 of a tile. All invocations of the workgroup call it.
fn distances_of(first_query: u32, first_point: u32, local_index: u32) -> Distances {
    let x = local_index % 16u;
    let y = local_index / 16u;
    // The coordinates that the invocation loads.
    let row = local_index / 4u;
    let quad = local_index % 4u;
    let at = row * PITCH + quad;
    var sums: Distances;
    // Squares of the loaded coordinates, of queries and a point.
    var query_squares = vec2<f32>();
    var point_squares = 0.0;
    var next_q = load_queries(first_query, row, quad * 4u);
    var next_p = load_point(first_point + row, quad * 4u);
    for (var start = 0u; start < shape.dimensions; start += 16u) {
        workgroupBarrier();
        if row < QUERIES {
            memory[at] = next_q.a;
        }
        if QUERY_LOADS == 2u {
            memory[at + 64u * PITCH] = next_q.b;
        }
        memory[POINTS_AT + at] = next_p;
        workgroupBarrier();
        if METRIC == COSINE {
            query_squares += vec2<f32>(dot(next_q.a, next_q.a), dot(next_q.b, next_q.b));
            point_squares += dot(next_p, next_p);
        }
        let next = start + 16u + quad * 4u;
        next_q = load_queries(first_query, row, next);
        next_p = load_point(first_point + row, next);
        for (var nth = 0u; nth < 4u; nth++) {
            let p_at = POINTS_AT + x * PITCH + nth;
            let p0 = memory[p_at];
            let p1 = memory[p_at + 16u * PITCH];
            let p2 = memory[p_at + 32u * PITCH];
            let p3 = memory[p_at + 48u * PITCH];
            sums = add_rows(sums, y * ROWS * PITCH + nth, p0, p1, p2, p3);
        }
    }
    workgroupBarrier();
    if METRIC == COSINE {
        memory[local_index] = vec4<f32>(query_squares.x, point_squares, 0.0, 0.0);
        if QUERY_LOADS == 2u {
            memory[local_index + 256u] = vec4<f32>(query_squares.y, 0.0, 0.0, 0.0);
        }
        workgroupBarrier();
        let norms = vec4<f32>(norm(x).y, norm(x + 16u).y, norm(x + 32u).y, norm(x + 48u).y);
        sums = cosine_rows(sums, y * ROWS, norms);
        workgroupBarrier();
    }
    return sums;
}

// Returns the lengths of a query and a point of the tile.
fn norm(row: u32) -> vec2<f32> {
    let at = row * 4u;
    let squares = memory[at] + memory[at + 1u] + memory[at + 2u] + memory[at + 3u];
    return sqrt(squares.xy);
}

// Returns 1 - cosine; the cosine with a zero vector is 0. Rounding makes no distance negative.
fn cosine_distances(products: vec4<f32>, norms: vec4<f32>) -> vec4<f32> {
    let is_zero = norms == vec4<f32>();
    let cosines = products / select(norms, vec4<f32>(1.0), is_zero);
    let distances = 1.0 - select(cosines, vec4<f32>(), is_zero);
    // By their bits: compilers replace a comparison with 0 and a selection by a maximum, which drops
    // NaN.
    let bits = bitcast<vec4<u32>>(distances);
    let is_negative = (bits > vec4<u32>(0x80000000u)) & (bits <= vec4<u32>(0xff800000u));
    return select(distances, vec4<f32>(), is_negative);
}

