//! Conversions and bitcasts between every two types, `select` of every type, and bool operations.

use scry_gpu::DeviceInfo;

use crate::Cases;
use crate::case::ExpectedValue;
use crate::random::RandomWords;
use crate::ty::{FLOATS, INTEGERS, NUMBERS, Ty};
use crate::typed::{Operands, Row, expressions, for_types};

/// Corner cases of the type, and of the types that it is converted to.
fn operands(ty: Ty) -> Operands {
    let first: Vec<u64> = if ty.is_float() { floats(ty) } else { integers(ty) };
    let second = first.iter().rev().copied().collect();
    Operands { ty, first, second, third: (0..32).collect() }
}

fn integers(ty: Ty) -> Vec<u64> {
    let mut values: Vec<i128> = vec![0, 1, -1, 2, -2, 255, -256];
    for bits in [15, 16, 31, 32, 63] {
        values.extend([(1 << bits) - 1, 1 << bits, -(1 << bits)]);
    }
    let mut random = RandomWords(9);
    values.resize_with(32, || {
        let word = random.next().map_or(0, i128::from);
        (word * word) >> (word % 40)
    });
    values.into_iter().map(|value| ty.wrap(value)).collect()
}

/// Returns 32 floats. None of them rounds to infinity in `ty`, which WGSL leaves open.
fn floats(ty: Ty) -> Vec<u64> {
    let mut values = vec![0.0, 0.5, -0.5, 1.0, -1.0, 1.5, -1.5, 2.5, -2.5, 1000.25, -1000.75];
    let edges = [2048.0, 32767.0, 32768.0, -32768.0, 65504.0, -65504.0, 60000.5];
    values.extend(edges);
    if ty != Ty::F16 {
        let edges = [2147483520.0, 2147483648.0, -2147483648.0, 4294967040.0, 4294967296.0];
        values.extend(edges);
        values.extend([9.2e18, 9.3e18, -9.3e18, 1.8e19, 1.9e19, 1e30, -1e30, 1e-3, 3.9, -3.9]);
    }
    values.resize(32, 77.75);
    values.into_iter().map(|value| ty.nearest(value)).collect()
}

/// Returns the largest and the smallest integer that the integer type `to` and the float type
/// `from` both represent.
fn common_bounds(from: Ty, to: Ty) -> (i128, i128) {
    let precision = match from {
        Ty::F16 => 11,
        Ty::F32 => 24,
        _ => 53,
    };
    let max = |value_bits: u32| {
        let all = (1i128 << value_bits) - 1;
        let unused = value_bits.saturating_sub(precision);
        let max = all >> unused << unused;
        if from == Ty::F16 { max.min(65504) } else { max }
    };
    let value_bits = to.bits() - u32::from(to.is_signed());
    let min = if to.is_signed() { -(1i128 << value_bits) } else { 0 };
    (max(value_bits), if from == Ty::F16 { min.max(-65504) } else { min })
}

/// Returns the expected result of converting a number to another type.
fn conversion(from: Ty, to: Ty, bits: u64) -> ExpectedValue {
    match (from.is_float(), to.is_float()) {
        // WGSL has only 32-bit integers, so it does not say whether a negative integer is
        // sign-extended to a wider unsigned one.
        (false, false)
            if from.bits() < to.bits()
                && from.is_signed() != to.is_signed()
                && bits >> (from.bits() - 1) == 1 =>
        {
            ExpectedValue::Any
        }
        (false, false) => ExpectedValue::Bits(to.wrap(from.integer(bits))),
        (false, true) => to_float(to, from.integer(bits) as f64),
        (true, true) => to_float(to, from.float(bits)),
        // Towards zero, then to the nearest value that both types have.
        (true, false) => {
            let (max, min) = common_bounds(from, to);
            let integer = from.float(bits).trunc() as i128;
            // WGSL has no rule for values out of the range of integers of other widths.
            if to.bits() != 32 && !(min..=max).contains(&integer) {
                return ExpectedValue::Any;
            }
            ExpectedValue::Bits(to.wrap(integer.clamp(min, max)))
        }
    }
}

