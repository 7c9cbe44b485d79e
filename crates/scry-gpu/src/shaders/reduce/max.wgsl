// Appended to one.wgsl or one_vec4.wgsl, which define `Value`.

// The lowest finite number: WGSL has no literal for -infinity.
const IDENTITY: f32 = -0x1.fffffep+127;

fn combine(a: Value, b: Value) -> Value {
    return max(a, b);
}

fn combine_scalar(a: f32, b: f32) -> f32 {
    return max(a, b);
}

