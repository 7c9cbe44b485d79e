// Elements of type u32.

alias Stored = u32;
alias Computed = u32;

fn widen(value: Stored) -> Computed {
    return value;
}

fn narrow(value: Computed) -> Stored {
    return value;
}

