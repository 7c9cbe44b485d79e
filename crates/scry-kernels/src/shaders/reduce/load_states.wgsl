// The input of the second pass of a reduction: states. Preceded by the reduction.

@group(0) @binding(0) var<storage, read> x: array<vec4<u32>>;

alias Loaded = vec4<u32>;

const WIDTH: u32 = 1u;

fn load(at: u32) -> Loaded {
    return x[at];
}

// Returns a value near the elements of a result, whose first load is `at`.
fn reference_at(at: u32) -> Computed {
    return Computed(0);
}

fn state_of(loaded: Loaded, position: u32) -> State {
    return decode(loaded);
}

// States of the first pass may stand for different numbers of elements.
fn merge_loaded(a: State, b: State, count: f32) -> State {
    return merge(a, b);
}

