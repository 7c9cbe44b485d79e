// Distances between 64 queries and 64 points by a workgroup of 16 × 16 invocations, each of which
// computes 4 × 4. Coordinates are staged in workgroup memory, 16 at a time. Preceded by the elements'
// definitions, by point_quads.wgsl or point_elements.wgsl, and by
//
//     const METRIC: u32, one of those below.

const SQUARED_EUCLIDEAN: u32 = 0u;
const COSINE: u32 = 1u;
const L1: u32 = 2u;

// Quads of coordinates from one point to the next in a tile of 16 coordinates; one of them is padding,
// which avoids bank conflicts.
const PITCH: u32 = 5u;

// Coordinates of the queries, and of the points from POINTS_AT on. Other kernels use it for results.
const POINTS_AT: u32 = 320u;
var<workgroup> memory: array<vec4<f32>, MEMORY>;

// The distances of four queries, each from four points that are 16 apart.
struct Distances {
    a: vec4<f32>,
    b: vec4<f32>,
    c: vec4<f32>,
    d: vec4<f32>,
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

// Returns the distances of the queries from `4 * local_index / 16` on and the points `local_index % 16`
// plus multiples of 16 of a tile. All invocations of the workgroup call it.
fn distances_of(first_query: u32, first_point: u32, local_index: u32) -> Distances {
    let x = local_index % 16u;
    let y = local_index / 16u;
    // The coordinates that the invocation loads.
    let row = local_index / 4u;
    let quad = local_index % 4u;
    let at = row * PITCH + quad;
    var sums: Distances;
    // Squares of the loaded coordinates, of a query and a point.
    var squares = vec2<f32>();
    var next_q = load_query(first_query + row, quad * 4u);
    var next_p = load_point(first_point + row, quad * 4u);
    for (var start = 0u; start < shape.dimensions; start += 16u) {
        workgroupBarrier();
        memory[at] = next_q;
        memory[POINTS_AT + at] = next_p;
        workgroupBarrier();
        if METRIC == COSINE {
            squares += vec2<f32>(dot(next_q, next_q), dot(next_p, next_p));
        }
        let next = start + 16u + quad * 4u;
        next_q = load_query(first_query + row, next);
        next_p = load_point(first_point + row, next);
        for (var nth = 0u; nth < 4u; nth++) {
            let q_at = y * 4u * PITCH + nth;
            let q0 = memory[q_at];
            let q1 = memory[q_at + PITCH];
            let q2 = memory[q_at + 2u * PITCH];
            let q3 = memory[q_at + 3u * PITCH];
            let p_at = POINTS_AT + x * PITCH + nth;
            let p0 = memory[p_at];
            let p1 = memory[p_at + 16u * PITCH];
            let p2 = memory[p_at + 32u * PITCH];
            let p3 = memory[p_at + 48u * PITCH];
            sums.a = accumulate(sums.a, q0, p0, p1, p2, p3);
            sums.b = accumulate(sums.b, q1, p0, p1, p2, p3);
            sums.c = accumulate(sums.c, q2, p0, p1, p2, p3);
            sums.d = accumulate(sums.d, q3, p0, p1, p2, p3);
        }
    }
    workgroupBarrier();
    if METRIC == COSINE {
        memory[local_index] = vec4<f32>(squares, 0.0, 0.0);
        workgroupBarrier();
        let norms = vec4<f32>(norm(x).y, norm(x + 16u).y, norm(x + 32u).y, norm(x + 48u).y);
        sums.a = cosine_distances(sums.a, norm(y * 4u).x * norms);
        sums.b = cosine_distances(sums.b, norm(y * 4u + 1u).x * norms);
        sums.c = cosine_distances(sums.c, norm(y * 4u + 2u).x * norms);
        sums.d = cosine_distances(sums.d, norm(y * 4u + 3u).x * norms);
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
    return select(distances, vec4<f32>(), distances < vec4<f32>());
}

