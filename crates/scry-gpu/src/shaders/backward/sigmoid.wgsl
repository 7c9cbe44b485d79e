// `value` is the output of the sigmoid.
fn apply(value: f32, gradient: f32) -> f32 {
    return gradient * value * (1.0 - value);
}

