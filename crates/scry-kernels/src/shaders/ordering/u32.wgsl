// Unsigned integers are their own order. Preceded by the elements' definitions.

fn is_nan(value: Computed) -> bool {
    return false;
}

fn ordinal(value: Computed) -> u32 {
    return value;
}

fn ordinal_of_equal_zeros(value: Computed) -> u32 {
    return value;
}

fn from_ordinal(ordinal: u32) -> Computed {
    return ordinal;
}

