// Q4_K and, if HIGH_BITS is not 0, Q5_K: blocks of 256 weights `d * scale * q - dmin * offset`. The
// 6-bit scales and offsets of 32 weights each are packed into 12 bytes. LOW_BITS is the position of
// the low 4 bits of the integers, HIGH_BITS that of the high ones.

// Returns the scale and the offset of a group of 32 weights.
fn scale_and_offset(start: u32, group: u32) -> vec2<u32> {
    if group < 4u {
        return vec2<u32>(byte(start + group) & 63u, byte(start + group + 4u) & 63u);
    }
    let both = byte(start + group + 4u);
    let high = vec2<u32>(byte(start + group - 4u) >> 6u, byte(start + group) >> 6u);
    return vec2<u32>(both & 15u, both >> 4u) | (high << vec2<u32>(4u));
}

fn weight(nth: u32) -> f32 {
    let start = nth / 256u * BLOCK_BYTES;
    let group = nth / 32u % 8u;
    let at = nth % 32u;
    let scales = scale_and_offset(start + 4u, group);
    var q = (byte(start + LOW_BITS + group / 2u * 32u + at) >> (4u * (group % 2u))) & 15u;
    if HIGH_BITS != 0u {
        q |= ((byte(start + HIGH_BITS + at) >> group) & 1u) << 4u;
    }
    return half(start) * f32(scales.x) * f32(q) - half(start + 2u) * f32(scales.y);
}

