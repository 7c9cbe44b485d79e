// The order of signed integers as unsigned ones. Preceded by the elements' definitions.

fn is_nan(value: Computed) -> bool {
    return false;
}

fn ordinal(value: Computed) -> u32 {
    return bitcast<u32>(value) ^ 0x80000000u;
}

fn ordinal_of_equal_zeros(value: Computed) -> u32 {
    return ordinal(value);
}

fn from_ordinal(ordinal: u32) -> Computed {
    return bitcast<i32>(ordinal ^ 0x80000000u);
}

