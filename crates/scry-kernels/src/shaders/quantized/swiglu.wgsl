// Returns `silu(gate) * up` of a column of `x`, which has the elements of the gate, and then the others.
fn activation(column: u32, at: u32) -> f32 {
    let first = 2u * column * sizes.k + at;
    let gate = widen(x[first]);
    return gate / (1.0 + exp(-gate)) * widen(x[first + sizes.k]);
}

