// The nearest points of each query in a slice of the points. A workgroup has 64 queries; four
// invocations look for the nearest points of a query, each in a quarter of the points of a tile, and
// keep a sorted list. Preceded by point_tiles.wgsl and nearest_list.wgsl.

@group(0) @binding(2) var<storage, read_write> lists: array<vec2<u32>>;

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
    return ((row ^ (row >> 2u)) & 1u) * 4u;
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
    let row = local_index / 16u * 4u;
    let column = local_index % 16u;
    let query = local_index / 4u;
    let quarter = local_index % 4u;
    let row_at = query * 16u;
    let exchange = exchange_of(query);
    clear_list();
    for (var tile = 0u; tile < shape.tiles; tile++) {
        let nth_tile = group.y * shape.tiles + tile;
        if nth_tile >= (shape.points + 63u) / 64u {
            break;
        }
        let first_point = nth_tile * 64u;
        let sums = distances_of(group.x * 64u, first_point, local_index);
        keep(row, column, sums.a);
        keep(row + 1u, column, sums.b);
        keep(row + 2u, column, sums.c);
        keep(row + 3u, column, sums.d);
        workgroupBarrier();
        var mask = 0u;
        for (var nth = 0u; nth < 4u; nth++) {
            let quad = nth * 4u + quarter;
            let keys = keys_of(memory[row_at + (quad ^ exchange)]);
            mask |= candidates(keys, first_point + quad * 4u) << (nth * 4u);
        }
        // Invocations insert together, though what they insert is at different positions.
        while mask != 0u {
            let bit = firstTrailingBit(mask);
            mask &= mask - 1u;
            let quad = (bit & 12u) + quarter;
            let key = bitcast<u32>(memory[row_at + (quad ^ exchange)][bit & 3u]) & 0x7fffffffu;
            if key < farthest() {
                insert(key, first_point + quad * 4u + (bit & 3u));
            }
        }
    }
    let nth_query = group.x * 64u + query;
    if nth_query < shape.queries {
        store_list(((nth_query * shape.slices + group.y) * 4u + quarter) * K);
    }
}
