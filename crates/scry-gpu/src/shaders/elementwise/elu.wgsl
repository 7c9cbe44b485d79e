var<immediate> alpha: f32;

fn apply(x: f32) -> f32 {
    return select(x, alpha * (exp(min(x, 0.0)) - 1.0), x < 0.0);
}

