// Returns the cosine and the sine of an angle in units of 2^-32 turns, with an error of about 1e-7 on
// every device: the quarter of a turn is subtracted exactly, and the rest, up to 1/8 of a turn, is the
// argument of polynomials.
fn cos_sin(turn: u32) -> vec2<f32> {
    let quarter = (turn + 0x20000000u) >> 30u;
    let angle = f32(bitcast<i32>(turn - (quarter << 30u))) * 1.4629180792671596e-9;
    let square = angle * angle;
    let odd = fma(fma(-1.9515295891e-4, square, 8.3321608736e-3), square, -1.6666654611e-1);
    let even = fma(
        fma(2.443315711809948e-5, square, -1.388731625493765e-3),
        square,
        4.166664568298827e-2,
    );
    let sine = fma(angle * square, odd, angle);
    let cosine = fma(square * square, even, fma(-0.5, square, 1.0));
    let is_swapped = (quarter & 1u) != 0u;
    let x = select(cosine, sine, is_swapped);
    let y = select(sine, cosine, is_swapped);
    return vec2<f32>(
        select(x, -x, ((quarter + 1u) & 2u) != 0u),
        select(y, -y, (quarter & 2u) != 0u),
    );
}

