//! Tests of the uniformity of values.

use super::support::{Kernel, kernel};
use crate::kir::uniformity::Variability::{self, Affine, Uniform, Varying};
use crate::kir::{AddressSpace, AtomicOp, BinaryOp, Builtin, Place, Type, UnaryOp, Value};

const LOCAL_Y: Builtin = Builtin::LocalId(1);
const GROUP_Z: Builtin = Builtin::GroupId(2);
const LANE: Builtin = Builtin::SubgroupLane;

/// Returns the variability of the value that a closure computes.
fn variability_of(make: impl FnOnce(&mut Kernel) -> Value) -> Variability {
    let mut k = kernel();
    let value = make(&mut k);
    k.b.finish().uniformity().value(value)
}

fn binary(op: BinaryOp, a: Builtin, b: Builtin) -> Variability {
    variability_of(|k| {
        let (a, b) = (k.b.builtin(a), k.b.builtin(b));
        k.b.binary(op, a, b)
    })
}

#[test]
fn sums_products_and_bounds_are_affine() {
    use BinaryOp::{Add, Max, Min, Mul, Shl, Sub};
    for op in [Add, Sub, Min, Max] {
        assert_eq!(binary(op, LOCAL_Y, Builtin::LocalId(0)), Affine, "{op:?}");
    }
    for op in [Add, Sub, Min, Max, Mul, Shl] {
        assert_eq!(binary(op, LOCAL_Y, GROUP_Z), Affine, "{op:?}");
        assert_eq!(binary(op, GROUP_Z, Builtin::GroupCount(0)), Uniform, "{op:?}");
        assert_eq!(binary(op, LOCAL_Y, LANE), Varying, "{op:?}");
    }
    assert_eq!(binary(Mul, GROUP_Z, LOCAL_Y), Affine);
    assert_eq!(binary(Mul, LOCAL_Y, LOCAL_Y), Varying);
    assert_eq!(binary(Shl, GROUP_Z, LOCAL_Y), Varying);
}

#[test]
fn other_operations_are_uniform_or_varying() {
    use BinaryOp::{And, Div, Eq, Lt, Or, Rem, Shr, Xor};
    for op in [Div, Rem, Shr, And, Or, Xor, Eq, Lt] {
        assert_eq!(binary(op, GROUP_Z, Builtin::SubgroupSize), Uniform, "{op:?}");
        assert_eq!(binary(op, LOCAL_Y, GROUP_Z), Varying, "{op:?}");
    }
}

#[test]
fn integer_conversions_of_32_bits_are_affine() {
    let convert = |ty| {
        variability_of(|k| {
            let local = k.b.builtin(LOCAL_Y);
            k.b.convert(ty, local)
        })
    };
    assert_eq!(convert(Type::I32), Affine);
    for ty in [Type::F32, Type::U64, Type::U16, Type::Bool] {
        assert_eq!(convert(ty), Varying, "{ty}");
    }
    let bitcast = |ty| {
        variability_of(|k| {
            let local = k.b.builtin(LOCAL_Y);
            k.b.bitcast(ty, local)
        })
    };
    assert_eq!((bitcast(Type::I32), bitcast(Type::F32)), (Affine, Varying));
    for op in [UnaryOp::Neg, UnaryOp::Not] {
        let variability = variability_of(|k| {
            let local = k.b.builtin(LOCAL_Y);
            k.b.unary(op, local)
        });
        assert_eq!(variability, Affine, "{op:?}");
    }
}

#[test]
fn select_needs_uniform_condition() {
    let select = |varying: bool| {
        variability_of(|k| {
            let (a, b) = (k.b.builtin(LOCAL_Y), k.b.builtin(GROUP_Z));
            k.b.select(if varying { k.varying } else { k.uniform }, a, b)
        })
    };
    assert_eq!((select(false), select(true)), (Affine, Varying));
}

#[test]
fn load_at_uniform_index_is_uniform() {
    let load = |space: fn(&mut Kernel) -> AddressSpace, index: Option<Builtin>| {
        variability_of(|k| {
            let space = space(k);
            let index = index.map(|builtin| k.b.builtin(builtin));
            k.b.load(Type::F32, Place::new(space, index, 4, 0), 2)[1]
        })
    };
    let workgroup: fn(&mut Kernel) -> AddressSpace = |k| k.b.workgroup_array(Type::F32, 64);
    let local: fn(&mut Kernel) -> AddressSpace = |k| k.b.local_array(Type::F32, 64);
    for space in [|k: &mut Kernel| k.buffer, workgroup] {
        assert_eq!(load(space, None), Uniform);
        assert_eq!(load(space, Some(GROUP_Z)), Uniform);
        assert_eq!(load(space, Some(LOCAL_Y)), Varying);
    }
    assert_eq!(load(local, None), Varying);
    assert_eq!(load(|_| AddressSpace::Immediate, None), Uniform);
}

/// Racing stores may change the result of a plain load from a uniform address, but not that of a
/// uniform load, which is between barriers.
#[test]
fn uniform_loads_are_uniform_despite_races() {
    for (index, expected) in [(None, Uniform), (Some(GROUP_Z), Uniform), (Some(LOCAL_Y), Varying)] {
        let mut k = kernel();
        let space = k.b.workgroup_array(Type::U32, 64);
        let index = index.map(|builtin| k.b.builtin(builtin));
        let place = Place::new(space, index, 4, 0);
        let plain = k.b.load(Type::U32, place, 2)[1];
        let uniform = k.b.workgroup_uniform_load(Type::U32, place, 2)[1];
        let kir = k.b.finish();
        let uniformity = kir.uniformity_despite_races();
        assert_eq!((uniformity.value(plain), uniformity.value(uniform)), (Varying, expected));
        assert_eq!(kir.uniformity().value(uniform), expected);
    }
}

#[test]
fn atomics_are_varying() {
    let variability = variability_of(|k| {
        let (space, one) = (k.buffer, k.b.u32(1));
        let place = Place::new(space, None, 4, 0);
        k.b.atomic(Type::U32, AtomicOp::Add, place, Some(one), None)
    });
    assert_eq!(variability, Varying);
}
