// Keys of type u32.

// Returns what keys are sorted by, as unsigned integers.
fn encode(bits: u32) -> u32 {
    return bits;
}

fn decode(code: u32) -> u32 {
    return code;
}

