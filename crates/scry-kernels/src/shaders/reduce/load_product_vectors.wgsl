// The input of a reduction: products of elements, four at a time. Preceded by the reduction.

@group(0) @binding(0) var<storage, read> x: array<vec4<Stored>>;
@group(0) @binding(1) var<storage, read> other: array<vec4<Stored>>;

struct Loaded {
    x: vec4<Stored>,
    other: vec4<Stored>,
}

const WIDTH: u32 = 4u;

fn load(at: u32) -> Loaded {
    return Loaded(x[at], other[at]);
}

fn product(a: Stored, b: Stored, position: u32) -> State {
    return lift(widen(a) * widen(b), position);
}

// Returns a value near the elements of a result, whose first load is `at`.
fn reference_at(at: u32) -> Computed {
    return Computed(0);
}

// Returns the state of what was loaded. The first element is at `position`.
fn state_of(loaded: Loaded, position: u32) -> State {
    let low = merge_equal(
        product(loaded.x.x, loaded.other.x, position),
        product(loaded.x.y, loaded.other.y, position + 1u),
        1.0,
    );
    let high = merge_equal(
        product(loaded.x.z, loaded.other.z, position + 2u),
        product(loaded.x.w, loaded.other.w, position + 3u),
        1.0,
    );
    return merge_equal(low, high, 2.0);
}

fn merge_loaded(a: State, b: State, count: f32) -> State {
    return merge_equal(a, b, count);
}

