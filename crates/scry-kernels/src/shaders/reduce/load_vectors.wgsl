// The input of a reduction: elements, four at a time. Preceded by the reduction.

@group(0) @binding(0) var<storage, read> x: array<vec4<Stored>>;

alias Loaded = vec4<Stored>;

const WIDTH: u32 = 4u;

fn load(at: u32) -> Loaded {
    return x[at];
}

// Returns a value near the elements of a result, whose first load is `at`.
fn reference_at(at: u32) -> Computed {
    return widen(x[at].x);
}

// Returns the state of what was loaded. The first element is at `position`.
fn state_of(loaded: Loaded, position: u32) -> State {
    let low = merge_equal(
        lift(widen(loaded.x), position),
        lift(widen(loaded.y), position + 1u),
        1.0,
    );
    let high = merge_equal(
        lift(widen(loaded.z), position + 2u),
        lift(widen(loaded.w), position + 3u),
        1.0,
    );
    return merge_equal(low, high, 2.0);
}

fn merge_loaded(a: State, b: State, count: f32) -> State {
    return merge_equal(a, b, count);
}

