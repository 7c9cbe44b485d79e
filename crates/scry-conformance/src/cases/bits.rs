//! Bit manipulation and packing functions.

use scry_gpu::{DeviceInfo, f16};

use crate::case::Case;
use crate::random::{RandomWords, all_pairs};
use crate::table::{Row, Tolerance, table, table_within};

fn words() -> Vec<u32> {
    let mut words = vec![0, 1, 2, 0x80, 0xff, 0x8000_0000, 0x7fff_ffff, u32::MAX, 0xffff_0000];
    words.extend((0..32).map(|bit| 1 << bit));
    words.extend((0..32).map(|bit| u32::MAX << bit));
    words.extend(RandomWords(2).take(100));
    words
}

/// Returns pairs whose second word is a valid bit offset, and pairs where it is not.
fn pairs() -> Vec<[u32; 2]> {
    let mut pairs: Vec<[u32; 2]> = words().into_iter().map(|word| [word, word / 3]).collect();
    for word in [0, 0x1234_5678, 0x8765_4321, u32::MAX] {
        let offsets = [0, 1, 7, 16, 30, 31, 32, 33, 64, 1 << 31, u32::MAX];
        pairs.extend(offsets.map(|offset| [word, offset]));
    }
    pairs
}

/// WGSL: the position of the most significant 1; all ones if there is none.
fn first_leading(word: u32) -> u32 {
    31u32.wrapping_sub(word.leading_zeros())
}

/// WGSL: the position of the most significant bit that differs from the sign bit; all ones if there
/// is none.
fn first_leading_signed(word: u32) -> u32 {
    first_leading(if word >> 31 == 1 { !word } else { word })
}

/// WGSL: the position of the least significant 1; all ones if there is none.
fn first_trailing(word: u32) -> u32 {
    match word {
        0 => u32::MAX,
        word => word.trailing_zeros(),
    }
}

/// WGSL: the offset is clamped to 32, the count to the remaining bits.
fn clamp_field(offset: u32, count: u32) -> (u32, u32) {
    let offset = offset.min(32);
    (offset, count.min(32 - offset))
}

fn mask(count: u32) -> u32 {
    match count {
        32 => u32::MAX,
        count => (1 << count) - 1,
    }
}

fn extract(word: u32, offset: u32, count: u32) -> u32 {
    let (offset, count) = clamp_field(offset, count);
    word.checked_shr(offset).unwrap_or(0) & mask(count)
}

fn extract_signed(word: u32, offset: u32, count: u32) -> u32 {
    let (offset, count) = clamp_field(offset, count);
    if count == 0 {
        return 0;
    }
    let top_aligned = word << (32 - offset - count);
    (top_aligned as i32 >> (32 - count)) as u32
}

fn insert(word: u32, new: u32, offset: u32, count: u32) -> u32 {
    let (offset, count) = clamp_field(offset, count);
    let bits = mask(count).checked_shl(offset).unwrap_or(0);
    word & !bits | new.checked_shl(offset).unwrap_or(0) & bits
}

pub(crate) fn bit_counts_and_positions(_: &DeviceInfo) -> Vec<Case> {
    const CASES: [Row; 11] = [
        ("countOneBits(x)", |x, _| x.count_ones()),
        ("countLeadingZeros(x)", |x, _| x.leading_zeros()),
        ("countTrailingZeros(x)", |x, _| x.trailing_zeros()),
        ("reverseBits(x)", |x, _| x.reverse_bits()),
        ("firstLeadingBit(x)", |x, _| first_leading(x)),
        ("firstTrailingBit(x)", |x, _| first_trailing(x)),
        ("bitcast<u32>(firstLeadingBit(bitcast<i32>(x)))", |x, _| first_leading_signed(x)),
        ("bitcast<u32>(firstTrailingBit(bitcast<i32>(x)))", |x, _| first_trailing(x)),
        ("bitcast<u32>(countLeadingZeros(bitcast<i32>(x)))", |x, _| x.leading_zeros()),
        ("countTrailingZeros(vec3(x, y, x)).y", |_, y| y.trailing_zeros()),
        ("firstLeadingBit(vec2(y, x)).y", |x, _| first_leading(x)),
    ];
    table("", &CASES, &pairs())
}

pub(crate) fn bit_fields(_: &DeviceInfo) -> Vec<Case> {
    const CASES: [Row; 9] = [
        ("extractBits(x, y, 5u)", |x, y| extract(x, y, 5)),
        ("extractBits(x, 3u, y)", |x, y| extract(x, 3, y)),
        ("extractBits(x, y, y)", |x, y| extract(x, y, y)),
        ("bitcast<u32>(extractBits(bitcast<i32>(x), y, 5u))", |x, y| extract_signed(x, y, 5)),
        ("bitcast<u32>(extractBits(bitcast<i32>(x), 3u, y))", |x, y| extract_signed(x, 3, y)),
        ("insertBits(x, 0x2d5u, y, 9u)", |x, y| insert(x, 0x2d5, y, 9)),
        ("insertBits(x, ~x, 4u, y)", |x, y| insert(x, !x, 4, y)),
        ("insertBits(x, ~x, y, y)", |x, y| insert(x, !x, y, y)),
        ("insertBits(vec2(x), vec2(5u), y, 3u).y", |x, y| insert(x, 5, y, 3)),
    ];
    table("", &CASES, &pairs())
}

