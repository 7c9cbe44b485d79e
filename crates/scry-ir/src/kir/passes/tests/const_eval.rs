//! Tests that constant evaluation follows the definitions of the operations.

use super::super::super::{BinaryOp, Const, Inst, Type, UnaryOp, Value};
use super::super::const_eval::eval;

fn unary(op: UnaryOp, a: Const) -> Option<Const> {
    eval(op.result(a.ty), &Inst::Unary(op, Value(0)), |_| Some(a))
}

fn binary(op: BinaryOp, a: Const, b: Const) -> Option<Const> {
    let inst = Inst::Binary(op, Value(0), Value(1));
    eval(op.result(a.ty), &inst, |value| Some([a, b][value.index()]))
}

fn convert(ty: Type, a: Const) -> Option<Const> {
    eval(ty, &Inst::Convert(Value(0)), |_| Some(a))
}

fn f16(bits: u64) -> Const {
    Const { ty: Type::F16, bits }
}

#[test]
fn integer_division_is_total() {
    let (min, minus_one) = (Const::i32(i32::MIN), Const::i32(-1));
    assert_eq!(binary(BinaryOp::Div, min, minus_one), Some(min));
    assert_eq!(binary(BinaryOp::Rem, min, minus_one), Some(Const::i32(0)));
    assert_eq!(binary(BinaryOp::Div, Const::i32(-7), Const::i32(0)), Some(Const::i32(-7)));
    assert_eq!(binary(BinaryOp::Rem, Const::u32(7), Const::u32(0)), Some(Const::u32(0)));
    assert_eq!(binary(BinaryOp::Rem, Const::i32(-7), Const::i32(4)), Some(Const::i32(-3)));
    assert_eq!(binary(BinaryOp::Div, Const::i32(-7), Const::i32(2)), Some(Const::i32(-3)));
    let min = Const::int(Type::I64, i64::MIN);
    assert_eq!(binary(BinaryOp::Div, min, Const::int(Type::I64, -1)), Some(min));
}

#[test]
fn integers_wrap_at_their_own_width() {
    let i16_const = |value| Const::int(Type::I16, value);
    assert_eq!(
        binary(BinaryOp::Add, i16_const(i64::from(i16::MAX)), i16_const(1)),
        Some(i16_const(-32768))
    );
    assert_eq!(binary(BinaryOp::Mul, Const::u32(1 << 31), Const::u32(2)), Some(Const::u32(0)));
    assert_eq!(unary(UnaryOp::Neg, Const::i32(i32::MIN)), Some(Const::i32(i32::MIN)));
    assert_eq!(unary(UnaryOp::Abs, Const::i32(i32::MIN)), Some(Const::i32(i32::MIN)));
    let large = Const { ty: Type::U64, bits: u64::MAX };
    let half = Const { ty: Type::U64, bits: u64::MAX / 2 };
    assert_eq!(binary(BinaryOp::Div, large, Const::int(Type::U64, 2)), Some(half));
    assert_eq!(binary(BinaryOp::Lt, half, large), Some(Const::bool(true)));
}

#[test]
fn shift_amounts_are_modulo_width() {
    assert_eq!(binary(BinaryOp::Shl, Const::u32(3), Const::u32(33)), Some(Const::u32(6)));
    assert_eq!(binary(BinaryOp::Shr, Const::i32(-8), Const::u32(1)), Some(Const::i32(-4)));
    assert_eq!(binary(BinaryOp::Shr, Const::u32(u32::MAX), Const::u32(31)), Some(Const::u32(1)));
    let u16_const = |value| Const::int(Type::U16, value);
    assert_eq!(binary(BinaryOp::Shl, u16_const(1), Const::u32(17)), Some(u16_const(2)));
}

#[test]
fn bit_counts_respect_the_width() {
    let for_each_type =
        |op| Type::ALL.map(|ty| ty.is_integer().then(|| unary(op, Const::int(ty, 1))).flatten());
    let leading = for_each_type(UnaryOp::LeadingZeros).map(|c| c.map(|c| c.bits));
    let (x16, x32, x64) = (Some(15), Some(31), Some(63));
    assert_eq!(leading, [None, x16, x16, x32, x32, x64, x64, None, None, None]);
    let zero = Const::int(Type::U16, 0);
    assert_eq!(unary(UnaryOp::TrailingZeros, zero), Some(Const::int(Type::U16, 16)));
    assert_eq!(unary(UnaryOp::LeadingZeros, zero), Some(Const::int(Type::U16, 16)));
    assert_eq!(unary(UnaryOp::ReverseBits, Const::u32(1)), Some(Const::u32(1 << 31)));
    assert_eq!(unary(UnaryOp::CountOnes, Const::i32(-1)), Some(Const::i32(32)));
    for (value, leading) in [(0, -1), (-1, -1), (1, 0), (-2, 0), (i32::MIN, 30), (5, 2)] {
        let found = unary(UnaryOp::FirstLeadingBit, Const::i32(value));
        assert_eq!(found, Some(Const::i32(leading)), "of {value}");
    }
    assert_eq!(unary(UnaryOp::FirstLeadingBit, Const::u32(1 << 31)), Some(Const::u32(31)));
    assert_eq!(unary(UnaryOp::FirstTrailingBit, Const::u32(0)), Some(Const::u32(u32::MAX)));
    assert_eq!(unary(UnaryOp::FirstTrailingBit, Const::u32(8)), Some(Const::u32(3)));
}

