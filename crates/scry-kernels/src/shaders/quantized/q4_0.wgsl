// Q4_0: blocks of 32 weights `d * (q - 8)`; a byte has weights 16 apart.

fn weight(nth: u32) -> f32 {
    let start = nth / 32u * BLOCK_BYTES;
    let q = (byte(start + 2u + nth % 16u) >> (4u * (nth / 16u % 2u))) & 15u;
    return half(start) * (f32(q) - 8.0);
}
