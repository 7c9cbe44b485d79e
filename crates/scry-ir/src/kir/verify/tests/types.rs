//! Tests of the rules of types.

use super::support::{
    BUFFER, assert_error, assert_valid, is_valid, valid_operands, value_of, verify_built,
};
use crate::kir::{
    BinaryOp, Builtin, Const, GroupOperation, Inst, Place, Reduction, ShuffleSource, SubgroupOp,
    Type, UnaryOp, Var,
};

#[test]
fn statements_check_types() {
    assert_error("`v0 = %8`: the value of v0 must be u32, but is f32", |b, v| {
        b.set(Var(0), value_of(v, Type::F32))
    });
    assert_error("`v5 = %4`: variable v5 is not declared", |b, v| {
        b.set(Var(5), value_of(v, Type::U32))
    });
    assert_error("`if %4`: the condition must be bool, but is u32", |b, v| {
        b.if_then(value_of(v, Type::U32), |_| ());
    });
    assert_error("`store binding1[0] = %4, %3`: a stored value must be u32, but is i32", |b, v| {
        b.store(
            Place::new(BUFFER, None, 4, 0),
            vec![value_of(v, Type::U32), value_of(v, Type::I32)],
        );
    });
}

#[test]
fn constants_fit_their_type() {
    assert_error("`%10: u16 = 65536`: 0x10000 has more bits than a u16", |b, _| {
        b.constant(Const { ty: Type::U16, bits: 0x1_0000 });
    });
    assert_error(
        "`%10: i32 = 1`: the instruction results in u32, but the value is declared i32",
        |b, _| {
            b.value(Type::I32, Inst::Const(Const::u32(1)));
        },
    );
    assert_valid(|b, _| {
        b.constant(Const { ty: Type::U64, bits: u64::MAX });
    });
}

#[test]
fn builtins_are_u32_along_three_axes() {
    assert_error("`%10: u32 = local_id.3`: there is no axis 3", |b, _| {
        b.builtin(Builtin::LocalId(3));
    });
    assert_error(
        "`%10: i32 = subgroup_size`: the instruction results in u32, but the value is declared i32",
        |b, _| {
            b.value(Type::I32, Inst::Builtin(Builtin::SubgroupSize));
        },
    );
}

const FLOATS: [Type; 3] = [Type::F16, Type::F32, Type::F64];

#[test]
fn functions_of_one_operand_check_types() {
    use Type::{Bool, F32, I16, I32, I64, U16, U32, U64};
    let operand_types = |op| valid_operands(|a| Inst::Unary(op, a));
    assert_eq!(operand_types(UnaryOp::Neg), Type::ALL[1..]);
    assert_eq!(operand_types(UnaryOp::Not), [Bool, I16, U16, I32, U32, I64, U64]);
    assert_eq!(operand_types(UnaryOp::Abs), [&[I16, I32, I64][..], &FLOATS].concat());
    assert_eq!(operand_types(UnaryOp::CountOnes), [I16, U16, I32, U32, I64, U64]);
    assert_eq!(operand_types(UnaryOp::QuantizeF16), [F32]);
    for op in [UnaryOp::Sin, UnaryOp::Floor, UnaryOp::IsNan, UnaryOp::FrexpExponent] {
        assert_eq!(operand_types(op), FLOATS, "{op:?}");
    }
    assert_error("`%10: f32 = is_nan %8`: `IsNan` is not defined for (f32) -> f32", |b, v| {
        b.value(F32, Inst::Unary(UnaryOp::IsNan, value_of(v, F32)));
    });
    assert_error(
        "`%10: f32 = frexp_exponent %8`: `FrexpExponent` is not defined for (f32) -> f32",
        |b, v| {
            b.value(F32, Inst::Unary(UnaryOp::FrexpExponent, value_of(v, F32)));
        },
    );
}

#[test]
fn functions_of_two_operands_check_types() {
    use Type::{Bool, F32, I16, I32, I64, U16, U32, U64};
    let operand_types = |op| valid_operands(|a| Inst::Binary(op, a, a));
    assert_eq!(operand_types(BinaryOp::Add), Type::ALL[1..]);
    assert_eq!(operand_types(BinaryOp::Lt), Type::ALL[1..]);
    assert_eq!(operand_types(BinaryOp::Eq), Type::ALL);
    assert_eq!(operand_types(BinaryOp::Xor), [Bool, I16, U16, I32, U32, I64, U64]);
    assert_eq!(operand_types(BinaryOp::Pow), FLOATS);
    assert_eq!(operand_types(BinaryOp::Dot4I8), [U32]);
    for (op, types, expected) in [
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
        assert_eq!(is_valid(|a, b| Inst::Binary(op, a, b), types), expected, "{op:?} {types:?}");
    }
    assert_error("`%10: u32 = mul %4, %8`: `Mul` is not defined for (u32, f32) -> u32", |b, v| {
        b.binary(BinaryOp::Mul, value_of(v, U32), value_of(v, F32));
    });
}

