// Elements of type i32.

alias Stored = i32;
alias Computed = i32;

fn widen(value: Stored) -> Computed {
    return value;
}

fn narrow(value: Computed) -> Stored {
    return value;
}

