// Quantises to Q4_K or, if HIGH_BITS is not 0, Q5_K. LEVELS is the largest integer, LOW_BITS the
// position of the low bits, HIGH_BITS that of the high ones.

// Returns the maximum of the weights.
fn highest() -> f32 {
    var high = weights[0];
    for (var nth = 1u; nth < GROUP; nth++) {
        high = select(high, weights[nth], weights[nth] > high || is_nan(high));
    }
    return high;
}

// `abs` is a negation that is never -0: lows are not positive.
fn fit() -> vec2<f32> {
    let low = extremes().x;
    let range = highest() - low;
    if is_nan(range) || range <= 0.0 {
        return vec2<f32>(0.0, abs(low));
    }
    var best = vec2<f32>(divide(range, LEVELS), abs(low));
    // With NaN and infinities no candidate has an error below infinity.
    if !is_finite(range) || !are_numbers() {
        return best;
    }
    var min_error = 0.0;
    var has_best = false;
    for (var nth = 0u; nth < CANDIDATES; nth++) {
        let by = Rounding(low, divide(LEVELS + extra_steps(nth), range), 0.0, LEVELS);
        let line = regression_line(moments(by));
        if line.is_valid {
            let error = squared_error(line, by);
            if is_finite(error) && (!has_best || error < min_error) {
                best = vec2<f32>(line.scale, line.offset);
                min_error = error;
                has_best = true;
            }
        }
    }
    return best;
}

fn round_scales(local_index: u32) -> vec2<f32> {
    let first = local_index / GROUPS * GROUPS;
    var largest = vec2<f32>();
    for (var nth = 0u; nth < GROUPS; nth++) {
        largest = max(largest, fits[first + nth]);
    }
    let header = vec2<u32>(
        narrow_scale(divide(largest.x, 63.0)),
        narrow_scale(divide(largest.y, 63.0)),
    );
    let units = vec2<f32>(widen_half(header.x), widen_half(header.y));
    let own = fits[local_index];
    let six_bits = vec2<f32>(
        round_clamped(own.x * inverse(units.x), 0.0, 63.0),
        round_clamped(own.y * inverse(units.y), 0.0, 63.0),
    );
    headers[local_index] = header.x | (header.y << 16u);
    codes[local_index] = vec2<u32>(six_bits);
    return vec2<f32>(inverse(units.x * six_bits.x), exact(units.y * six_bits.y));
}

fn integer(weight: f32, scales: vec2<f32>) -> u32 {
    return u32(round_clamped((weight + scales.y) * scales.x, 0.0, LEVELS));
}

// Returns a byte of the 12 that hold the scales and offsets of 8 groups.
fn scale_byte(first: u32, at: u32) -> u32 {
    if at >= 8u {
        let code = codes[first + at - 4u];
        return (code.x & 15u) | ((code.y & 15u) << 4u);
    }
    let nth = select(0u, 1u, at >= 4u);
    let group = first + at % 4u;
    return codes[group][nth] | ((codes[group + 4u][nth] >> 4u) << 6u);
}

fn block_byte(block: u32, at: u32) -> u32 {
    if at < 4u {
        return header_byte(block, at);
    }
    if at < 16u {
        return scale_byte(block * GROUPS, at - 4u);
    }
    if at < LOW_BITS {
        var bits = 0u;
        for (var group = 0u; group < 8u; group++) {
            bits |= (integer_at(block, 32u * group + at - HIGH_BITS) >> 4u) << group;
        }
        return bits;
    }
    let pair = (at - LOW_BITS) / 32u;
    let nth = 64u * pair + (at - LOW_BITS) % 32u;
    return (integer_at(block, nth) & 15u) | ((integer_at(block, nth + 32u) & 15u) << 4u);
}
