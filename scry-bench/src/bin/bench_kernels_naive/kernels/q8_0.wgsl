// Weights of Q8_0. Precedes kernels that declare `blocks`.

fn byte(at: u32) -> u32 {
    return (blocks[at / 4u] >> (at % 4u * 8u)) & 255u;
}

fn weight(nth: u32) -> f32 {
    let start = nth / 32u * 34u;
    let d = unpack2x16float(byte(start) | byte(start + 1u) << 8u).x;
    return d * f32(i32(byte(start + 2u + nth % 32u) << 24u) >> 24u);
}
