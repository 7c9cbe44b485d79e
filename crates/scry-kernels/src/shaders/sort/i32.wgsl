// Keys of type i32, given by their bits.

// Returns what keys are sorted by, as unsigned integers.
fn encode(bits: u32) -> u32 {
    return bits ^ 0x80000000u;
}

fn decode(code: u32) -> u32 {
    return code ^ 0x80000000u;
}

