// Q4_1: blocks of 32 weights `d * q + m`; a byte has weights 16 apart.

fn weight(nth: u32) -> f32 {
    let start = nth / 32u * BLOCK_BYTES;
    let q = (byte(start + 4u + nth % 16u) >> (4u * (nth / 16u % 2u))) & 15u;
    return half(start) * f32(q) + half(start + 2u);
}
