// The input of a reduction: elements. Preceded by the reduction.

@group(0) @binding(0) var<storage, read> x: array<Stored>;

alias Loaded = Stored;

const WIDTH: u32 = 1u;

fn load(at: u32) -> Loaded {
    return x[at];
}

// Returns a value near the elements of a result, whose first load is `at`.
fn reference_at(at: u32) -> Computed {
    return widen(x[at]);
}

// Returns the state of what was loaded. The first element is at `position`.
fn state_of(loaded: Loaded, position: u32) -> State {
    return lift(widen(loaded), position);
}

fn merge_loaded(a: State, b: State, count: f32) -> State {
    return merge_equal(a, b, count);
}

