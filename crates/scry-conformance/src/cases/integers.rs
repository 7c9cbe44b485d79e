//! Integers of every width: operators, comparisons, and functions of numbers and of bits.

use scry_gpu::DeviceInfo;

use crate::Cases;
use crate::case::ExpectedValue;
use crate::random::RandomWords;
use crate::ty::{INTEGERS, Ty};
use crate::typed::{Operands, Row, expressions, for_types};

/// Returns corner cases of the type and random values.
fn operands(ty: Ty) -> Operands {
    let width = i128::from(ty.bits());
    let sign_bit = 1i128 << (width - 1);
    let corners = [
        0,
        1,
        2,
        3,
        7,
        width - 1,
        width,
        width + 1,
        sign_bit - 1,
        sign_bit,
        sign_bit + 1,
        -1,
        -2,
        -7,
        0x5a,
        0xff,
        -0x80,
        0x100,
        sign_bit >> 1,
        -(sign_bit >> 1),
    ];
    let mut random = RandomWords(ty.bits());
    let mut word = || random.next().map_or(0, i128::from);
    let mut first: Vec<u64> = corners.iter().map(|corner| ty.wrap(*corner)).collect();
    first.extend((0..12).map(|shift| ty.wrap((word() << 32 | word()) >> (shift * 3))));
    let second = first.iter().rev().map(|value| ty.wrap(ty.integer(*value) ^ 1)).collect();
    let mut third = vec![0, 1, 2, 5, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 1 << 31, u32::MAX];
    third.extend((0..15).map(|i| i * 4 + 3));
    Operands { ty, first, second, third }
}

/// Creates a row whose result is an integer of the operands' type.
fn integer(
    ty: Ty,
    expression: impl Into<String>,
    oracle: impl Fn(i128, i128, u32) -> i128 + 'static,
) -> Row {
    Row::new(expression, ty, move |a, b, s| {
        ExpectedValue::Bits(ty.wrap(oracle(ty.integer(a), ty.integer(b), s)))
    })
}

fn condition(ty: Ty, expression: &str, oracle: impl Fn(i128, i128) -> bool + 'static) -> Row {
    Row::condition(expression, move |a, b| oracle(ty.integer(a), ty.integer(b)))
}

/// WGSL: `x / 0` is `x`; a quotient that overflows wraps to the dividend.
fn quotient(a: i128, b: i128) -> i128 {
    a.checked_div(b).unwrap_or(a)
}

/// WGSL: `x % 0` is 0; the sign is the dividend's.
fn remainder(a: i128, b: i128) -> i128 {
    a.checked_rem(b).unwrap_or(0)
}

fn arithmetic(ty: Ty) -> Vec<Row> {
    let bits = ty.bits();
    let mut cases = vec![
        integer(ty, "a + b", |a, b, _| a + b),
        integer(ty, "a - b", |a, b, _| a - b),
        integer(ty, "a * b", |a, b, _| a.wrapping_mul(b)),
        integer(ty, "a / b", |a, b, _| quotient(a, b)),
        integer(ty, "a % b", |a, b, _| remainder(a, b)),
        integer(ty, "a & b", |a, b, _| a & b),
        integer(ty, "a | b", |a, b, _| a | b),
        integer(ty, "a ^ b", |a, b, _| a ^ b),
        integer(ty, "~a", |a, _, _| !a),
        // WGSL: the amount is taken modulo the width.
        integer(ty, "a << s", move |a, _, s| a << (s % bits)),
        integer(ty, "a >> s", move |a, _, s| a >> (s % bits)),
        integer(ty, "min(a, b)", |a, b, _| a.min(b)),
        integer(ty, "max(a, b)", |a, b, _| a.max(b)),
        integer(ty, "clamp(a, min(b, a), max(a, b))", |a, _, _| a),
        integer(ty, "clamp(b, min(a, b), a)", |a, b, _| b.max(a.min(b)).min(a)),
        integer(ty, "abs(a)", |a, _, _| a.abs()),
        integer(ty, "select(a, b, a < b)", |a, b, _| a.max(b)),
        integer(ty, "dot(vec3(a, b, a), vec3(b, b, a))", |a, b, _| {
            let product = |x: i128, y: i128| x.wrapping_mul(y);
            product(a, b).wrapping_add(product(b, b)).wrapping_add(product(a, a))
        }),
    ];
    if ty.is_signed() {
        cases.push(integer(ty, "-a", |a, _, _| -a));
        cases.push(integer(ty, "sign(a)", |a, _, _| a.signum()));
    }
    cases
}

fn comparisons(ty: Ty) -> Vec<Row> {
    vec![
        condition(ty, "a < b", |a, b| a < b),
        condition(ty, "a <= b", |a, b| a <= b),
        condition(ty, "a > b", |a, b| a > b),
        condition(ty, "a >= b", |a, b| a >= b),
        condition(ty, "a == b", |a, b| a == b),
        condition(ty, "a != b", |a, b| a != b),
        condition(ty, "a == a", |_, _| true),
        condition(ty, "any(vec2(a, b) < vec2(b, a))", |a, b| a != b),
    ]
}

/// Returns the bits of a number, zero-extended.
fn to_bits(ty: Ty, value: i128) -> u64 {
    ty.wrap(value)
}

fn leading_zeros(ty: Ty, value: i128) -> i128 {
    i128::from(to_bits(ty, value).leading_zeros() - (64 - ty.bits()))
}

/// WGSL: the position of the highest bit that differs from the sign bit, or for unsigned types is
/// one; -1 if there is none.
fn first_leading(ty: Ty, value: i128) -> i128 {
    let value = if ty.is_signed() && value < 0 { !value } else { value };
    i128::from(ty.bits()) - 1 - leading_zeros(ty, value)
}

fn trailing_zeros(ty: Ty, value: i128) -> i128 {
    i128::from(to_bits(ty, value).trailing_zeros().min(ty.bits()))
}

/// WGSL: the position of the lowest one; -1 if there is none.
fn first_trailing(ty: Ty, value: i128) -> i128 {
    if value == 0 { -1 } else { trailing_zeros(ty, value) }
}

fn bits(ty: Ty) -> Vec<Row> {
    let width = ty.bits();
    vec![
        integer(ty, "countOneBits(a)", move |a, _, _| to_bits(ty, a).count_ones().into()),
        integer(ty, "countLeadingZeros(a)", move |a, _, _| leading_zeros(ty, a)),
        integer(ty, "countTrailingZeros(a)", move |a, _, _| trailing_zeros(ty, a)),
        integer(ty, "reverseBits(a)", move |a, _, _| {
            (to_bits(ty, a).reverse_bits() >> (64 - width)).into()
        }),
        integer(ty, "firstLeadingBit(a)", move |a, _, _| first_leading(ty, a)),
        integer(ty, "firstTrailingBit(a)", move |a, _, _| first_trailing(ty, a)),
    ]
}

pub(crate) fn arithmetic_of_every_width(gpu: &DeviceInfo) -> Cases {
    for_types(gpu, &INTEGERS, |gpu, ty| expressions(gpu, operands(ty), arithmetic(ty)))
}

pub(crate) fn comparisons_of_every_width(gpu: &DeviceInfo) -> Cases {
    for_types(gpu, &INTEGERS, |gpu, ty| expressions(gpu, operands(ty), comparisons(ty)))
}

pub(crate) fn bits_of_every_width(gpu: &DeviceInfo) -> Cases {
    for_types(gpu, &INTEGERS, |gpu, ty| expressions(gpu, operands(ty), bits(ty)))
}
