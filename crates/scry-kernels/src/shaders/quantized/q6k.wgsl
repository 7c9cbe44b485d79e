// Q6_K: blocks of 256 weights `d * scale * (q - 32)`, with a signed scale for 16 weights each.

fn weight(nth: u32) -> f32 {
    let start = nth / 256u * BLOCK_BYTES;
    let half_block = nth / 128u % 2u;
    let group = nth / 32u % 4u;
    let at = nth % 32u;
    let low = byte(start + 64u * half_block + 32u * (group % 2u) + at) >> (4u * (group / 2u));
    let high = byte(start + 128u + 32u * half_block + at) >> (2u * group);
    let q = f32((low & 15u) | ((high & 3u) << 4u)) - 32.0;
    return half(start + 208u) * (signed_byte(start + 192u + nth / 16u % 16u) * q);
}

