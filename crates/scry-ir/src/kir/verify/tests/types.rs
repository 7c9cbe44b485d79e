//! Rules about types.

use super::support::{BUFFER, accepted, of, operands, refused, said, takes};
use crate::kir::{
    BinaryOp, Builtin, Const, Extent, Inst, Place, Reduction, ShuffleSource, SubgroupOp, Type,
    UnaryOp, Var,
};

#[test]
fn statements_check_types() {
    refused("`v0 = %8`: v0 takes u32, and gets f32", |b, v| b.set(Var(0), of(v, Type::F32)));
    refused("`v5 = %4`: there is no variable v5", |b, v| b.set(Var(5), of(v, Type::U32)));
    refused("`if %4`: the condition takes bool, and gets u32", |b, v| {
        b.if_then(of(v, Type::U32), |_| ());
    });
    refused("`store binding1[0] = %4, %3`: the store takes u32, and gets i32", |b, v| {
        b.store(Place::new(BUFFER, None, 4, 0), vec![of(v, Type::U32), of(v, Type::I32)]);
    });
}

#[test]
fn constants_fit_their_type() {
    refused("`%10: u16 = 65536`: 0x10000 has more bits than a u16", |b, _| {
        b.constant(Const { ty: Type::U16, bits: 0x1_0000 });
    });
    refused("`%10: i32 = 1`: the result is u32, not i32", |b, _| {
        b.value(Type::I32, Inst::Const(Const::u32(1)));
    });
    accepted(|b, _| {
        b.constant(Const { ty: Type::U64, bits: u64::MAX });
    });
}

#[test]
fn builtins_are_u32_along_three_axes() {
    refused("`%10: u32 = local_id.3`: there is no axis 3", |b, _| {
        b.builtin(Builtin::LocalId(3));
    });
    refused("`%10: i32 = subgroup_size`: the result is u32, not i32", |b, _| {
        b.value(Type::I32, Inst::Builtin(Builtin::SubgroupSize));
    });
}

const FLOATS: [Type; 3] = [Type::F16, Type::F32, Type::F64];

#[test]
fn functions_of_one_operand_check_types() {
    use Type::{Bool, F32, I16, I32, I64, U16, U32, U64};
    let takes_one = |op| operands(|a| Inst::Unary(op, a));
    assert_eq!(takes_one(UnaryOp::Neg), Type::ALL[1..]);
    assert_eq!(takes_one(UnaryOp::Not), [Bool, I16, U16, I32, U32, I64, U64]);
    assert_eq!(takes_one(UnaryOp::Abs), [&[I16, I32, I64][..], &FLOATS].concat());
    assert_eq!(takes_one(UnaryOp::CountOnes), [I16, U16, I32, U32, I64, U64]);
    assert_eq!(takes_one(UnaryOp::QuantizeF16), [F32]);
    for op in [UnaryOp::Sin, UnaryOp::Floor, UnaryOp::IsNan, UnaryOp::FrexpExponent] {
        assert_eq!(takes_one(op), FLOATS, "{op:?}");
    }
    refused("`%10: f32 = is_nan %8`: no `IsNan` takes f32 and gives f32", |b, v| {
        b.value(F32, Inst::Unary(UnaryOp::IsNan, of(v, F32)));
    });
    refused(
        "`%10: f32 = frexp_exponent %8`: no `FrexpExponent` takes f32 and gives f32",
        |b, v| {
            b.value(F32, Inst::Unary(UnaryOp::FrexpExponent, of(v, F32)));
        },
    );
}

#[test]
fn functions_of_two_operands_check_types() {
    use Type::{Bool, F32, I16, I32, I64, U16, U32, U64};
    let takes_both = |op| operands(|a| Inst::Binary(op, a, a));
    assert_eq!(takes_both(BinaryOp::Add), Type::ALL[1..]);
    assert_eq!(takes_both(BinaryOp::Lt), Type::ALL[1..]);
    assert_eq!(takes_both(BinaryOp::Eq), Type::ALL);
    assert_eq!(takes_both(BinaryOp::Xor), [Bool, I16, U16, I32, U32, I64, U64]);
    assert_eq!(takes_both(BinaryOp::Pow), FLOATS);
    assert_eq!(takes_both(BinaryOp::Dot4I8), [U32]);
    for (op, types, fine) in [
        (BinaryOp::Shl, [I64, U32, I64], true),
        (BinaryOp::Shl, [I64, I64, I64], false),
        (BinaryOp::Shr, [F32, U32, F32], false),
        (BinaryOp::Ldexp, [F32, I32, F32], true),
        (BinaryOp::Ldexp, [F32, U32, F32], false),
        (BinaryOp::Add, [U32, I32, U32], false),
        (BinaryOp::Add, [U32, U32, I32], false),
        (BinaryOp::Eq, [U32, U32, U32], false),
        (BinaryOp::Dot4U8, [U32, U32, I32], false),
    ] {
        assert_eq!(takes(|a, b| Inst::Binary(op, a, b), types), fine, "{op:?} {types:?}");
    }
    refused("`%10: u32 = mul %4, %8`: no `Mul` takes u32, f32 and gives u32", |b, v| {
        b.binary(BinaryOp::Mul, of(v, U32), of(v, F32));
    });
}

