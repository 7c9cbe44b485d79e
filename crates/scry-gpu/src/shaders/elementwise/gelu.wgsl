// The tanh form: x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))).
fn apply(x: f32) -> f32 {
    let inner = 0.7978845608 * fma(0.044715 * x * x, x, x);
    return 0.5 * x * (1.0 + tanh(clamp(inner, -10.0, 10.0)));
}

