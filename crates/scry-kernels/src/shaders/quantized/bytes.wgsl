// Blocks of quantised weights, as bytes. Preceded by the definition of `Unit`, u32 or u16, and of
// UNIT_BYTES; followed by float16.wgsl and the function `weight` of a format.

@group(0) @binding(0) var<storage, read> blocks: array<Unit>;

fn byte(at: u32) -> u32 {
    return (u32(blocks[at / UNIT_BYTES]) >> (at % UNIT_BYTES * 8u)) & 0xffu;
}

fn signed_byte(at: u32) -> f32 {
    return f32(bitcast<i32>(byte(at) << 24u) >> 24u);
}

// An f16 at an even position.
fn half(at: u32) -> f32 {
    return widen_half((u32(blocks[at / UNIT_BYTES]) >> (at % UNIT_BYTES * 8u)) & 0xffffu);
}

