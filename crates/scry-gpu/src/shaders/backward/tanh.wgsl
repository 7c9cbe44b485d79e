// `value` is the output of the hyperbolic tangent.
fn apply(value: f32, gradient: f32) -> f32 {
    return gradient * (1.0 - value) * (1.0 + value);
}

