// Returns the upper half of the 64 bits of a product.
fn mul_high(a: u32, b: u32) -> u32 {
    return u32((u64(a) * u64(b)) >> 32u);
}

