//! Tests of all operations of integers and bools, and of those of floats with exact results.

use scry_ir::kir::{BinaryOp, Builder, Const, Inst, Type, UnaryOp, Value};

use super::support::{self, Source};
use crate::asm::Line;
use crate::target::Target;

const FLOATS: [Type; 3] = [Type::F16, Type::F32, Type::F64];

fn unary_ops(ty: Type) -> &'static [UnaryOp] {
    use UnaryOp::*;
    match ty {
        Type::Bool => &[Not],
        Type::F32 => &[Neg, Abs, Sign, IsNan, IsInf, QuantizeF16],
        _ if ty.is_float() => &[Neg, Abs, Sign, IsNan, IsInf],
        _ if ty.is_signed() => &[
            Neg,
            Abs,
            Sign,
            Not,
            CountOnes,
            LeadingZeros,
            TrailingZeros,
            ReverseBits,
            FirstLeadingBit,
            FirstTrailingBit,
        ],
        _ => &[
            Neg,
            Not,
            CountOnes,
            LeadingZeros,
            TrailingZeros,
            ReverseBits,
            FirstLeadingBit,
            FirstTrailingBit,
        ],
    }
}

fn binary_ops(ty: Type) -> Vec<BinaryOp> {
    use BinaryOp::*;
    let mut ops = vec![Eq, Ne];
    if ty == Type::Bool || ty.is_integer() {
        ops.extend([And, Or, Xor]);
    }
    if ty != Type::Bool {
        ops.extend([Add, Sub, Mul, Div, Rem, Min, Max, Lt, Le, Gt, Ge]);
    }
    if ty.is_integer() {
        ops.extend([Shl, Shr]);
    }
    if ty == Type::U32 {
        ops.extend([Dot4I8, Dot4U8]);
    }
    ops
}

/// Returns the type of the second operand.
fn second_type(op: BinaryOp, ty: Type) -> Type {
    if matches!(op, BinaryOp::Shl | BinaryOp::Shr) { Type::U32 } else { ty }
}

/// Returns operands of edge cases.
fn edge_cases(ty: Type) -> Vec<Const> {
    let bits: &[u64] = match ty {
        Type::Bool => &[0, 1],
        Type::F16 => &[
            0, 0x8000, 1, 0x8001, 0x3ff, 0x400, 0x3c00, 0xbc00, 0x3e00, 0xc100, 0x4248, 0x5bff,
            0x77ff, 0x7800, 0xf800, 0x7bfe, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00,
        ],
        Type::F32 | Type::F64 => return float_edge_cases(ty),
        _ => &[],
    };
    let numbers = [0, 1, 2, 7, 16, 33, 100];
    let patterns = [0x55aa_1234_8765_4321u64, 0x8000_0001_8000_8001, 0x0001_0000_0001_0000];
    let mut all: Vec<Const> = bits.iter().map(|bits| Const { ty, bits: *bits }).collect();
    if ty.is_integer() {
        let min = if ty.is_signed() { -1i64 << (ty.bits() - 1) } else { 0 };
        let max = !(-1i64 << (ty.bits() - 1));
        all.extend(numbers.iter().flat_map(|n| [Const::int(ty, *n), Const::int(ty, -n)]));
        all.extend(patterns.iter().map(|bits| Const::int(ty, *bits as i64)));
        all.extend([min, min + 1, max, max - 1].map(|n| Const::int(ty, n)));
        all.sort_unstable_by_key(|constant| constant.bits);
        all.dedup();
    }
    all
}

/// Returns a sample of the edge cases, for pairs of operands.
fn sample(ty: Type) -> Vec<Const> {
    let all = edge_cases(ty);
    // Odd, since positive and negative numbers alternate for some types.
    let step = all.len().div_ceil(24) | 1;
    all.into_iter().step_by(step).collect()
}

fn float_edge_cases(ty: Type) -> Vec<Const> {
    let powers = [7, 8, 15, 16, 31, 32, 63, 64].map(|exponent| 2f64.powi(exponent));
    let integers = [0.0, 1.0, 2.0, 3.0, 7.0, 10.0, 100.0, 65504.0, 65519.9, 65520.0, 1e30];
    let fractions = [0.1, 0.5, 0.9, 1.5, 2.5, 1e-5, 6e-8, 2.9e-8, 3e-8, 1e-30, 1e-40];
    let special = [f64::INFINITY, f64::NAN];
    let below_powers = powers.map(|power| match ty {
        Type::F32 => f64::from((power as f32).next_down()),
        _ => power.next_down(),
    });
    let above_powers = powers.map(|power| power + 0.5);
    let all = powers
        .iter()
        .chain(&integers)
        .chain(&fractions)
        .chain(&special)
        .chain(&below_powers)
        .chain(&above_powers);
    all.flat_map(|x| [*x, -x])
        .map(|x| match ty {
            Type::F32 => Const::f32(x as f32),
            _ => Const::f64(x),
        })
        .collect()
}

