//! Tests of every function, compared with its definition or with double precision.

mod accuracy;
mod edges;
mod exact;

/// Returns numbers of every exponent with pseudo-random fractions, of both signs.
fn samples(seed: u64) -> impl Iterator<Item = f32> {
    let mut state = seed;
    (0..256u32 * 800).map(move |i| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let random = (state >> 32) as u32;
        f32::from_bits((random & 0x807f_ffff) | ((i % 256) << 23))
    })
}

/// Numbers at which functions have special cases.
const SPECIAL: [f32; 21] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    0.499_999_97,
    8_388_607.5,
    8_388_608.0,
    8_388_609.0,
    -8_388_607.5,
    f32::MIN_POSITIVE,
    f32::MAX,
    f32::MIN,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
    1e-45,
];

/// Returns whether two results are the same number with the same sign, or both NaN.
fn same(x: f32, y: f32) -> bool {
    x.to_bits() == y.to_bits() || (x.is_nan() && y.is_nan())
}
