// Returns an element of a column of `x`.
fn activation(column: u32, at: u32) -> f32 {
    return widen(x[column * sizes.k + at]);
}

