// As tile.wgsl of reductions, without private arrays. Preceded by the input of the reduction, and by
//
//     const LOADS: u32, 4 or 8;
//     const THREADS: u32, the invocations of a result in a workgroup.

const TILE: u32 = THREADS * LOADS;

// Tiles that are merged before the result is merged with those before.
const BLOCK: u32 = 16u;

// Returns how many tiles a segment has: every one of `segments`.
fn rounds_of(segment: u32) -> u32 {
    let tiles = parameters.length / TILE + u32(parameters.length % TILE != 0u);
    return (tiles + parameters.segments - 1u - segment) / parameters.segments;
}

// What the loads of an invocation access: the nth one `at + nth * stride`, whose first element is at
// `position + nth * WIDTH * distance`.
struct Run {
    at: u32,
    stride: u32,
    position: u32,
    distance: u32,
}

fn loaded(run: Run, nth: u32) -> State {
    return state_of(load(run.at + nth * run.stride), run.position + nth * WIDTH * run.distance);
}

fn four(run: Run, first: u32) -> State {
    const COUNT = f32(WIDTH);
    let low = merge_loaded(loaded(run, first), loaded(run, first + 1u), COUNT);
    let high = merge_loaded(loaded(run, first + 2u), loaded(run, first + 3u), COUNT);
    return merge_loaded(low, high, 2.0 * COUNT);
}

fn full_tile(run: Run) -> State {
    if LOADS == 4u {
        return four(run, 0u);
    }
    return merge_loaded(four(run, 0u), four(run, 4u), 4.0 * f32(WIDTH));
}

// Reduces the first `valid` loads.
fn partial_tile(run: Run, valid: u32) -> State {
    var state = neutral();
    for (var nth = 0u; nth < min(valid, LOADS); nth++) {
        state = merge(state, loaded(run, nth));
    }
    return state;
}
