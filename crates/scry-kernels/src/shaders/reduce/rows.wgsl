// Reduces rows, each by THREADS invocations, or by several workgroups, one per segment of a row, whose
// states a second pass reduces. Preceded by `Parameters`, by tile.wgsl, by `tail_state` of an invocation, by `put`, and by
//
//     const THREADS: u32, a power of two, at most 256.
//
// A row has `length` loads of WIDTH elements.

const ROWS_PER_WORKGROUP: u32 = 256u / THREADS;
var<workgroup> exchange: array<State, 256>;

// Returns the state of a tile of a row, which starts at load `first` of the row.
fn tile_of_row(start: u32, first: u32, thread: u32) -> State {
    let rest = parameters.length - first;
    if rest >= TILE {
        let at = first + thread;
        return full_tile(Run(start + at, THREADS, at * WIDTH, THREADS));
    }
    let at = min(first + thread, parameters.length - 1u);
    let valid = (rest + THREADS - 1u - thread) / THREADS;
    return partial_tile(Run(start + at, THREADS, at * WIDTH, THREADS), valid);
}

@compute @workgroup_size(256)
fn reduce_rows(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    let thread = local_index % THREADS;
    let row = group.x * ROWS_PER_WORKGROUP + local_index / THREADS;
    let segment = group.y;
    // Invocations beyond the last row compute it too.
    let start = min(row, parameters.rows - 1u) * parameters.length;
    let rounds = rounds_of(segment);
    reference = reference_at(start);
    var state = tail_state(segment, thread);
    for (var block = 0u; block < rounds; block += BLOCK) {
        var part = neutral();
        for (var round = block; round < min(block + BLOCK, rounds); round++) {
            let tile = segment + round * parameters.segments;
            part = merge(part, tile_of_row(start, tile * TILE, thread));
        }
        state = merge(state, part);
    }
    exchange[local_index] = state;
    workgroupBarrier();
    for (var distance = THREADS / 2u; distance > 0u; distance >>= 1u) {
        if thread < distance {
            exchange[local_index] = merge(exchange[local_index], exchange[local_index + distance]);
        }
        workgroupBarrier();
    }
    if thread == 0u && row < parameters.rows {
        put(row * parameters.segments + segment, exchange[local_index]);
    }
}
