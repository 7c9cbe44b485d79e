// Conversion of f16 to f32. Devices may flush the subnormal values of `unpack2x16float` to zero.

fn widen_half(bits: u32) -> f32 {
    let is_subnormal = (bits & 0x7c00u) == 0u;
    let subnormal = f32(bits & 0x3ffu) * 0x1p-24f;
    return select(unpack2x16float(bits).x, select(subnormal, -subnormal, bits >= 0x8000u), is_subnormal);
}