/// WGSL: the number itself if it is representable, else either neighbour; unspecified beyond the
/// greatest finite float.
fn to_float(to: Ty, number: f64) -> ExpectedValue {
    if to == Ty::F16 && number.abs() > 65504.0 {
        return ExpectedValue::Any;
    }
    if to.float(to.nearest(number)) == number {
        ExpectedValue::Number(number)
    } else {
        ExpectedValue::WithinUlps(number, 1.0)
    }
}

fn conversions(from: Ty) -> Vec<Row> {
    let name = from.name();
    let mut rows = Vec::new();
    for to in NUMBERS.into_iter().filter(|to| *to != from) {
        let expression = format!("{}(a)", to.name());
        rows.push(Row::new(expression, to, move |a, _, _| conversion(from, to, a)));
        let bool_to_float =
            move |a: u64, b: u64, _| ExpectedValue::Number(f64::from(u8::from(a == b)));
        if to.is_float() {
            rows.push(Row::new(format!("{}(a == b)", to.name()), to, bool_to_float));
        }
    }
    let is_zero =
        move |bits: u64| if from.is_float() { from.float(bits) == 0.0 } else { bits == 0 };
    rows.push(Row::condition("bool(a)", move |a, _| !is_zero(a)));
    rows.push(Row::condition(format!("a == {name}(bool(a))"), move |a, _| {
        is_zero(a) || a == from.integer_bits(1)
    }));
    let from_bool = move |value: bool| ExpectedValue::Bits(from.integer_bits(value.into()));
    rows.push(Row::new(format!("{name}(s < 9u)"), from, move |_, _, s| from_bool(s < 9)));
    rows.push(Row::new("select(a, b, s % 3u == 1u)", from, move |a, b, s| {
        ExpectedValue::Bits(if s % 3 == 1 { b } else { a })
    }));
    rows
}

fn bitcasts(from: Ty) -> Vec<Row> {
    let has_same_size = move |to: &Ty| *to != from && to.bits() == from.bits();
    let case = |to: Ty| {
        let expression = format!("bitcast<{}>(a)", to.name());
        Row::new(expression, to, |a, _, _| ExpectedValue::Bits(a))
    };
    NUMBERS.into_iter().filter(has_same_size).map(case).collect()
}

pub(crate) fn integers_to_every_type(gpu: &DeviceInfo) -> Cases {
    for_types(gpu, &INTEGERS, |gpu, ty| expressions(gpu, operands(ty), conversions(ty)))
}

pub(crate) fn floats_to_every_type(gpu: &DeviceInfo) -> Cases {
    for_types(gpu, &FLOATS, |gpu, ty| expressions(gpu, operands(ty), conversions(ty)))
}

pub(crate) fn bitcasts_to_every_type(gpu: &DeviceInfo) -> Cases {
    for_types(gpu, &NUMBERS, |gpu, ty| expressions(gpu, operands(ty), bitcasts(ty)))
}

pub(crate) fn bool_operations(gpu: &DeviceInfo) -> Cases {
    let operands = operands(Ty::U32);
    let odd = |word: u64| word % 2 == 1;
    let rows =
        vec![
            Row::condition("select(a % 2u == 1u, b > 5u, a > b)", move |a, b| {
                if a > b { b > 5 } else { odd(a) }
            }),
            Row::condition("(a % 2u == 1u) & (b % 2u == 1u)", move |a, b| odd(a) & odd(b)),
            Row::condition("(a % 2u == 1u) | (b % 2u == 1u)", move |a, b| odd(a) | odd(b)),
            Row::condition("(a % 2u == 1u) == (b % 2u == 1u)", move |a, b| odd(a) == odd(b)),
            Row::condition("(a % 2u == 1u) != (b % 2u == 1u)", move |a, b| odd(a) != odd(b)),
            Row::condition("!(a % 2u == 1u)", move |a, _| !odd(a)),
            Row::condition("a % 2u == 1u && b % 2u == 1u", move |a, b| odd(a) && odd(b)),
            Row::condition("a % 2u == 1u || b % 2u == 1u", move |a, b| odd(a) || odd(b)),
            Row::condition("any(vec3(a, b, a) > vec3(b, a, b))", |a, b| a != b),
            Row::condition("all(vec2(a, 3u) >= vec2(b, 3u))", |a, b| a >= b),
        ];
    expressions(gpu, operands, rows)
}
