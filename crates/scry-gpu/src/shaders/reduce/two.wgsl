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

fn fold(value: Value) -> f32 {
    return value;
}