/// Returns whether two results are the same. All NaNs count as the same, and so do zeros of both
/// signs.
fn is_same(ty: Type, a: u64, b: u64) -> bool {
    let number = |bits: u64| match ty {
        Type::F16 => half::f16::from_bits(bits as u16).to_f64(),
        Type::F32 => f64::from(f32::from_bits(bits as u32)),
        _ => f64::from_bits(bits),
    };
    let (x, y) = (number(a), number(b));
    a == b || ty.is_float() && (x == y || x.is_nan() && y.is_nan())
}

type Make<'a> = &'a dyn Fn(&mut Builder, &[Value]) -> Value;

/// Asserts that code returns the same as the IR's constant folding, with all operands loaded from
/// memory, and with the last one constant. Returns the number of comparisons.
fn assert_agrees(what: &str, types: &[Type], make: Make<'_>) -> usize {
    let mut compared = 0;
    let reads: Vec<Source> = types.iter().map(|ty| Source::Loaded(*ty)).collect();
    let code = compile(&reads, make);
    let last = types[types.len() - 1];
    for last in if types.len() > 1 { sample(last) } else { edge_cases(last) } {
        let mut sources = reads.clone();
        *sources.last_mut().expect("there are operands") = Source::Constant(last);
        let code = [code.clone(), compile(&sources, make)].concat();
        for operands in operands(types, last) {
            let Some(expected) = expected(&operands, make) else { continue };
            let bits: Vec<u64> = operands.iter().map(|operand| operand.bits).collect();
            for lines in &code {
                let result = support::run(lines, &bits);
                assert!(
                    is_same(expected.ty, result, expected.bits),
                    "{what} of {operands:x?} is {result:#x}, not {expected:x?}: {lines:#?}"
                );
            }
            compared += 1;
        }
    }
    compared
}

/// Returns lists of operands that end with `last`.
fn operands(types: &[Type], last: Const) -> Vec<Vec<Const>> {
    match types {
        [first, _] => sample(*first).into_iter().map(|first| vec![first, last]).collect(),
        _ => vec![vec![last]],
    }
}

/// Returns the code of a kernel for the oldest and the newest target, once if it is the same.
fn compile(sources: &[Source], make: Make<'_>) -> Vec<Vec<Line>> {
    let kir = support::kernel(sources, make);
    let code = [Target::SM_75, Target::SM_90].map(|target| support::lines(&kir, target));
    if code[0] == code[1] { vec![code[0].clone()] } else { code.to_vec() }
}

/// Returns the result of the IR's constant folding, with the type in memory.
fn expected(operands: &[Const], make: Make<'_>) -> Option<Const> {
    let sources: Vec<Source> = operands.iter().map(|number| Source::Constant(*number)).collect();
    let kir = support::kernel(&sources, make);
    let stored = kir.values.last().expect("there is a result").ty;
    support::folded(operands, make).map(|bits| Const { ty: stored, bits })
}

#[test]
fn unary_operations_match_the_ir() {
    for ty in Type::ALL {
        for op in unary_ops(ty) {
            let what = format!("{op:?} {ty}");
            assert!(assert_agrees(&what, &[ty], &|b, x| b.unary(*op, x[0])) > 1, "{what}");
        }
    }
}

#[test]
fn binary_operations_match_the_ir() {
    for ty in Type::ALL {
        for op in binary_ops(ty) {
            let what = format!("{op:?} {ty}");
            let compared =
                assert_agrees(&what, &[ty, second_type(op, ty)], &|b, x| b.binary(op, x[0], x[1]));
            // Remainders of floats are not folded, so that there is nothing to compare with.
            assert!(compared > 1 || ty.is_float() && op == BinaryOp::Rem, "{what}");
        }
    }
}

#[test]
fn conversions_match_the_ir() {
    for from in Type::ALL {
        for to in Type::ALL.into_iter().filter(|to| *to != from) {
            let what = format!("{from} to {to}");
            assert!(assert_agrees(&what, &[from], &|b, x| b.convert(to, x[0])) > 1, "{what}");
        }
    }
}

#[test]
fn tested_operations_of_every_type_assemble() {
    for ty in Type::ALL {
        let kernels =
            [true, false].map(|a| [true, false].map(|b| kernel_with_all_operations(ty, a, b)));
        kernels.iter().flatten().for_each(support::assert_assembles);
    }
}

#[test]
fn binary_operations_with_constants_assemble() {
    for ty in Type::ALL {
        let kir = support::kernel(&[Source::Loaded(ty)], &|b, x| {
            let mut results = Vec::new();
            for op in binary_ops(ty) {
                for number in sample(second_type(op, ty)) {
                    let number = b.constant(number);
                    results.push(b.binary(op, x[0], number));
                }
            }
            xor_all(b, &results)
        });
        support::assert_assembles(&kir);
    }
}

