// The Euclidean norm, without overflow or underflow of squares: sums of squares of the elements, of
// the elements times 2^-90, and of the elements times 2^90.

alias State = vec3<f32>;

const DOWN: f32 = 8.077935669463161e-28;
const UP: f32 = 1.2379400392853803e27;

// Sums of squares that are exact enough: at least 2^-60, at most 2^120.
const SMALLEST: f32 = 8.673617379884035e-19;
const LARGEST: f32 = 1.329227995784916e36;

fn neutral() -> State {
    return vec3<f32>(0.0);
}

fn lift(value: Computed, position: u32) -> State {
    let scaled = vec3<f32>(value, value * DOWN, value * UP);
    return scaled * scaled;
}

fn merge(a: State, b: State) -> State {
    return a + b;
}

fn merge_equal(a: State, b: State, count: f32) -> State {
    return a + b;
}

fn finish(state: State) -> Output {
    // A sum that is NaN is not within the bounds either.
    var result = sqrt(state.y) * UP;
    if state.x >= SMALLEST && state.x <= LARGEST {
        result = sqrt(state.x);
    } else if state.x < SMALLEST {
        result = sqrt(state.z) * DOWN;
    }
    return narrow_output(result);
}

fn encode(state: State) -> vec4<u32> {
    return vec4<u32>(bitcast<vec3<u32>>(state), 0u);
}

fn decode(words: vec4<u32>) -> State {
    return bitcast<vec3<f32>>(words.xyz);
}

