// Keys of type f32, given by their bits. NaN is last: what is below -infinity wraps around.

// Returns what keys are sorted by, as unsigned integers.
fn encode(bits: u32) -> u32 {
    let ordinal = select(bits | 0x80000000u, ~bits, bits >= 0x80000000u);
    return ordinal - 0x007fffffu;
}

fn decode(code: u32) -> u32 {
    let ordinal = code + 0x007fffffu;
    return select(~ordinal, ordinal & 0x7fffffffu, ordinal >= 0x80000000u);
}