#[test]
fn packed_dot_products() {
    let (a, b) = (Const::u32(0xff02_0304), Const::u32(0x0201_01ff));
    assert_eq!(binary(BinaryOp::Dot4U8, a, b), Some(Const::u32(510 + 2 + 3 + 1020)));
    assert_eq!(binary(BinaryOp::Dot4I8, a, b), Some(Const::i32(-1)), "-2 + 2 + 3 - 4");
}

#[test]
fn float_conversions_saturate_to_both_types() {
    let f32 = Const::f32;
    assert_eq!(convert(Type::I32, f32(3e9)), Some(Const::i32(2_147_483_520)));
    assert_eq!(convert(Type::I32, f32(-3e9)), Some(Const::i32(i32::MIN)));
    assert_eq!(convert(Type::U32, f32(1e30)), Some(Const::u32(4_294_967_040)));
    assert_eq!(convert(Type::U32, f32(-1.0)), Some(Const::u32(0)));
    assert_eq!(convert(Type::I32, f32(-1.9)), Some(Const::i32(-1)));
    assert_eq!(convert(Type::I32, f32(f32::NAN)), Some(Const::i32(0)));
    assert_eq!(convert(Type::I32, Const::f64(1e30)), Some(Const::i32(i32::MAX)));
    assert_eq!(convert(Type::I16, f16(0x7bff)), Some(Const::int(Type::I16, 32752)));
    assert_eq!(convert(Type::I32, f16(0xfc00)), Some(Const::i32(-65504)));
    let largest = Const::int(Type::U64, -1 << 40);
    assert_eq!(convert(Type::U64, f32(f32::INFINITY)), Some(largest));
}

#[test]
fn bool_and_integer_conversions() {
    assert_eq!(convert(Type::Bool, Const::f32(f32::NAN)), Some(Const::bool(true)));
    assert_eq!(convert(Type::Bool, Const::f32(-0.0)), Some(Const::bool(false)));
    assert_eq!(convert(Type::F32, Const::bool(true)), Some(Const::f32(1.0)));
    assert_eq!(convert(Type::U32, Const::i32(-1)), Some(Const::u32(u32::MAX)));
    assert_eq!(convert(Type::I64, Const::i32(-1)), Some(Const::int(Type::I64, -1)));
    assert_eq!(
        convert(Type::F32, Const::int(Type::U64, -1)),
        Some(Const::f32(18446744073709551616.0))
    );
}

/// 1, its neighbours, ties, the largest and smallest numbers, and numbers that are too large.
#[test]
fn f16_rounds_to_nearest_even() {
    let cases = [
        (1.0, 0x3c00),
        (1.0 + 1.0 / 2048.0, 0x3c00),
        (1.0 + 3.0 / 2048.0, 0x3c02),
        (-2.0, 0xc000),
        (65519.0, 0x7bff),
        (5.960_464_5e-8, 1),
        (2.980_232_2e-8, 0),
        (6.1e-5, 0x3ff),
        (6.1035156e-5, 0x400),
        (6.103_5e-5, 0x400),
    ];
    for (number, bits) in cases {
        assert_eq!(convert(Type::F16, Const::f32(number)), Some(f16(bits)), "of {number}");
    }
    assert_eq!(
        convert(Type::F16, Const::f32(65520.0)),
        None,
        "infinity or the largest f16, depending on the target"
    );
    for bits in (0..0x7c00).chain(0x8000..0xfc00) {
        let wide = convert(Type::F32, f16(bits)).expect("a number");
        assert_eq!(convert(Type::F16, wide), Some(f16(bits)));
    }
}

#[test]
fn target_dependent_operations_are_not_folded() {
    let (zero, minus) = (Const::f32(0.0), Const::f32(-0.0));
    assert_eq!(binary(BinaryOp::Min, zero, minus), None);
    assert_eq!(binary(BinaryOp::Div, zero, zero), None);
    assert_eq!(unary(UnaryOp::Sqrt, Const::f32(-1.0)), None);
    assert_eq!(unary(UnaryOp::Exp, zero), None);
    assert_eq!(binary(BinaryOp::Pow, zero, zero), None);
    let fma = |a: f32, b: f32, c: f32| {
        let inst = Inst::Fma(Value(0), Value(1), Value(2));
        eval(Type::F32, &inst, |value| Some(Const::f32([a, b, c][value.index()])))
    };
    assert_eq!(fma(2.0, 3.0, 1.0), Some(Const::f32(7.0)));
    let near = 1.0 + 3.0 * f32::EPSILON;
    assert_eq!(fma(near, near, -1.0), None, "fused and unfused results differ");
}

#[test]
fn folding_floats_handles_nan() {
    let (nan, one) = (Const::f32(f32::NAN), Const::f32(1.0));
    assert_eq!(binary(BinaryOp::Min, nan, one), Some(one));
    assert_eq!(binary(BinaryOp::Eq, nan, nan), Some(Const::bool(false)));
    assert_eq!(binary(BinaryOp::Ne, nan, nan), Some(Const::bool(true)));
    assert_eq!(binary(BinaryOp::Ge, nan, one), Some(Const::bool(false)));
    assert_eq!(unary(UnaryOp::IsNan, nan), Some(Const::bool(true)));
    assert_eq!(unary(UnaryOp::Round, Const::f32(2.5)), Some(Const::f32(2.0)));
    assert_eq!(binary(BinaryOp::Div, one, Const::f32(3.0)), Some(Const::f32(1.0 / 3.0)));
}