#[test]
fn other_pure_instructions_check_types() {
    use Type::{Bool, F16, F32, I32, U16, U32};
    let fma = |a, b| Inst::Fma(a, b, a);
    let select = |condition, a| Inst::Select(condition, a, a);
    for (expected, found) in [
        (true, is_valid(fma, [F32, F32, F32])),
        (false, is_valid(fma, [F32, F16, F32])),
        (false, is_valid(fma, [U32, U32, U32])),
        (false, is_valid(fma, [F32, F32, F16])),
        (true, is_valid(select, [Bool, F32, F32])),
        (false, is_valid(select, [U32, F32, F32])),
        (false, is_valid(select, [Bool, F32, U32])),
        (true, is_valid(|a, _| Inst::Convert(a), [F32, F32, U16])),
        (false, is_valid(|a, _| Inst::Convert(a), [F32, F32, F32])),
        (true, is_valid(|a, _| Inst::Bitcast(a), [F32, F32, I32])),
        (false, is_valid(|a, _| Inst::Bitcast(a), [F32, F32, U16])),
        (false, is_valid(|a, _| Inst::Bitcast(a), [F32, F32, F32])),
    ] {
        assert_eq!(expected, found);
    }
    assert_error(
        "`%10: f32 = v0`: the instruction results in u32, but the value is declared f32",
        |b, _| {
            b.value(F32, Inst::Get(Var(0)));
        },
    );
    assert_error("`%10: u32 = v1`: variable v1 is not declared", |b, _| {
        b.value(U32, Inst::Get(Var(1)));
    });
}

#[test]
fn subgroup_operations_check_types() {
    use Type::{Bool, F32, I32, U32};
    let ballot = |word| move |value, _| Inst::Subgroup(SubgroupOp::Ballot { value, word });
    let reduce = |op| {
        move |value, _| {
            Inst::Subgroup(SubgroupOp::Reduce { op, group: GroupOperation::Reduce, value })
        }
    };
    let quad = |by| {
        move |value, _| {
            Inst::Subgroup(SubgroupOp::Shuffle { source: ShuffleSource::QuadXor(by), value })
        }
    };
    let lane =
        |value, by| Inst::Subgroup(SubgroupOp::Shuffle { source: ShuffleSource::Lane(by), value });
    for (index, (expected, found)) in [
        (true, is_valid(ballot(3), [Bool, Bool, U32])),
        (false, is_valid(ballot(4), [Bool, Bool, U32])),
        (false, is_valid(ballot(0), [U32, U32, U32])),
        (false, is_valid(ballot(0), [Bool, Bool, I32])),
        (true, is_valid(reduce(Reduction::Add), [F32, F32, F32])),
        (false, is_valid(reduce(Reduction::Add), [Bool, Bool, Bool])),
        (true, is_valid(reduce(Reduction::And), [Bool, Bool, Bool])),
        (false, is_valid(reduce(Reduction::And), [F32, F32, F32])),
        (false, is_valid(reduce(Reduction::Max), [F32, F32, U32])),
        (true, is_valid(lane, [F32, U32, F32])),
        (false, is_valid(lane, [F32, I32, F32])),
        (false, is_valid(lane, [F32, U32, U32])),
        (true, is_valid(quad(3), [F32, F32, F32])),
        (false, is_valid(quad(0), [F32, F32, F32])),
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(expected, found, "case {index}");
    }
}

#[test]
fn products_of_matrices_check_types() {
    use Type::{F16, F32, F64, I32};
    let product = |first| {
        move |operand, accumulator| Inst::MultiplyFragments {
            a: [first, operand, operand, operand],
            b: [operand; 2],
            c: [accumulator; 4],
        }
    };
    for (expected, types) in [
        (true, [F16, F16, F16]),
        (true, [F16, F32, F32]),
        (true, [F32, F32, F32]),
        (false, [F32, F16, F16]),
        (false, [F16, F32, F16]),
        (false, [F64, F64, F64]),
        (false, [I32, I32, I32]),
    ] {
        let found = verify_built(|b, v| {
            let [operand, accumulator] = [value_of(v, types[0]), value_of(v, types[1])];
            if types[1] == types[2] {
                b.multiply_fragments([operand; 4], [operand; 2], [accumulator; 4]);
            } else {
                b.value(types[2], product(operand)(operand, accumulator));
            }
        });
        assert_eq!(expected, found.is_ok(), "{types:?}");
    }
    assert_error(
        "`%10, %11, %12, %13: f32 = multiply_fragments %8, %7, %7, %7 by %7, %7 to %8, %8, %8, \
         %8`: an operand must be f32, but is f16",
        |b, v| {
            let (f16, f32) = (value_of(v, F16), value_of(v, F32));
            b.value(F32, product(f32)(f16, f32));
        },
    );
    assert_error(
        "`%10, %11, %12, %13: f32 = multiply_fragments %8, %8, %8, %8 by %8, %8 to %8, %8, %8, \
         %8`: %11 is not `extra 1 of %10`",
        |b, v| {
            b.value(F32, product(value_of(v, F32))(value_of(v, F32), value_of(v, F32)));
        },
    );
}
