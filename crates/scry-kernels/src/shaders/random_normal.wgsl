// Normally distributed numbers of words by the method of Box and Muller, within a few units in the last
// place on every device: no built-in function but the square root. Preceded by turns.wgsl.

fn distributed(words: vec4<u32>) -> vec4<f32> {
    let first = radius(words.x) * cos_sin(words.y);
    let second = radius(words.z) * cos_sin(words.w);
    return vec4<f32>(first, second);
}

// Returns sqrt(-2 ln u) for u = (word + 1/2) / 2^32.
fn radius(word: u32) -> f32 {
    // u = mantissa / 2^(32 + exponent), where the mantissa is at least 2^31. It ends with the half,
    // unless that does not fit.
    var exponent = countLeadingZeros(word);
    var mantissa = 0x80000000u;
    if exponent == 0u {
        mantissa = word;
    } else if exponent < 32u {
        mantissa = (word << exponent) | (1u << (exponent - 1u));
    }
    // u = (1 + x) / 2^exponent, where 1 + x is between sqrt(1/2) and sqrt(2).
    var x = 0.0;
    if mantissa >= 0xb504f334u {
        let rest = f32(~mantissa) + select(1.0, 0.5, exponent == 0u);
        x = rest * -2.3283064365386963e-10;
    } else {
        x = f32(mantissa & 0x7fffffffu) * 4.656612873077393e-10;
        exponent += 1u;
    }
    return sqrt(2.0 * minus_log(x, f32(exponent)));
}

// Returns exponent * ln 2 - ln(1 + x).
fn minus_log(x: f32, exponent: f32) -> f32 {
    var series = fma(7.0376836292e-2, x, -1.1514610310e-1);
    series = fma(series, x, 1.1676998740e-1);
    series = fma(series, x, -1.2420140846e-1);
    series = fma(series, x, 1.4249322787e-1);
    series = fma(series, x, -1.6668057665e-1);
    series = fma(series, x, 2.0000714765e-1);
    series = fma(series, x, -2.4999993993e-1);
    series = fma(series, x, 3.3333331174e-1);
    let square = x * x;
    let rest = fma(x * square, series, fma(-0.5, square, 2.12194440e-4 * exponent));
    return 0.693359375 * exponent - (x + rest);
}

