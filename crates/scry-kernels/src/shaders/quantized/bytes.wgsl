// Blocks of quantised weights, as bytes. Followed by the function `weight` of a format.

@group(0) @binding(0) var<storage, read> blocks: array<u32>;

fn byte(at: u32) -> u32 {
    return (blocks[at / 4u] >> (at % 4u * 8u)) & 0xffu;
}

fn signed_byte(at: u32) -> f32 {
    return f32(bitcast<i32>(byte(at) << 24u) >> 24u);
}

// An f16 at an even position.
fn half(at: u32) -> f32 {
    return unpack2x16float(blocks[at / 4u] >> (at % 4u * 8u)).x;
}

