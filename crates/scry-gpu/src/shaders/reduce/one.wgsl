// The input of a reduction of one vector, one element at a time.

alias Value = f32;

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> results: array<f32>;

fn count() -> u32 {
    return arrayLength(&x);
}

fn load(i: u32) -> Value {
    return x[i];
}

// Returns the scalar result of a `Value`.
fn fold(value: Value) -> f32 {
    return value;
}

