//! Conversions between i32, u32, f32 and bool, and bitcasts.

use scry_gpu::DeviceInfo;

use crate::case::Case;
use crate::random::RandomWords;
use crate::table::{Row, Tolerance, table, table_within};

/// WGSL: rounds towards zero, then clamps to the integers that both types represent.
fn to_i32(value: f32) -> i32 {
    (f64::from(value).trunc()).clamp(-2_147_483_648.0, 2_147_483_520.0) as i32
}

/// WGSL: rounds towards zero, then clamps to the integers that both types represent.
fn to_u32(value: f32) -> u32 {
    (f64::from(value).trunc()).clamp(0.0, 4_294_967_040.0) as u32
}

fn floats() -> Vec<[u32; 2]> {
    let mut values = vec![
        0.0,
        -0.0,
        0.5,
        -0.5,
        0.999_999_94,
        -0.999_999_94,
        1.0,
        -1.0,
        1.5,
        -1.5,
        16_777_217.0,
        2_147_483_520.0,
        2_147_483_648.0,
        -2_147_483_648.0,
        -2_147_483_904.0,
        4_294_967_040.0,
        4_294_967_296.0,
        1e10,
        -1e10,
        1e30,
        -1e30,
        f32::MAX,
        f32::MIN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::MIN_POSITIVE,
    ];
    values.extend(RandomWords(4).take(100).map(|word| word as i32 as f32 / 65536.0));
    values.extend(RandomWords(5).take(100).map(|word| word as f32));
    values.into_iter().map(|value| [value.to_bits(), 0]).collect()
}

pub(crate) fn floats_to_integers_truncate_and_clamp(_: &DeviceInfo) -> Vec<Case> {
    const CASES: [Row; 5] = [
        ("bitcast<u32>(i32(a))", |x, _| to_i32(f32::from_bits(x)) as u32),
        ("u32(a)", |x, _| to_u32(f32::from_bits(x))),
        ("bitcast<u32>(vec3<i32>(vec3(0.0, a, a)).y)", |x, _| to_i32(f32::from_bits(x)) as u32),
        ("vec2<u32>(vec2(a, -a)).x", |x, _| to_u32(f32::from_bits(x))),
        ("vec2<u32>(vec2(a, -a)).y", |x, _| to_u32(-f32::from_bits(x))),
    ];
    table("let a = bitcast<f32>(x);", &CASES, &floats())
}

/// A NaN may become any integer, but the conversion must have no other effect.
pub(crate) fn nan_converts_to_any_integer(_: &DeviceInfo) -> Vec<Case> {
    const CASES: [Row; 3] = [
        ("select(1u, 0u, i32(a) <= 2147483647)", |_, _| 0),
        ("select(1u, 0u, u32(a) >= 0u)", |_, _| 0),
        ("7u", |_, _| 7),
    ];
    let pairs = [[f32::NAN.to_bits(), 0], [0xffc0_0001, 0]];
    table("let a = bitcast<f32>(x);", &CASES, &pairs)
}

/// WGSL: the exact number if the float type represents it, else either neighbour.
pub(crate) fn integers_to_floats(_: &DeviceInfo) -> Vec<Case> {
    const EXACT: [Row; 4] = [
        ("bitcast<u32>(f32(i32(x & 0xffffffu) - 8388608))", |x, _| {
            ((x & 0xff_ffff) as f32 - 8_388_608.0).to_bits()
        }),
        ("bitcast<u32>(f32(x & 0xffffff00u))", |x, _| ((x & 0xffff_ff00) as f32).to_bits()),
        ("bitcast<u32>(f32(bitcast<i32>(x & 0xffffff00u)))", |x, _| {
            ((x & 0xffff_ff00) as i32 as f32).to_bits()
        }),
        ("bitcast<u32>(vec4<f32>(vec4(x >> 8u)).w)", |x, _| ((x >> 8) as f32).to_bits()),
    ];
    const ROUNDED: [Row; 2] = [
        ("bitcast<u32>(f32(x))", |x, _| (x as f32).to_bits()),
        ("bitcast<u32>(f32(bitcast<i32>(x)))", |x, _| (x as i32 as f32).to_bits()),
    ];
    let mut pairs: Vec<[u32; 2]> = RandomWords(6).take(200).map(|word| [word, 0]).collect();
    pairs.extend([0, 1, 0x7fff_ffff, 0x8000_0000, u32::MAX, 0xff_ffff].map(|word| [word, 0]));
    let mut cases = table("", &EXACT, &pairs);
    cases.extend(table_within(Tolerance::BitsWithin(1), "", &ROUNDED, &pairs));
    cases
}

pub(crate) fn booleans(_: &DeviceInfo) -> Vec<Case> {
    const CASES: [Row; 7] = [
        ("u32(bool(x))", |x, _| (x != 0).into()),
        ("u32(bool(bitcast<i32>(x)))", |x, _| (x != 0).into()),
        ("bitcast<u32>(i32(x > 5u))", |x, _| (x > 5).into()),
        ("bitcast<u32>(f32(x > 5u))", |x, _| if x > 5 { 1.0f32.to_bits() } else { 0 }),
        ("u32(all(vec3<bool>(vec3(x, 1u, 1u))))", |x, _| (x != 0).into()),
        ("u32(any(vec3<bool>(vec3(x, 0u, 0u))))", |x, _| (x != 0).into()),
        ("u32(!(x > 5u))", |x, _| (x <= 5).into()),
    ];
    let words = [0, 1, 5, 6, 0x8000_0000, 1.5f32.to_bits(), u32::MAX - 0x7f_ffff];
    let mut cases = table("", &CASES, &words.map(|word| [word, 0]));
    // Separate, without subnormal numbers: a device may flush those to zero.
    const OF_FLOATS: [Row; 1] =
        [("u32(bool(bitcast<f32>(x)))", |x, _| (f32::from_bits(x) != 0.0).into())];
    let words = words.into_iter().filter(|word| !f32::from_bits(*word).is_subnormal());
    cases.extend(table("", &OF_FLOATS, &words.map(|word| [word, 0]).collect::<Vec<_>>()));
    cases
}

pub(crate) fn bitcasts_keep_every_bit(_: &DeviceInfo) -> Vec<Case> {
    const CASES: [Row; 7] = [
        ("bitcast<u32>(bitcast<i32>(x))", |x, _| x),
        ("u32(bitcast<i32>(x))", |x, _| x),
        ("bitcast<u32>(i32(x))", |x, _| x),
        ("bitcast<u32>(bitcast<f32>(x))", |x, _| x),
        ("bitcast<vec2<u32>>(bitcast<vec2<f32>>(vec2(x, y))).y", |_, y| y),
        ("bitcast<u32>(bitcast<i32>(bitcast<f32>(x)))", |x, _| x),
        ("bitcast<vec4<u32>>(vec4<i32>(vec4(x, y, x, y))).z", |x, _| x),
    ];
    // No NaNs: an implementation may assume their absence.
    let is_number = |word: &u32| !f32::from_bits(*word).is_nan();
    let words: Vec<u32> = RandomWords(7).take(200).filter(is_number).collect();
    let pairs: Vec<[u32; 2]> = words.windows(2).map(|pair| [pair[0], pair[1]]).collect();
    table("", &CASES, &pairs)
}