/// Devices may have separate instructions for uniform values, and compilers fold constants.
pub(crate) fn bit_fields_of_uniform_words(_: &DeviceInfo) -> Vec<Case> {
    const WORD: u32 = 0xb2d4_c8e1;
    /// The value of `arrayLength(&pairs)`, which is uniform.
    fn length() -> u32 {
        pairs().len() as u32
    }
    const CASES: [Row; 10] = [
        ("extractBits(arrayLength(&pairs), y, 1u)", |_, y| extract(length(), y, 1)),
        ("extractBits(arrayLength(&pairs), y % 33u, arrayLength(&pairs) % 33u)", |_, y| {
            extract(length(), y % 33, length() % 33)
        }),
        ("bitcast<u32>(extractBits(1i >> (arrayLength(&pairs) / 1024u), y, 1u))", |_, y| {
            extract_signed(1, y, 1)
        }),
        ("extractBits(0xb2d4c8e1u, y, 9u)", |_, y| extract(WORD, y, 9)),
        ("extractBits(x, 9u, 30u)", |x, _| extract(x, 9, 30)),
        ("bitcast<u32>(extractBits(vec2(bitcast<i32>(x)), 9u, 30u).y)", |x, _| {
            extract_signed(x, 9, 30)
        }),
        ("extractBits(x, 40u, 4u) + extractBits(y, 4u, 0u)", |_, _| 0),
        ("insertBits(arrayLength(&pairs), 0x2d5u, y, 1u)", |_, y| insert(length(), 0x2d5, y, 1)),
        ("insertBits(1u, 0x5555u, y, arrayLength(&pairs))", |_, y| insert(1, 0x5555, y, length())),
        ("insertBits(x, y, 30u, 7u) ^ insertBits(x, y, 32u, 0u)", |x, y| x ^ insert(x, y, 30, 7)),
    ];
    table("", &CASES, &pairs())
}

/// For zero, `firstLeadingBit` and `firstTrailingBit` return -1, `countLeadingZeros` and
/// `countTrailingZeros` 32. Value ranges that a compiler derives for results must include these.
pub(crate) fn bit_positions_of_possible_zeros(_: &DeviceInfo) -> Vec<Case> {
    fn remainder(x: u32) -> u32 {
        (first_leading_signed(x).cast_signed() % 5).cast_unsigned()
    }
    const CASES: [Row; 9] = [
        ("bitcast<u32>(firstLeadingBit(bitcast<i32>(x)) % 5)", |x, _| remainder(x)),
        ("bitcast<u32>((firstLeadingBit(vec2(bitcast<i32>(y))) % 5i).y)", |_, y| remainder(y)),
        ("bitcast<u32>(firstLeadingBit(vec2<i32>(0i)).x % 5)", |_, _| u32::MAX),
        ("bitcast<u32>(firstLeadingBit(vec2<i32>(-1i)).x / 2)", |_, _| 0),
        ("select(7u, 8u, firstLeadingBit(x) > 31u)", |x, _| if x == 0 { 8 } else { 7 }),
        ("select(7u, 8u, firstTrailingBit(x & y) > 31u)", |x, y| if x & y == 0 { 8 } else { 7 }),
        ("countLeadingZeros(x & y) >> 5u", |x, y| u32::from(x & y == 0)),
        ("countTrailingZeros(vec3(x & y)).z / 32u", |x, y| u32::from(x & y == 0)),
        ("countTrailingZeros(firstTrailingBit(vec4(0u)).w & 32u)", |_, _| 5),
    ];
    table("", &CASES, &pairs())
}

fn bytes(word: u32) -> [u8; 4] {
    word.to_le_bytes()
}

fn dot_signed(x: u32, y: u32) -> u32 {
    let product = |(x, y)| i32::from(x as i8) * i32::from(y as i8);
    bytes(x).into_iter().zip(bytes(y)).map(product).sum::<i32>() as u32
}

fn dot_unsigned(x: u32, y: u32) -> u32 {
    let product = |(x, y)| u32::from(x) * u32::from(y);
    bytes(x).into_iter().zip(bytes(y)).map(product).sum()
}

