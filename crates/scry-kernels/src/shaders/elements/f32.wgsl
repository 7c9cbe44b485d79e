// Elements of type f32.

alias Stored = f32;
alias Computed = f32;

fn widen(value: Stored) -> Computed {
    return value;
}

fn narrow(value: Computed) -> Stored {
    return value;
}

