// Sums and products. Preceded by the elements' definitions, and by
//
//     const NEUTRAL: Computed; fn combine(a: Computed, b: Computed) -> Computed.

alias State = Computed;

fn neutral() -> State {
    return NEUTRAL;
}

fn lift(value: Computed, position: u32) -> State {
    return value;
}

fn merge(a: State, b: State) -> State {
    return combine(a, b);
}

fn merge_equal(a: State, b: State, count: f32) -> State {
    return combine(a, b);
}

fn encode(state: State) -> vec4<u32> {
    return vec4<u32>(bitcast<u32>(state), 0u, 0u, 0u);
}

fn decode(words: vec4<u32>) -> State {
    return bitcast<Computed>(words.x);
}

