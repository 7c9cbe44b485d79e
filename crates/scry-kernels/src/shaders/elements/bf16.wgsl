enable wgpu_int16;

// Elements of type bf16, computed in f32: the upper half of its bits.

alias Stored = u16;
alias Computed = f32;

fn widen(value: Stored) -> Computed {
    return bitcast<f32>(u32(value) << 16u);
}

// Rounds to nearest, ties to even. NaN stays NaN: its quiet bit is set, so that a payload in the
// lower half is not lost.
fn narrow(value: Computed) -> Stored {
    let bits = bitcast<u32>(value);
    let rounded = (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
    let is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
    return u16(select(rounded, (bits >> 16u) | 0x40u, is_nan));
}