pub(crate) fn packed_bytes(_: &DeviceInfo) -> Vec<Case> {
    const CASES: [Row; 8] = [
        ("dot4U8Packed(x, y)", dot_unsigned),
        ("bitcast<u32>(dot4I8Packed(x, y))", dot_signed),
        ("pack4xU8(unpack4xU8(x))", |x, _| x),
        ("pack4xI8(unpack4xI8(x))", |x, _| x),
        ("unpack4xU8(x).z", |x, _| bytes(x)[2].into()),
        ("bitcast<u32>(unpack4xI8(x).w)", |x, _| i32::from(bytes(x)[3] as i8) as u32),
        ("pack4xU8Clamp(vec4(x, y, 300u, 7u))", |x, y| {
            u32::from_le_bytes([x.min(255) as u8, y.min(255) as u8, 255, 7])
        }),
        ("pack4xI8Clamp(vec4(bitcast<i32>(x), bitcast<i32>(y), -300, -7))", |x, y| {
            let clamp = |word: u32| (word as i32).clamp(-128, 127) as i8 as u8;
            u32::from_le_bytes([clamp(x), clamp(y), 0x80, 0xf9])
        }),
    ];
    table("", &CASES, &all_pairs(&words()[..40]))
}

/// WGSL: ⌊0.5 + scale · clamp(e, 0, 1)⌋.
fn unorm(value: f32, scale: f64) -> u32 {
    (0.5 + scale * f64::from(value).clamp(0.0, 1.0)).floor() as u32
}

/// WGSL: ⌊0.5 + scale · clamp(e, -1, 1)⌋.
fn snorm(value: f32, scale: f64) -> i32 {
    (0.5 + scale * f64::from(value).clamp(-1.0, 1.0)).floor() as i32
}

pub(crate) fn packing_unorm_and_snorm(_: &DeviceInfo) -> Vec<Case> {
    const CASES: [Row; 4] = [
        ("pack4x8unorm(vec4(a, b, 0.0, 2.0))", |x, y| {
            let [a, b] = [x, y].map(|word| unorm(f32::from_bits(word), 255.0) as u8);
            u32::from_le_bytes([a, b, 0, 255])
        }),
        ("pack4x8snorm(vec4(a, b, -2.0, 2.0))", |x, y| {
            let [a, b] = [x, y].map(|word| snorm(f32::from_bits(word), 127.0) as u8);
            u32::from_le_bytes([a, b, 0x81, 0x7f])
        }),
        ("pack2x16unorm(vec2(a, b))", |x, y| {
            let [a, b] = [x, y].map(|word| unorm(f32::from_bits(word), 65535.0));
            a | b << 16
        }),
        ("pack2x16snorm(vec2(a, b))", |x, y| {
            let [a, b] = [x, y].map(|word| snorm(f32::from_bits(word), 32767.0) as u16);
            u32::from(a) | u32::from(b) << 16
        }),
    ];
    // No scaled value is near the middle between two integers, where the device may round either
    // way. (0.7, for example, would be: 0.7 * 255 is 178.5.)
    let values = [0.0, 1.0, -1.0, 0.25, -0.25, 0.71, -0.71, 0.123, -0.987, 5.0, -5.0, 0.0031];
    let pairs = all_pairs(&values.map(f32::to_bits));
    table("let a = bitcast<f32>(x); let b = bitcast<f32>(y);", &CASES, &pairs)
}

pub(crate) fn unpacking_unorm_and_snorm(_: &DeviceInfo) -> Vec<Case> {
    const CASES: [Row; 4] = [
        ("bitcast<u32>(unpack4x8unorm(x).y)", |x, _| (f32::from(bytes(x)[1]) / 255.0).to_bits()),
        ("bitcast<u32>(unpack4x8snorm(x).w)", |x, _| {
            (f32::from(bytes(x)[3] as i8) / 127.0).max(-1.0).to_bits()
        }),
        ("bitcast<u32>(unpack2x16unorm(x).x)", |x, _| (f32::from(x as u16) / 65535.0).to_bits()),
        ("bitcast<u32>(unpack2x16snorm(x).y)", |x, _| {
            (f32::from((x >> 16) as i16) / 32767.0).max(-1.0).to_bits()
        }),
    ];
    // WGSL allows 3 ULP.
    table_within(Tolerance::BitsWithin(3), "", &CASES, &pairs())
}

pub(crate) fn packed_f16s(_: &DeviceInfo) -> Vec<Case> {
    const CASES: [Row; 3] = [
        ("bitcast<u32>(unpack2x16float(x).x)", |x, _| f16::from_bits(x as u16).to_f32().to_bits()),
        ("bitcast<u32>(unpack2x16float(x).y)", |x, _| {
            f16::from_bits((x >> 16) as u16).to_f32().to_bits()
        }),
        ("pack2x16float(unpack2x16float(x))", |x, _| x),
    ];
    // Finite normal numbers: subnormal ones may be flushed to zero.
    let is_normal = |bits: u32| (1..31).contains(&(bits >> 10 & 31));
    let packed = words().into_iter().chain(RandomWords(3).take(300));
    let packed = packed.filter(|word| is_normal(*word) && is_normal(word >> 16));
    let pairs: Vec<[u32; 2]> = packed.map(|word| [word, 0]).collect();
    assert!(pairs.len() > 100);
    table("", &CASES, &pairs)
}
