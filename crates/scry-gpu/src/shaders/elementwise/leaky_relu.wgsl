var<immediate> slope: f32;

fn apply(x: f32) -> f32 {
    return select(x, slope * x, x < 0.0);
}

