enable f16;

// Elements of type f16, computed in f32.

alias Stored = f16;
alias Computed = f32;

fn widen(value: Stored) -> Computed {
    return f32(value);
}

fn narrow(value: Computed) -> Stored {
    return f16(value);
}

