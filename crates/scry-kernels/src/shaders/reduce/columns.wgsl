// Reduces columns: LANES columns by a workgroup, or by several, one per segment of the columns, whose
// states a second pass reduces. Neighbouring invocations have neighbouring columns. Preceded by `Parameters`, by
// tile.wgsl, by `put`, and by
//
//     const LANES: u32, a power of two, at most 256; const THREADS = 256u / LANES.
//
// A column has `length` elements; the matrix has `rows` columns: it is transposed.

var<workgroup> exchange: array<State, 256>;

// Returns the state of a tile of a column, which starts at row `first`.
fn tile_of_column(column: u32, first: u32, thread: u32) -> State {
    let columns = parameters.rows;
    let stride = THREADS * columns;
    let rest = parameters.length - first;
    if rest >= TILE {
        let at = first + thread;
        return full_tile(Run(column + at * columns, stride, at, THREADS));
    }
    let at = min(first + thread, parameters.length - 1u);
    let valid = (rest + THREADS - 1u - thread) / THREADS;
    return partial_tile(Run(column + at * columns, stride, at, THREADS), valid);
}

@compute @workgroup_size(256)
fn reduce_columns(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    let thread = local_index / LANES;
    let column = group.x * LANES + local_index % LANES;
    let segment = group.y;
    // Invocations beyond the last column compute it too.
    let start = min(column, parameters.rows - 1u);
    let rounds = rounds_of(segment);
    reference = reference_at(start);
    var state = neutral();
    for (var block = 0u; block < rounds; block += BLOCK) {
        var part = neutral();
        for (var round = block; round < min(block + BLOCK, rounds); round++) {
            let tile = segment + round * parameters.segments;
            part = merge(part, tile_of_column(start, tile * TILE, thread));
        }
        state = merge(state, part);
    }
    exchange[local_index] = state;
    workgroupBarrier();
    for (var distance = THREADS / 2u; distance > 0u; distance >>= 1u) {
        if thread < distance {
            let other = exchange[local_index + distance * LANES];
            exchange[local_index] = merge(exchange[local_index], other);
        }
        workgroupBarrier();
    }
    if thread == 0u && column < parameters.rows {
        put(segment * parameters.rows + column, exchange[local_index]);
    }
}
