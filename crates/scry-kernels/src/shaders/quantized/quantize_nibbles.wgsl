// Quantises to Q4_0 or, if HAS_OFFSET, Q4_1. HEADER is the bytes before the integers.

// Orders numbers as integers: both zeros are equal, and NaN is beyond the infinities.
fn order(value: f32) -> i32 {
    let bits = bitcast<u32>(value);
    let magnitude = i32(bits & 0x7fffffffu);
    return select(magnitude, -magnitude, bits >= 0x80000000u);
}

// Returns the first weight with the largest magnitude.
fn largest() -> f32 {
    var largest = 0.0;
    for (var nth = 0u; nth < GROUP; nth++) {
        let is_larger = abs(order(weights[nth])) > abs(order(largest));
        if is_larger && !is_nan(weights[nth]) {
            largest = weights[nth];
        }
    }
    return largest;
}

// Returns the range of the weights and the first of the least ones; zeros without numbers.
fn range() -> vec2<f32> {
    var low = 0.0;
    var high = 0.0;
    var is_first = true;
    for (var nth = 0u; nth < GROUP; nth++) {
        let value = weights[nth];
        if !is_nan(value) {
            if is_first || order(value) < order(low) {
                low = value;
            }
            if is_first || order(value) > order(high) {
                high = value;
            }
            is_first = false;
        }
    }
    return vec2<f32>(select(0.0, high - low, order(low) < order(high)), low);
}

fn fit() -> vec2<f32> {
    if HAS_OFFSET {
        let range = range();
        return vec2<f32>(min(divide(range.x, 15.0), MAX_F16), clamp(range.y, -MAX_F16, MAX_F16));
    }
    return vec2<f32>(clamp(divide(largest(), -8.0), -MAX_F16, MAX_F16), 0.0);
}

fn round_scales(local_index: u32) -> vec2<f32> {
    let fit = fits[local_index];
    let scale = narrow_scale(fit.x);
    headers[local_index] = scale | (narrow_scale(fit.y) << 16u);
    // Integers of a scale that rounds to 0 are those of zeros.
    return vec2<f32>(select(inverse(fit.x), 0.0, (scale & 0x7fffu) == 0u), fit.y);
}

fn integer(weight: f32, scales: vec2<f32>) -> u32 {
    let value = exact((weight - scales.y) * scales.x) + select(8.5, 0.5, HAS_OFFSET);
    return u32(select(clamp(value, 0.0, 15.0), 0.0, is_nan(value)));
}

fn block_byte(block: u32, at: u32) -> u32 {
    if at < HEADER {
        return header_byte(block, at);
    }
    return integer_at(block, at - HEADER) | (integer_at(block, at - HEADER + 16u) << 4u);
}
