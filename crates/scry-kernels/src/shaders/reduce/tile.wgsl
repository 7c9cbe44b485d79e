// Tiles of LOADS loads per invocation, all of which are issued before the first is used, and merged
// pairwise. Preceded by the input of the reduction, and by
//
//     const LOADS: u32, a power of two, at most 8;
//     const THREADS: u32, the invocations of a result in a workgroup.

const TILE: u32 = THREADS * LOADS;

// Tiles that are merged before the result is merged with those before: errors of sums grow with a
// sixteenth of the number of tiles.
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

fn full_tile(run: Run) -> State {
    var loaded: array<Loaded, LOADS>;
    for (var nth = 0u; nth < LOADS; nth++) {
        loaded[nth] = load(run.at + nth * run.stride);
    }
    var states: array<State, LOADS>;
    for (var nth = 0u; nth < LOADS; nth++) {
        states[nth] = state_of(loaded[nth], run.position + nth * WIDTH * run.distance);
    }
    const COUNT = f32(WIDTH);
    for (var nth = 0u; nth < LOADS / 2u; nth++) {
        states[nth] = merge_loaded(states[nth], states[nth + LOADS / 2u], COUNT);
    }
    for (var nth = 0u; nth < LOADS / 4u; nth++) {
        states[nth] = merge_loaded(states[nth], states[nth + LOADS / 4u], 2.0 * COUNT);
    }
    for (var nth = 0u; nth < LOADS / 8u; nth++) {
        states[nth] = merge_loaded(states[nth], states[nth + LOADS / 8u], 4.0 * COUNT);
    }
    return states[0];
}

// Reduces the first `valid` loads. The first address must be valid in any case.
fn partial_tile(run: Run, valid: u32) -> State {
    let last = max(valid, 1u) - 1u;
    var loaded: array<Loaded, LOADS>;
    for (var nth = 0u; nth < LOADS; nth++) {
        loaded[nth] = load(run.at + min(nth, last) * run.stride);
    }
    var states: array<State, LOADS>;
    for (var nth = 0u; nth < LOADS; nth++) {
        let state = state_of(loaded[nth], run.position + nth * WIDTH * run.distance);
        states[nth] = select(neutral(), state, nth < valid);
    }
    for (var nth = 0u; nth < LOADS / 2u; nth++) {
        states[nth] = merge(states[nth], states[nth + LOADS / 2u]);
    }
    for (var nth = 0u; nth < LOADS / 4u; nth++) {
        states[nth] = merge(states[nth], states[nth + LOADS / 4u]);
    }
    for (var nth = 0u; nth < LOADS / 8u; nth++) {
        states[nth] = merge(states[nth], states[nth + LOADS / 8u]);
    }
    return states[0];
}

