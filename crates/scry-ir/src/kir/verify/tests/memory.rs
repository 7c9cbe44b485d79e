//! Tests of the rules of memory accesses.

use super::support::{BUFFER, assert_error, assert_valid, value_of, verify_built};
use crate::kir::{AddressSpace, AtomicOp, Inst, Place, Stmt, Type, Value, Var};

#[test]
fn array_lengths_are_of_buffers() {
    assert_error(
        "`%10: u32 = array_length binding2 from 0 by 4`: binding2 is not declared",
        |b, _| {
            b.array_length(2, 0, 4);
        },
    );
    assert_error("`%10: u32 = array_length binding1 from 0 by 0`: the stride is zero", |b, _| {
        b.array_length(1, 0, 0);
    });
}

/// Verifies a load of two values.
fn load(ty: Type, place: Place) -> Result<(), String> {
    verify_built(|b, _| {
        b.load(ty, place, 2);
    })
}

#[test]
fn accesses_are_aligned_and_in_bounds() {
    let (shared, local) = (AddressSpace::Workgroup(0), AddressSpace::Local(0));
    let at = |space, offset| Place::new(space, None, 4, offset);
    assert_eq!(load(Type::U32, at(shared, 8)), Ok(()));
    assert_eq!(load(Type::F32, at(local, 8)), Ok(()));
    assert_eq!(load(Type::F32, at(AddressSpace::Immediate, 8)), Ok(()));
    assert_eq!(load(Type::F32, at(BUFFER, 1 << 20)), Ok(()));
    let prefix = "`%10, %11: f32 = load ";
    for (place, error) in [
        (at(local, 12), "local0[12]`: the access ends at byte 20, past the 16 bytes of local0"),
        (
            at(AddressSpace::Immediate, 12),
            "immediate[12]`: the access ends at byte 20, past the 16 bytes of immediate",
        ),
        (at(BUFFER, 2), "binding1[2]`: binding1[2] is not a multiple of 4 bytes, the size of f32"),
        (at(shared, 0), "workgroup0[0]`: an element of workgroup0 must be u32, but is f32"),
        (at(AddressSpace::Local(1), 0), "local1[0]`: local1 is not declared"),
        (at(AddressSpace::Binding(2), 0), "binding2[0]`: binding2 is not declared"),
        (
            Place::new(local, Some(Value(4)), 6, 0),
            "local0[%4 * 6]`: local0[%4 * 6] is not a multiple of 4 bytes, the size of f32",
        ),
        (
            Place::new(local, Some(Value(3)), 4, 0),
            "local0[%3 * 4]`: the index must be u32, but is i32",
        ),
    ] {
        assert_eq!(load(Type::F32, place), Err(format!("{prefix}{error}")));
    }
}

#[test]
fn uniform_loads_are_from_workgroup_memory() {
    assert_valid(|b, _| {
        b.workgroup_uniform_load(Type::U32, Place::new(AddressSpace::Workgroup(0), None, 0, 4), 3);
    });
    assert_error(
        "`%10: u32 = workgroup_uniform_load binding1[0]`: binding1 is not workgroup memory",
        |b, _| {
            b.workgroup_uniform_load(Type::U32, Place::new(BUFFER, None, 0, 0), 1);
        },
    );
    assert_error(
        "`%10: u32 = workgroup_uniform_load workgroup0[16]`: the access ends at byte 20, past the \
         16 bytes of workgroup0",
        |b, _| {
            let place = Place::new(AddressSpace::Workgroup(0), None, 0, 16);
            b.workgroup_uniform_load(Type::U32, place, 1);
        },
    );
}

#[test]
fn constant_indices_are_in_bounds() {
    assert_error(
        "`%11: f32 = load local0[%10 * 4]`: the access ends at byte 20, past the 16 bytes of \
         local0",
        |b, _| {
            let four = b.u32(4);
            b.load(Type::F32, Place::new(AddressSpace::Local(0), Some(four), 4, 0), 1);
        },
    );
}

#[test]
fn buffers_and_immediates_check_access() {
    let place = |space| Place::new(space, None, 4, 0);
    assert_error("`%10: bool = load binding1[0]`: binding1 cannot contain bool", |b, _| {
        b.load(Type::Bool, place(BUFFER), 1);
    });
    assert_error("`store binding0[0] = %4`: binding0 is read only", |b, v| {
        b.store(place(AddressSpace::Binding(0)), vec![value_of(v, Type::U32)]);
    });
    assert_error("`store immediate[0] = %4`: immediate is read only", |b, v| {
        b.store(place(AddressSpace::Immediate), vec![value_of(v, Type::U32)]);
    });
}

