//! Tests of instruction selection where several sequences are possible.

use scry_ir::kir::{BinaryOp, Builder, Const, Type, UnaryOp, Value};

use super::support::{self, Source};
use crate::target::Target;

/// Asserts the instructions of a kernel between loading its operands and storing the result.
fn assert_instructions(
    target: Target,
    sources: &[Source],
    make: &dyn Fn(&mut Builder, &[Value]) -> Value,
    expected: &[&str],
) {
    let lines = support::lines(&support::kernel(sources, make), target);
    let lines: Vec<String> = lines.iter().map(|line| line.to_string().trim().to_owned()).collect();
    let loads_and_stores = ["ld.", "cvta.", "st.", "ret"];
    let found: Vec<&String> = lines
        .iter()
        .filter(|line| !loads_and_stores.iter().any(|name| line.starts_with(name)))
        .collect();
    assert_eq!(found, expected);
}

/// Asserts the instructions of a binary operation of type `ty` on two loaded operands, or on a
/// loaded operand and a constant.
fn assert_binary(op: BinaryOp, ty: Type, second: Option<Const>, expected: &[&str]) {
    let second = second.map_or(Source::Loaded(ty), Source::Constant);
    assert_instructions(
        Target::SM_75,
        &[Source::Loaded(ty), second],
        &|b, x| b.binary(op, x[0], x[1]),
        expected,
    );
}

fn assert_conversion(from: Type, to: Type, expected: &[&str]) {
    assert_instructions(
        Target::SM_75,
        &[Source::Loaded(from)],
        &|b, x| b.convert(to, x[0]),
        expected,
    );
}

#[test]
fn division_by_registers_handles_zero() {
    assert_binary(
        BinaryOp::Div,
        Type::U32,
        None,
        &["setp.eq.u32 %p0, %r1, 0;", "selp.b32 %r2, 1, %r1, %p0;", "div.u32 %r3, %r0, %r2;"],
    );
    assert_binary(
        BinaryOp::Div,
        Type::I32,
        None,
        &[
            "setp.eq.s32 %p0, %r0, -2147483648;",
            "setp.eq.and.s32 %p1, %r1, -1, %p0;",
            "setp.eq.or.s32 %p2, %r1, 0, %p1;",
            "selp.b32 %r2, 1, %r1, %p2;",
            "div.s32 %r3, %r0, %r2;",
        ],
    );
}

#[test]
fn division_by_constants_uses_multiplication() {
    let unsigned = |number| Some(Const::u32(number));
    let (div, rem) = (BinaryOp::Div, BinaryOp::Rem);
    assert_binary(div, Type::U32, unsigned(8), &["shr.u32 %r1, %r0, 3;"]);
    assert_binary(rem, Type::U32, unsigned(8), &["and.b32 %r1, %r0, 7;"]);
    let ten = ["mul.hi.u32 %r1, %r0, 3435973837;", "shr.u32 %r2, %r1, 3;"];
    assert_binary(div, Type::U32, unsigned(10), &ten);
    assert_binary(div, Type::U32, unsigned(0), &[]);
    assert_binary(
        div,
        Type::F64,
        Some(Const::f64(4.0)),
        &["mul.rn.f64 %d3, %d2, 0d3FD0000000000000;"],
    );
}

#[test]
fn shift_amounts_wrap_at_the_width() {
    let by = |ty, number: Option<u32>| {
        [
            Source::Loaded(ty),
            number.map_or(Source::Loaded(Type::U32), |n| Source::Constant(Const::u32(n))),
        ]
    };
    let shl = |b: &mut Builder, x: &[Value]| b.binary(BinaryOp::Shl, x[0], x[1]);
    let shr = |b: &mut Builder, x: &[Value]| b.binary(BinaryOp::Shr, x[0], x[1]);
    let target = Target::SM_75;
    assert_instructions(target, &by(Type::I32, Some(37)), &shl, &["shl.b32 %r1, %r0, 5;"]);
    assert_instructions(target, &by(Type::U32, None), &shl, &["shf.l.wrap.b32 %r2, 0, %r0, %r1;"]);
    assert_instructions(target, &by(Type::U32, None), &shr, &["shf.r.wrap.b32 %r2, %r0, 0, %r1;"]);
    let masked = ["and.b32 %r2, %r1, 31;", "shr.s32 %r3, %r0, %r2;"];
    assert_instructions(target, &by(Type::I32, None), &shr, &masked);
}

