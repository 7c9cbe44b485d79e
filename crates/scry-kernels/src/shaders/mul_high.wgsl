// Returns the upper half of the 64 bits of a product.
fn mul_high(a: u32, b: u32) -> u32 {
    let low_a = a & 0xffffu;
    let low_b = b & 0xffffu;
    let high_a = a >> 16u;
    let high_b = b >> 16u;
    let first = high_a * low_b + ((low_a * low_b) >> 16u);
    let second = low_a * high_b + (first & 0xffffu);
    return high_a * high_b + (first >> 16u) + (second >> 16u);
}

