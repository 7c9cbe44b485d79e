// Quantises to Q6_K.

const LEVELS: f32 = 32.0;

fn fit() -> vec2<f32> {
    let range = extremes();
    let extreme = larger_magnitude(range.x, range.y);
    if extreme == 0.0 {
        return vec2<f32>();
    }
    var best = divide(extreme, -LEVELS);
    // With NaN and infinities no candidate has an error below infinity.
    if !is_finite(extreme) || !are_numbers() {
        return vec2<f32>(best, 0.0);
    }
    var min_error = 0.0;
    var has_best = false;
    for (var nth = 0u; nth < CANDIDATES; nth++) {
        let steps = divide(-(LEVELS + extra_steps(nth)), extreme);
        let by = Rounding(0.0, steps, -LEVELS, LEVELS - 1.0);
        let line = line_through_zero(moments(by));
        if line.is_valid {
            let error = squared_error(line, by);
            if is_finite(error) && (!has_best || error < min_error) {
                best = line.scale;
                min_error = error;
                has_best = true;
            }
        }
    }
    return vec2<f32>(best, 0.0);
}

fn round_scales(local_index: u32) -> vec2<f32> {
    let first = local_index / GROUPS * GROUPS;
    var low = 0.0;
    var high = 0.0;
    for (var nth = 0u; nth < GROUPS; nth++) {
        low = min(low, fits[first + nth].x);
        high = max(high, fits[first + nth].x);
    }
    let header = narrow_scale(divide(larger_magnitude(low, high), -128.0));
    let unit = widen_half(header);
    let scale = round_clamped(fits[local_index].x * inverse(unit), -128.0, 127.0);
    headers[local_index] = header;
    codes[local_index] = vec2<u32>(bitcast<u32>(i32(scale)) & 255u, 0u);
    return vec2<f32>(inverse(unit * scale), 0.0);
}

fn integer(weight: f32, scales: vec2<f32>) -> u32 {
    return u32(round_clamped(weight * scales.x, -LEVELS, LEVELS - 1.0) + LEVELS);
}

fn block_byte(block: u32, at: u32) -> u32 {
    if at >= 208u {
        return header_byte(block, at - 208u);
    }
    if at >= 192u {
        return codes[block * GROUPS + at - 192u].x;
    }
    if at >= 128u {
        let nth = (at - 128u) / 32u * 128u + at % 32u;
        var bits = 0u;
        for (var group = 0u; group < 4u; group++) {
            bits |= (integer_at(block, nth + 32u * group) >> 4u) << (2u * group);
        }
        return bits;
    }
    let nth = at / 64u * 128u + at % 64u;
    return (integer_at(block, nth) & 15u) | ((integer_at(block, nth + 64u) & 15u) << 4u);
}
