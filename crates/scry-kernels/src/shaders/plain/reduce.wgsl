// Reduces rows or columns, one by each invocation. Preceded by `Parameters`, by `load`, by `put`, and by
//
//     const OF_COLUMNS: bool, whether the results are those of columns;
//     const IS_SHORT: bool, whether at most BLOCK * LOADS elements are reduced to one.

// Loads that are merged pairwise.
const LOADS: u32 = 8u;

// Parts of loads that are merged in order before they are merged with those before.
const BLOCK: u32 = 16u;

@compute @workgroup_size(64)
fn reduce_plain(@builtin(global_invocation_id) id: vec3<u32>) {
    let result = id.x;
    if result >= parameters.rows {
        return;
    }
    let first = select(result * parameters.length, result, OF_COLUMNS);
    let stride = select(1u, parameters.rows, OF_COLUMNS);
    let whole = parameters.length / LOADS * LOADS;
    reference = reference_at(first);
    var state = neutral();
    if IS_SHORT {
        state = block(first, stride, 0u, whole);
    } else {
        for (var large = 0u; large < whole; large += BLOCK * BLOCK * LOADS) {
            var part = neutral();
            let end = min(large + BLOCK * BLOCK * LOADS, whole);
            for (var start = large; start < end; start += BLOCK * LOADS) {
                part = merge(part, block(first, stride, start, min(start + BLOCK * LOADS, end)));
            }
            state = merge(state, part);
        }
    }
    var rest = neutral();
    for (var nth = whole; nth < parameters.length; nth++) {
        rest = merge(rest, state_of(load(first + nth * stride), nth));
    }
    put(result, merge(state, rest));
}

// Merges the elements from `start` to `end` in order, LOADS at a time.
fn block(first: u32, stride: u32, start: u32, end: u32) -> State {
    var state = neutral();
    for (var nth = start; nth < end; nth += LOADS) {
        state = merge(state, eight(first + nth * stride, stride, nth));
    }
    return state;
}

fn two(at: u32, stride: u32, position: u32) -> State {
    let a = state_of(load(at), position);
    return merge_loaded(a, state_of(load(at + stride), position + 1u), 1.0);
}

fn eight(at: u32, stride: u32, position: u32) -> State {
    let a = two(at, stride, position);
    let b = two(at + 2u * stride, stride, position + 2u);
    let c = two(at + 4u * stride, stride, position + 4u);
    let d = two(at + 6u * stride, stride, position + 6u);
    return merge_loaded(merge_loaded(a, b, 2.0), merge_loaded(c, d, 2.0), 4.0);
}
