// Q8_0: blocks of 32 weights `d * q`.

fn weight(nth: u32) -> f32 {
    let start = nth / 32u * BLOCK_BYTES;
    return half(start) * signed_byte(start + 2u + nth % 32u);
}

