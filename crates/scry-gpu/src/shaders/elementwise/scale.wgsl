var<immediate> factor: f32;

fn apply(x: f32) -> f32 {
    return factor * x;
}

