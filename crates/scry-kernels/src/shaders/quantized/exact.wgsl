// Arithmetic with the same results on every device. WGSL allows a product and a sum to contract to
// an FMA, and quotients that are not the nearest ones. Preceded by float16.wgsl, and by
// `parameters.zero`, which is 0.

// Returns a product that is not contracted: the compiler does not know that its bits stay the same.
fn exact(product: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(product) ^ parameters.zero);
}

fn is_nan(value: f32) -> bool {
    return (bitcast<u32>(value) & 0x7fffffffu) > 0x7f800000u;
}

fn is_finite(value: f32) -> bool {
    return (bitcast<u32>(value) & 0x7f800000u) != 0x7f800000u;
}

// Returns the quotient, rounded to nearest; below the normal numbers some value close to 0.
fn divide(a: f32, b: f32) -> f32 {
    let bits = vec2<u32>(bitcast<u32>(a), bitcast<u32>(b));
    let exponents = (bits >> vec2<u32>(23u)) & vec2<u32>(255u);
    if any(exponents == vec2<u32>()) || any(exponents == vec2<u32>(255u)) {
        return a / b;
    }
    let mantissas = (bits & vec2<u32>(0x7fffffu)) | vec2<u32>(0x800000u);
    let is_less = mantissas.x < mantissas.y;
    let dividend = select(mantissas.x, mantissas.x << 1u, is_less);
    // A quotient from 1 to 2, with 24 fractional bits: one more than are kept.
    var quotient = 1u;
    var rest = dividend - mantissas.y;
    for (var digit = 0u; digit < 3u; digit++) {
        quotient = (quotient << 8u) | ((rest << 8u) / mantissas.y);
        rest = (rest << 8u) % mantissas.y;
    }
    let is_up = (quotient & 1u) & (((quotient >> 1u) & 1u) | u32(rest != 0u));
    // A carry reaches the exponent.
    let exponent = i32(exponents.x) - i32(exponents.y) + 127 - i32(is_less);
    let magnitude = (exponent << 23u) + i32((quotient >> 1u) + is_up - 0x800000u);
    let clamped = select(select(magnitude, 0x7f800000, exponent > 254), 0, exponent < 1);
    return bitcast<f32>(u32(clamped) | ((bits.x ^ bits.y) & 0x80000000u));
}

// Returns 1 / value, or 0 for 0.
fn inverse(value: f32) -> f32 {
    if value == 0.0 {
        return 0.0;
    }
    return divide(1.0, value);
}

// Rounds to the nearest integer and clamps; NaN becomes the lowest one.
fn round_clamped(value: f32, low: f32, high: f32) -> f32 {
    return select(clamp(round(value), low, high), low, is_nan(value));
}

const MAX_F16: f32 = 65504.0;

// Returns the bits of the nearest f16; those beyond the range of f16 are clamped.
fn narrow_scale(scale: f32) -> u32 {
    let sign = (bitcast<u32>(scale) >> 16u) & 0x8000u;
    let magnitude = min(bitcast<u32>(scale) & 0x7fffffffu, bitcast<u32>(MAX_F16));
    // Subnormal ones are multiples of 2^-24.
    let subnormal = u32(round(bitcast<f32>(magnitude) * 0x1p24f));
    let normal = (magnitude + 0xfffu + ((magnitude >> 13u) & 1u)) >> 13u;
    return sign | select(normal - (112u << 10u), subnormal, magnitude < 0x38800000u);
}

