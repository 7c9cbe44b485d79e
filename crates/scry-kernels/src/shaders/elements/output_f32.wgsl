// Results of type f32.

alias Output = f32;

fn widen_output(value: Output) -> f32 {
    return value;
}

fn narrow_output(value: f32) -> Output {
    return value;
}