#[test]
fn float_division_is_approximate_where_allowed() {
    assert_binary(BinaryOp::Div, Type::F32, None, &["div.full.f32 %r2, %r0, %r1;"]);
    assert_binary(BinaryOp::Div, Type::F64, None, &["div.rn.f64 %d4, %d2, %d3;"]);
}

#[test]
fn old_targets_compute_f16_min_in_f32() {
    let min = |b: &mut Builder, x: &[Value]| b.binary(BinaryOp::Min, x[0], x[1]);
    let operands = [Source::Loaded(Type::F16); 2];
    assert_instructions(Target::SM_80, &operands, &min, &["min.f16 %h2, %h0, %h1;"]);
    let widened = [
        "cvt.f32.f16 %r0, %h0;",
        "cvt.f32.f16 %r1, %h1;",
        "min.f32 %r2, %r0, %r1;",
        "cvt.rn.f16.f32 %h2, %r2;",
    ];
    assert_instructions(Target::SM_75, &operands, &min, &widened);
}

#[test]
fn conversions_to_integers_saturate() {
    let (float, double) = (Type::F32, Type::F64);
    let narrow = ["cvt.rzi.s32.f32 %r1, %r0;", "min.s32 %r2, %r1, 2147483520;"];
    assert_conversion(float, Type::I32, &narrow);
    let nan = ["setp.nan.f64 %p0, %d2, %d2;", "selp.b32 %r1, 0, %r0, %p0;"];
    assert_conversion(double, Type::I32, &[&["cvt.rzi.s32.f64 %r0, %d2;"], &nan[..]].concat());
}

#[test]
fn sign_keeps_signed_zeros() {
    let expected = [
        "and.b32 %r1, %r0, 2147483648;",
        "or.b32 %r2, %r1, 1065353216;",
        "setp.ne.f32 %p0, %r0, 0f00000000;",
        "selp.b32 %r3, %r2, %r0, %p0;",
    ];
    let sign = |b: &mut Builder, x: &[Value]| b.unary(UnaryOp::Sign, x[0]);
    assert_instructions(Target::SM_75, &[Source::Loaded(Type::F32)], &sign, &expected);
}

#[test]
fn extremum_that_keeps_nan_is_one_instruction() {
    let uses = |target, op, swapped: bool, name: &str| {
        let make = |b: &mut Builder, x: &[Value]| {
            let extremum = b.binary(op, x[0], x[1]);
            let (first, second) = if swapped { (x[1], x[1]) } else { (x[0], x[1]) };
            let is_nan = b.unary(UnaryOp::IsNan, second);
            let inner = b.select(is_nan, x[1], extremum);
            let is_nan = b.unary(UnaryOp::IsNan, first);
            b.select(is_nan, x[0], inner)
        };
        let sources = [Source::Loaded(Type::F32), Source::Loaded(Type::F32)];
        let lines = support::lines(&support::kernel(&sources, &make), target);
        lines.iter().any(|line| line.to_string().contains(name))
    };
    assert!(uses(Target::SM_80, BinaryOp::Max, false, "max.NaN.f32"));
    assert!(uses(Target::SM_80, BinaryOp::Min, false, "min.NaN.f32"));
    assert!(!uses(Target::SM_75, BinaryOp::Max, false, "NaN"));
    assert!(!uses(Target::SM_80, BinaryOp::Max, true, "NaN"), "it is not NaN of the first operand");
}
