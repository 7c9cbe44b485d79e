// The nearest points of each query in a slice of the points. A query's distances from the points of a
// tile are searched by PARTS invocations, each of which looks at every PARTS-th quad of points, and
// keeps a sorted list. Preceded by point_tiles.wgsl, the list, and
//
//     fn keep_rows(row: u32, column: u32, sums: Distances, phase: u32), which calls `keep` for the rows
//     of a phase.

@group(0) @binding(2) var<storage, read_write> lists: array<vec2<u32>>;

// Distances are exchanged in phases, in each of which invocations store those of KEPT queries.
const PHASES: u32 = QUERY_LOADS;
const KEPT: u32 = ROWS / PHASES;
const PARTS: u32 = 16u / ROWS;

// Stores the distances of a query from four points that are 16 apart: quads of points by query. Quads
// are exchanged so that neither writing nor reading has bank conflicts.
fn keep(row: u32, column: u32, values: vec4<f32>) {
    let first = row * 16u + ((column / 4u) ^ exchange_of(row));
    memory[first][column % 4u] = values.x;
    memory[first ^ 4u][column % 4u] = values.y;
    memory[first ^ 8u][column % 4u] = values.z;
    memory[first ^ 12u][column % 4u] = values.w;
}

fn exchange_of(row: u32) -> u32 {
    if PARTS == 2u {
        return (((row * 2u) ^ row) & 4u) | ((row & 1u) * 2u);
    }
    if PARTS == 4u {
        return ((row ^ (row >> 2u)) & 1u) * 4u;
    }
    return (row & 1u) * 4u;
}

// Returns distances as numbers in the same order: they are not negative. NaN, without its sign, is the
// largest.
fn keys_of(distances: vec4<f32>) -> vec4<u32> {
    return bitcast<vec4<u32>>(distances) & vec4<u32>(0x7fffffffu);
}

// Returns a mask of the keys that may be among the nearest.
fn candidates(keys: vec4<u32>, first_point: u32) -> u32 {
    let points = vec4<u32>(first_point, first_point + 1u, first_point + 2u, first_point + 3u);
    let is_near = (keys < vec4<u32>(farthest())) & (points < vec4<u32>(shape.points));
    let bits = select(vec4<u32>(), vec4<u32>(1u, 2u, 4u, 8u), is_near);
    return bits.x | bits.y | bits.z | bits.w;
}

@compute @workgroup_size(256)
fn nearest_in_slices(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    let column = local_index % 16u;
    // What the invocation searches.
    let searchers = 256u / PHASES;
    let own_phase = local_index / searchers;
    let row = local_index % searchers / PARTS;
    let part = local_index % PARTS;
    let row_at = row * 16u;
    let exchange = exchange_of(row);
    clear_list();
    for (var tile = 0u; tile < shape.tiles; tile++) {
        let nth_tile = group.y * shape.tiles + tile;
        if nth_tile >= (shape.points + 63u) / 64u {
            break;
        }
        let first_point = nth_tile * 64u;
        let sums = distances_of(group.x * QUERIES, first_point, local_index);
        for (var phase = 0u; phase < PHASES; phase++) {
            keep_rows(local_index / 16u * KEPT, column, sums, phase);
            workgroupBarrier();
            if phase == own_phase {
                var mask = 0u;
                for (var nth = 0u; nth < ROWS; nth++) {
                    let quad = nth * PARTS + part;
                    let keys = keys_of(memory[row_at + (quad ^ exchange)]);
                    mask |= candidates(keys, first_point + quad * 4u) << (nth * 4u);
                }
                // Invocations insert together, though what they insert is at different positions.
                while mask != 0u {
                    let bit = firstTrailingBit(mask);
                    mask &= mask - 1u;
                    let quad = bit / 4u * PARTS + part;
                    let value = memory[row_at + (quad ^ exchange)][bit & 3u];
                    let key = bitcast<u32>(value) & 0x7fffffffu;
                    if key < farthest() {
                        insert(key, first_point + quad * 4u + (bit & 3u));
                    }
                }
            }
            if phase + 1u < PHASES {
                workgroupBarrier();
            }
        }
    }
    let nth_query = group.x * QUERIES + row / KEPT * ROWS + own_phase * KEPT + row % KEPT;
    if nth_query < shape.queries {
        store_list(((nth_query * shape.slices + group.y) * PARTS + part) * K);
    }
}
