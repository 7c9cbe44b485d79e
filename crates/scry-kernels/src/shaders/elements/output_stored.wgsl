// Results of the type of the operands.

alias Output = Stored;

fn widen_output(value: Output) -> f32 {
    return widen(value);
}

fn narrow_output(value: f32) -> Output {
    return narrow(value);
}

