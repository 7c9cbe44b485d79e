// The position of the smallest or, if LARGEST, the largest element: of the smallest key, then of
// the smallest position. The key of NaN is 0, smaller than that of any number. Preceded by the order
// of the elements.

// Key and position.
alias State = vec2<u32>;

fn neutral() -> State {
    return vec2<u32>(0xffffffffu, 0xffffffffu);
}

fn lift(value: Computed, position: u32) -> State {
    let rising = ordinal_of_equal_zeros(value);
    return vec2<u32>(select(select(rising, ~rising, LARGEST), 0u, is_nan(value)), position);
}

fn merge(a: State, b: State) -> State {
    let is_a = a.x < b.x || (a.x == b.x && a.y < b.y);
    return select(b, a, is_a);
}

fn merge_equal(a: State, b: State, count: f32) -> State {
    return merge(a, b);
}

fn finish(state: State) -> Output {
    return state.y;
}

fn encode(state: State) -> vec4<u32> {
    return vec4<u32>(state, 0u, 0u);
}

fn decode(words: vec4<u32>) -> State {
    return words.xy;
}

