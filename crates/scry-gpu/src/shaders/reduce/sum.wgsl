// Appended to one.wgsl, one_vec4.wgsl or two.wgsl, which define `Value`.

const IDENTITY: f32 = 0.0;

fn combine(a: Value, b: Value) -> Value {
    return a + b;
}

fn combine_scalar(a: f32, b: f32) -> f32 {
    return a + b;
}

