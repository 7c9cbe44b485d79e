fn apply(x: f32) -> f32 {
    return select(x, 0.0, x < 0.0);
}

