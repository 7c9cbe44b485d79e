// Quantises to Q8_0.

fn fit() -> vec2<f32> {
    let range = extremes();
    return vec2<f32>(divide(abs(larger_magnitude(range.x, range.y)), 127.0), 0.0);
}

fn round_scales(local_index: u32) -> vec2<f32> {
    headers[local_index] = narrow_scale(fits[local_index].x);
    return vec2<f32>(inverse(widen_half(headers[local_index])), 0.0);
}

fn integer(weight: f32, scales: vec2<f32>) -> u32 {
    return bitcast<u32>(i32(round_clamped(weight * scales.x, -127.0, 127.0))) & 255u;
}

fn block_byte(block: u32, at: u32) -> u32 {
    if at < 2u {
        return header_byte(block, at);
    }
    return integer_at(block, at - 2u);
}
