// The input of an inner product: the products of two vectors' elements.

alias Value = f32;

@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> results: array<f32>;

fn count() -> u32 {
    return min(arrayLength(&a), arrayLength(&b));
}

fn load(i: u32) -> Value {
    return a[i] * b[i];
}

// Returns the scalar result of a `Value`.
fn fold(value: Value) -> f32 {
    return value;
}

