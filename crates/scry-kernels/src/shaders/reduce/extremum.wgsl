// The smallest or, if LARGEST, the largest element: the smallest key. The key of NaN is 0, smaller
// than that of any number, and stands for a NaN. Preceded by the order of the elements.

alias State = u32;

fn neutral() -> State {
    return 0xffffffffu;
}

fn lift(value: Computed, position: u32) -> State {
    let rising = ordinal(value);
    return select(select(rising, ~rising, LARGEST), 0u, is_nan(value));
}

fn merge(a: State, b: State) -> State {
    return min(a, b);
}

fn merge_equal(a: State, b: State, count: f32) -> State {
    return min(a, b);
}

fn finish(state: State) -> Output {
    return narrow_output(from_ordinal(select(state, ~state, LARGEST)));
}

fn encode(state: State) -> vec4<u32> {
    return vec4<u32>(state, 0u, 0u, 0u);
}

fn decode(words: vec4<u32>) -> State {
    return words.x;
}

