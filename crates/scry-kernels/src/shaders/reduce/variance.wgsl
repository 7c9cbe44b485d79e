// The variance, by the method of Chan, Golub and LeVeque: parts are merged by their counts, means and
// sums of squared distances from the mean. The first element is subtracted from each, so that means
// are near 0 and precise.

// Count, mean and sum of squared distances.
alias State = vec3<f32>;

fn neutral() -> State {
    return vec3<f32>(0.0);
}

fn lift(value: Computed, position: u32) -> State {
    return vec3<f32>(1.0, value - reference, 0.0);
}

// Either part may be empty: then its distance, which may be large, has no weight.
fn merge(a: State, b: State) -> State {
    let count = a.x + b.x;
    let distance = b.y - a.y;
    let weight = b.x / max(count, 1.0);
    let squares = distance * (distance * (a.x * weight));
    return vec3<f32>(count, a.y + distance * weight, a.z + b.z + squares);
}

// Merges states of `count` elements each.
fn merge_equal(a: State, b: State, count: f32) -> State {
    let distance = b.y - a.y;
    let squares = distance * (distance * (count * 0.5));
    return vec3<f32>(a.x + b.x, a.y + distance * 0.5, a.z + b.z + squares);
}

fn finish(state: State) -> Output {
    return narrow_output(state.z / parameters.divisor);
}

fn encode(state: State) -> vec4<u32> {
    return vec4<u32>(bitcast<vec3<u32>>(state), 0u);
}

fn decode(words: vec4<u32>) -> State {
    return bitcast<vec3<f32>>(words.xyz);
}