/// Returns a kernel with all operations of a type that this file tests. `first` and `last` are
/// whether the first operand and the others are loaded, rather than constant.
fn kernel_with_all_operations(ty: Type, first: bool, last: bool) -> scry_ir::kir::Kir {
    let number = |ty| *edge_cases(ty).last().expect("there are numbers");
    let source = |read, ty| if read { Source::Loaded(ty) } else { Source::Constant(number(ty)) };
    let sources = [source(first, ty), source(last, ty), source(last, Type::U32)];
    support::kernel(&sources, &|b, x| {
        let mut results: Vec<Value> = unary_ops(ty).iter().map(|op| b.unary(*op, x[0])).collect();
        for op in binary_ops(ty) {
            let by = if second_type(op, ty) == ty { x[1] } else { x[2] };
            results.push(b.binary(op, x[0], by));
        }
        if ty.is_float() {
            results.push(b.fma(x[0], x[1], x[0]));
        }
        let others = Type::ALL.into_iter().filter(|to| *to != ty);
        others.for_each(|to| results.push(b.convert(to, x[0])));
        let same = |to: &Type| *to != ty && to.bits() == ty.bits();
        let others = Type::ALL.into_iter().filter(same);
        others.for_each(|to| results.push(b.value(to, Inst::Bitcast(x[0]))));
        xor_all(b, &results)
    })
}

/// Returns a `u32` that depends on all values.
fn xor_all(b: &mut Builder, values: &[Value]) -> Value {
    let mut sum = b.u32(0);
    for value in values {
        let bits = match b.ty(*value).to_unsigned() {
            ty if ty == b.ty(*value) => *value,
            ty => b.bitcast(ty, *value),
        };
        let word = b.convert(Type::U32, bits);
        sum = b.binary(BinaryOp::Xor, sum, word);
    }
    sum
}

#[test]
fn remainders_of_floats_round_each_step() {
    const PAIRS: [(f32, f32); 8] = [
        (6.0, 3.0),
        (1.0, 0.1),
        (-7.5, 2.0),
        (7.5, -2.0),
        (1e9, 3.7),
        (0.0, 4.0),
        (9.75, 0.5),
        (1e-40, 1e38),
    ];
    let rem = |b: &mut Builder, x: &[Value]| b.binary(BinaryOp::Rem, x[0], x[1]);
    let kir = support::kernel(&[Source::Loaded(Type::F32); 2], &rem);
    let code = support::lines(&kir, Target::SM_90);
    for (x, y) in PAIRS {
        let bits = [u64::from(x.to_bits()), u64::from(y.to_bits())];
        let by = [Source::Loaded(Type::F32), Source::Constant(Const::f32(y))];
        let constant_divisor_code = support::lines(&support::kernel(&by, &rem), Target::SM_90);
        for lines in [&code, &constant_divisor_code] {
            let result = f32::from_bits(support::run(lines, &bits) as u32);
            assert_eq!(result, x - y * (x / y).trunc(), "{x} % {y}");
        }
    }
}

#[test]
fn remainders_keep_the_float_width() {
    let rem = |b: &mut Builder, x: &[Value]| b.binary(BinaryOp::Rem, x[0], x[1]);
    let code_for =
        |ty| support::lines(&support::kernel(&[Source::Loaded(ty); 2], &rem), Target::SM_75);
    let doubles = [1e15f64, 0.7].map(f64::to_bits);
    let expected = 1e15 - 0.7 * (1e15f64 / 0.7).trunc();
    assert_eq!(f64::from_bits(support::run(&code_for(Type::F64), &doubles)), expected);
    // -7.5 % 2 = -1.5
    assert_eq!(support::run(&code_for(Type::F16), &[0xc780, 0x4000]), 0xbe00);
}

#[test]
fn fma_and_bitcasts_are_exact() {
    for ty in FLOATS {
        let make = |b: &mut Builder, x: &[Value]| b.fma(x[0], x[1], x[1]);
        let kir = support::kernel(&[Source::Loaded(ty), Source::Loaded(ty)], &make);
        let code = support::lines(&kir, Target::SM_75);
        let three = [0x4200, 3f32.to_bits().into(), 3f64.to_bits()];
        let twelve = [0x4a00, 12f32.to_bits().into(), 12f64.to_bits()];
        let nth = FLOATS.iter().position(|float| *float == ty).expect("it is a float");
        assert_eq!(support::run(&code, &[three[nth]; 2]), twelve[nth]);
    }
    let one = Source::Constant(Const::f32(1.0));
    let kir = support::kernel(&[one], &|b, x| b.bitcast(Type::U32, x[0]));
    assert_eq!(support::run(&support::lines(&kir, Target::SM_75), &[]), 0x3f80_0000);
}
