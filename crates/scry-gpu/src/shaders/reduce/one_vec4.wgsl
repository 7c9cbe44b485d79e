// The input of a reduction of one vector, four elements at a time.

alias Value = vec4<f32>;

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> results: array<f32>;

fn count() -> u32 {
    return arrayLength(&x);
}

fn load(i: u32) -> Value {
    return x[i];
}

// Returns the scalar result of a `Value`.
fn fold(value: Value) -> f32 {
    return combine_scalar(
        combine_scalar(value.x, value.y),
        combine_scalar(value.z, value.w),
    );
}

