//! f32: operations whose results are exact or correctly rounded, and copies.

use scry_gpu::{DType, DeviceInfo, Launch};

use crate::case::{Case, Data};
use crate::random::{all_pairs, random_f32};
use crate::table::{Row, Tolerance, table, table_within};

const AS_FLOATS: &str = "let a = bitcast<f32>(x); let b = bitcast<f32>(y);";

fn pairs() -> Vec<[u32; 2]> {
    let values = [0.5, 1.0, 1.5, 2.5, 3.5, -0.5, -1.5, -2.5, 7.25, -7.75, 1e6, -1e6, 1234.567];
    let mut pairs = all_pairs(&values.map(f32::to_bits));
    let random = random_f32(8, 400);
    pairs.extend(random.chunks(2).map(|pair| [pair[0] * 100.0, pair[1]].map(f32::to_bits)));
    pairs
}

/// An expression over the floats `a` and `b`, and its value on the host.
type FloatRow = (&'static str, fn(f32, f32) -> f32);

/// Returns cases that evaluate each row for each pair. The sign of a zero is not compared: an
/// implementation may ignore it.
fn float_table(rows: &[FloatRow], pairs: &[[u32; 2]]) -> Vec<Case> {
    let as_words = |(expression, host): &FloatRow| {
        let host = *host;
        let host = move |x, y| host(f32::from_bits(x), f32::from_bits(y)).to_bits();
        (format!("bitcast<u32>({expression})"), host)
    };
    let rows: Vec<_> = rows.iter().map(as_words).collect();
    table_within(Tolerance::SameFloat, AS_FLOATS, &rows, pairs)
}

pub(crate) fn exact_operations(_: &DeviceInfo) -> Vec<Case> {
    const CASES: [FloatRow; 18] = [
        ("a + b", |a, b| a + b),
        ("a - b", |a, b| a - b),
        ("a * b", |a, b| a * b),
        ("-a", |a, _| -a),
        ("abs(a)", |a, _| a.abs()),
        ("floor(a)", |a, _| a.floor()),
        ("ceil(a)", |a, _| a.ceil()),
        ("trunc(a)", |a, _| a.trunc()),
        ("round(a)", |a, _| a.round_ties_even()),
        ("fract(a)", |a, _| a - a.floor()),
        ("sign(a)", |a, _| a.signum()),
        ("min(a, b)", |a, b| a.min(b)),
        ("max(a, b)", |a, b| a.max(b)),
        ("clamp(a, -1.0, 2.0)", |a, _| a.clamp(-1.0, 2.0)),
        ("saturate(a)", |a, _| a.clamp(0.0, 1.0)),
        ("step(a, b)", |a, b| if a <= b { 1.0 } else { 0.0 }),
        ("ldexp(a, 3)", |a, _| a * 8.0),
        ("select(a, b, a < b)", |a, b| a.max(b)),
    ];
    float_table(&CASES, &pairs())
}

pub(crate) fn comparisons(_: &DeviceInfo) -> Vec<Case> {
    const CASES: [Row; 6] = [
        ("u32(a < b)", |x, y| (f32::from_bits(x) < f32::from_bits(y)).into()),
        ("u32(a <= b)", |x, y| (f32::from_bits(x) <= f32::from_bits(y)).into()),
        ("u32(a > b)", |x, y| (f32::from_bits(x) > f32::from_bits(y)).into()),
        ("u32(a >= b)", |x, y| (f32::from_bits(x) >= f32::from_bits(y)).into()),
        ("u32(a == b)", |x, y| (f32::from_bits(x) == f32::from_bits(y)).into()),
        ("u32(a != b)", |x, y| (f32::from_bits(x) != f32::from_bits(y)).into()),
    ];
    let values = [0.0, -0.0, 1.0, -1.0, 1.5, f32::MAX, f32::MIN];
    let mut pairs = all_pairs(&values.map(f32::to_bits));
    pairs.extend(self::pairs());
    table(AS_FLOATS, &CASES, &pairs)
}

pub(crate) fn remainder_has_sign_of_dividend(_: &DeviceInfo) -> Vec<Case> {
    const CASES: [FloatRow; 2] =
        [("a % b", |a, b| a % b), ("(vec2(a, 1.0) % vec2(b, 1.0)).x", |a, b| a % b)];
    // Small multiples of 0.25, divided by 2 or -2: no intermediate result is rounded.
    let dividends: Vec<f32> =
        (-20i8..20).filter(|i| *i % 8 != 0).map(|i| f32::from(i) / 4.0).collect();
    let pair = |a: &f32| [2.0, -2.0].map(|b: f32| [a.to_bits(), b.to_bits()]);
    let pairs: Vec<[u32; 2]> = dividends.iter().flat_map(pair).collect();
    float_table(&CASES, &pairs)
}

pub(crate) fn parts_of_floats(_: &DeviceInfo) -> Vec<Case> {
    const FLOATS: [FloatRow; 3] = [
        ("modf(a).whole", |a, _| a.trunc()),
        ("modf(a).fract", |a, _| a.fract()),
        ("ldexp(frexp(a).fract, frexp(a).exp)", |a, _| a),
    ];
    // The bits of a fraction, whose magnitude is at least 0.5 and less than 1, and the exponent.
    const WORDS: [Row; 2] = [
        ("bitcast<u32>(frexp(a).fract)", |x, _| x & 0x807f_ffff | 126 << 23),
        ("bitcast<u32>(frexp(a).exp)", |x, _| (x >> 23 & 255).wrapping_sub(126)),
    ];
    let mut cases = float_table(&FLOATS, &pairs());
    cases.extend(table(AS_FLOATS, &WORDS, &pairs()));
    cases
}

const COPY: &str = "
    @group(0) @binding(0) var<storage, read> x: array<f32>;
    @group(0) @binding(1) var<storage, read_write> out: array<f32>;

    @compute @workgroup_size(8)
    fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        if id.x < arrayLength(&x) { out[id.x] = x[id.x]; }
    }";

pub(crate) fn bits_of_floats_pass_through_buffers(_: &DeviceInfo) -> Case {
    // Both zeros, subnormals, the smallest and the largest normal numbers. An implementation may
    // assume that there are no NaNs and infinities.
    let words = [0, 1 << 31, 1, 0x8000_0001, 0x007f_ffff, 0x0080_0000, 0x7f7f_ffff, 0x3f80_0001];
    Case::new("", COPY)
        .buffer(Data::floats(&words.map(f32::from_bits)))
        .buffer(Data::zeros(DType::F32, words.len()))
        .launch(Launch::invocations(words.len()))
        .expect_words(1, words.to_vec())
}