#[test]
fn other_pure_instructions_check_types() {
    use Type::{Bool, F16, F32, I32, U16, U32};
    let fma = |a, b| Inst::Fma(a, b, a);
    let select = |condition, a| Inst::Select(condition, a, a);
    for (fine, found) in [
        (true, takes(fma, [F32, F32, F32])),
        (false, takes(fma, [F32, F16, F32])),
        (false, takes(fma, [U32, U32, U32])),
        (false, takes(fma, [F32, F32, F16])),
        (true, takes(select, [Bool, F32, F32])),
        (false, takes(select, [U32, F32, F32])),
        (false, takes(select, [Bool, F32, U32])),
        (true, takes(|a, _| Inst::Convert(a), [F32, F32, U16])),
        (false, takes(|a, _| Inst::Convert(a), [F32, F32, F32])),
        (true, takes(|a, _| Inst::Bitcast(a), [F32, F32, I32])),
        (false, takes(|a, _| Inst::Bitcast(a), [F32, F32, U16])),
        (false, takes(|a, _| Inst::Bitcast(a), [F32, F32, F32])),
    ] {
        assert_eq!(fine, found);
    }
    refused("`%10: f32 = v0`: the result is u32, not f32", |b, _| {
        b.value(F32, Inst::Get(Var(0)));
    });
    refused("`%10: u32 = v1`: there is no variable v1", |b, _| {
        b.value(U32, Inst::Get(Var(1)));
    });
}

#[test]
fn subgroup_operations_check_types() {
    use Type::{Bool, F32, I32, U32};
    let ballot = |word| move |value, _| Inst::Subgroup(SubgroupOp::Ballot { value, word });
    let reduce =
        |op| move |value, _| Inst::Subgroup(SubgroupOp::Reduce { op, extent: Extent::All, value });
    let quad = |by| {
        move |value, _| {
            Inst::Subgroup(SubgroupOp::Shuffle { source: ShuffleSource::QuadXor(by), value })
        }
    };
    let lane =
        |value, by| Inst::Subgroup(SubgroupOp::Shuffle { source: ShuffleSource::Lane(by), value });
    for (nth, (fine, found)) in [
        (true, takes(ballot(3), [Bool, Bool, U32])),
        (false, takes(ballot(4), [Bool, Bool, U32])),
        (false, takes(ballot(0), [U32, U32, U32])),
        (false, takes(ballot(0), [Bool, Bool, I32])),
        (true, takes(reduce(Reduction::Add), [F32, F32, F32])),
        (false, takes(reduce(Reduction::Add), [Bool, Bool, Bool])),
        (true, takes(reduce(Reduction::And), [Bool, Bool, Bool])),
        (false, takes(reduce(Reduction::And), [F32, F32, F32])),
        (false, takes(reduce(Reduction::Max), [F32, F32, U32])),
        (true, takes(lane, [F32, U32, F32])),
        (false, takes(lane, [F32, I32, F32])),
        (false, takes(lane, [F32, U32, U32])),
        (true, takes(quad(3), [F32, F32, F32])),
        (false, takes(quad(0), [F32, F32, F32])),
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(fine, found, "case {nth}");
    }
}

#[test]
fn products_of_matrices_check_types() {
    use Type::{F16, F32, F64, I32};
    let product = |first| {
        move |factor, sum| Inst::MultiplyFragments {
            a: [first, factor, factor, factor],
            b: [factor; 2],
            c: [sum; 4],
        }
    };
    for (fine, types) in [
        (true, [F16, F16, F16]),
        (true, [F16, F32, F32]),
        (true, [F32, F32, F32]),
        (false, [F32, F16, F16]),
        (false, [F16, F32, F16]),
        (false, [F64, F64, F64]),
        (false, [I32, I32, I32]),
    ] {
        let found = said(|b, v| {
            let [factor, sum] = [of(v, types[0]), of(v, types[1])];
            if types[1] == types[2] {
                b.multiply_fragments([factor; 4], [factor; 2], [sum; 4]);
            } else {
                b.value(types[2], product(factor)(factor, sum));
            }
        });
        assert_eq!(fine, found.is_ok(), "{types:?}");
    }
    refused(
        "`%10, %11, %12, %13: f32 = multiply_fragments %8, %7, %7, %7 by %7, %7 to %8, %8, %8, \
         %8`: a factor takes f32, and gets f16",
        |b, v| {
            let (half, float) = (of(v, F16), of(v, F32));
            b.value(F32, product(float)(half, float));
        },
    );
    refused(
        "`%10, %11, %12, %13: f32 = multiply_fragments %8, %8, %8, %8 by %8, %8 to %8, %8, %8, \
         %8`: %11 is not `extra 1 of %10`",
        |b, v| {
            b.value(F32, product(of(v, F32))(of(v, F32), of(v, F32)));
        },
    );
}