#[test]
fn read_only_buffers_allow_atomic_loads() {
    let place = |space| Place::new(space, None, 4, 0);
    assert_valid(|b, _| {
        b.atomic(Type::U32, AtomicOp::Load, place(AddressSpace::Binding(0)), None, None);
    });
    assert_error("`%10: u32 = atomic add binding0[0], %4`: binding0 is read only", |b, v| {
        let value = Some(value_of(v, Type::U32));
        b.atomic(Type::U32, AtomicOp::Add, place(AddressSpace::Binding(0)), value, None);
    });
    assert_error("`%10: u32 = atomic load local0[0]`: local0 is not shared", |b, _| {
        b.atomic(Type::U32, AtomicOp::Load, place(AddressSpace::Local(0)), None, None);
    });
}

#[test]
fn one_to_four_values_are_accessed() {
    let place = Place::new(BUFFER, None, 4, 0);
    assert_error("`store binding1[0] = `: 0 values are accessed, not 1 to 4", |b, _| {
        b.store(place, Vec::new());
    });
    assert_error(
        "`%10, %11, %12, %13, %14: u32 = load binding1[0]`: 5 values are accessed, not 1 to 4",
        |b, _| {
            b.load(Type::U32, place, 5);
        },
    );
}

#[test]
fn extra_results_follow_their_load() {
    let inst = Inst::Load { place: Place::new(BUFFER, None, 4, 0), count: 2 };
    assert_error("`%10, %11: u32 = load binding1[0]`: %11 is not `extra 1 of %10`", |b, _| {
        b.value(Type::U32, inst);
    });
    assert_error("`%10, %11: u32 = load binding1[0]`: %11 must be u32, but is f32", |b, _| {
        b.open();
        b.value(Type::U32, inst);
        b.value(Type::F32, Inst::Extra(Value(10), 1));
        let mut block = b.close();
        block.truncate(1);
        block.into_iter().for_each(|stmt| b.push(stmt));
    });
    assert_error(
        "`%11: u32 = extra 1 of %10`: `extra` results have no statement of their own",
        |b, _| {
            let loaded = b.load(Type::U32, Place::new(BUFFER, None, 4, 0), 2);
            b.push(Stmt::Let(loaded[1]));
        },
    );
    assert_valid(|b, _| {
        let loaded = b.load(Type::U32, Place::new(BUFFER, None, 4, 0), 2);
        b.set(Var(0), loaded[1]);
    });
}

#[test]
fn atomics_check_types_operands_and_memory() {
    use AtomicOp::{Add, And, CompareExchange, Exchange, Load, Min};
    let space = AddressSpace::Workgroup(0);
    let atomic = |ty, op, space, [value, compare]: [bool; 2]| {
        verify_built(|b, v| {
            let [value, compare] = [value, compare].map(|has| has.then_some(value_of(v, ty)));
            b.atomic(ty, op, Place::new(space, None, 8, 0), value, compare);
        })
    };
    let (none, one, two) = ([false, false], [true, false], [true, true]);
    for (ty, op, space, operands, is_valid) in [
        (Type::U32, Add, space, one, true),
        (Type::U32, Add, space, none, false),
        (Type::U32, Add, space, two, false),
        (Type::U32, Load, space, none, true),
        (Type::U32, Load, space, one, false),
        (Type::U32, CompareExchange, space, two, true),
        (Type::U32, CompareExchange, space, one, false),
        (Type::I32, Add, space, one, false),
        (Type::I64, Min, BUFFER, one, true),
        (Type::F32, Exchange, BUFFER, one, true),
        (Type::F32, And, BUFFER, one, false),
        (Type::F64, Add, BUFFER, one, false),
        (Type::U16, Add, BUFFER, one, false),
        (Type::U32, Add, AddressSpace::Binding(0), one, false),
        (Type::F32, Add, AddressSpace::Local(0), one, false),
    ] {
        let result = atomic(ty, op, space, operands);
        assert_eq!(result.is_ok(), is_valid, "{ty} {op:?} {space}: {result:?}");
    }
    assert_error(
        "`%10: u32 = atomic add binding1[0], %8`: an operand of the atomic must be u32, but is f32",
        |b, v| {
            let value = Some(value_of(v, Type::F32));
            b.atomic(Type::U32, Add, Place::new(BUFFER, None, 4, 0), value, None);
        },
    );
}
