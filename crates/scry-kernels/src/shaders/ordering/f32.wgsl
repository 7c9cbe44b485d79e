// The order of floats as unsigned integers. Preceded by the elements' definitions.

fn is_nan(value: Computed) -> bool {
    return (bitcast<u32>(value) & 0x7fffffffu) > 0x7f800000u;
}

// Returns an integer that orders numbers: -0 before +0. NaN is beyond the infinity of its sign.
fn ordinal(value: Computed) -> u32 {
    let bits = bitcast<u32>(value);
    return select(bits | 0x80000000u, ~bits, bits >= 0x80000000u);
}

// As `ordinal`, but zeros are equal.
fn ordinal_of_equal_zeros(value: Computed) -> u32 {
    let bits = bitcast<u32>(value);
    return select(ordinal(value), 0x80000000u, bits == 0x80000000u);
}

fn from_ordinal(ordinal: u32) -> Computed {
    return bitcast<f32>(select(~ordinal, ordinal & 0x7fffffffu, ordinal >= 0x80000000u));
}

