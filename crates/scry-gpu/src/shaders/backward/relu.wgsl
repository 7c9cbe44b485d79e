// `value` is the input or the output: their signs agree.
fn apply(value: f32, gradient: f32) -> f32 {
    return select(0.0, gradient, value > 0.0);
}

