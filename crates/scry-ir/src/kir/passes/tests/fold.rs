//! Tests of constant folding and algebraic simplification, of CSE and of DCE.

use super::super::super::{
    AddressSpace, AtomicOp, Barrier, BinaryOp, Builder, Builtin, Const, Inst, Kir, Label, Place,
    ShuffleSource, Stmt, SubgroupOp, Type, UnaryOp, Value,
};
use super::super::{cse::cse, dce::eliminate, fold::fold, optimise};
use super::support::{
    all_insts, count_binary, count_insts, count_loads, last_stored_inst, store_result,
};
use crate::Access;

/// Returns an optimised kernel that stores the result of `make` for an unknown `u32` and `f32`, and
/// the instruction that computes the result.
fn simplify(make: impl FnOnce(&mut Builder, Value, Value) -> Value) -> (Kir, Inst) {
    let mut b = Builder::new("test", [64, 1, 1]);
    let (read, out) = (b.buffer(Access::Read), b.buffer(Access::ReadWrite));
    let x = b.load(Type::U32, Place::new(AddressSpace::Binding(read), None, 4, 0), 1)[0];
    let f = b.load(Type::F32, Place::new(AddressSpace::Binding(read), None, 4, 4), 1)[0];
    let value = make(&mut b, x, f);
    b.store(Place::new(AddressSpace::Binding(out), None, 4, 0), vec![value]);
    let mut kir = b.finish();
    optimise(&mut kir);
    let inst = last_stored_inst(&kir);
    (kir, inst)
}

/// Returns the instruction to which `x op constant` is simplified for an unknown `x`.
fn simplify_with_constant(op: BinaryOp, constant: Const) -> Inst {
    let make = |b: &mut Builder, x, f| {
        let operand = if constant.ty == Type::F32 { f } else { x };
        let constant = b.constant(constant);
        b.binary(op, operand, constant)
    };
    simplify(make).1
}

/// Another invocation may store between the loads. The uniform load remains for its barriers,
/// although its result is unused.
#[test]
fn uniform_loads_separate_loads() {
    let mut b = Builder::new("test", [64, 1, 1]);
    let out = b.buffer(Access::ReadWrite);
    let place = Place::new(b.workgroup_array(Type::U32, 1), None, 0, 0);
    let before = b.load(Type::U32, place, 1)[0];
    b.workgroup_uniform_load(Type::U32, place, 1);
    let after = b.load(Type::U32, place, 1)[0];
    let sum = b.binary(BinaryOp::Sub, before, after);
    store_result(&mut b, out, sum);
    let mut kir = b.finish();
    optimise(&mut kir);
    assert_eq!(count_loads(&kir), 2);
    assert_eq!(count_insts(&kir, |inst| matches!(inst, Inst::WorkgroupUniformLoad { .. })), 1);
}

#[test]
fn neutral_elements_vanish() {
    for (op, constant) in [
        (BinaryOp::Add, Const::u32(0)),
        (BinaryOp::Mul, Const::u32(1)),
        (BinaryOp::Div, Const::u32(0)),
        (BinaryOp::Shl, Const::u32(32)),
        (BinaryOp::And, Const::u32(u32::MAX)),
        (BinaryOp::Min, Const::u32(u32::MAX)),
        (BinaryOp::Mul, Const::f32(1.0)),
        (BinaryOp::Add, Const::f32(-0.0)),
        (BinaryOp::Sub, Const::f32(0.0)),
    ] {
        let inst = simplify_with_constant(op, constant);
        assert!(matches!(inst, Inst::Load { .. }), "{op:?} {constant:?} is left as {inst:?}");
    }
}

/// `-0 + 0` is `+0`; `NaN * 0` is NaN.
#[test]
fn inexact_float_identities_are_not_applied() {
    for (op, constant) in [
        (BinaryOp::Add, Const::f32(0.0)),
        (BinaryOp::Sub, Const::f32(-0.0)),
        (BinaryOp::Mul, Const::f32(0.0)),
        (BinaryOp::Div, Const::f32(3.0)),
    ] {
        let inst = simplify_with_constant(op, constant);
        assert!(matches!(inst, Inst::Binary(found, ..) if found == op), "{inst:?}");
    }
    let (_, inst) = simplify(|b, _, f| b.binary(BinaryOp::Eq, f, f));
    assert!(matches!(inst, Inst::Binary(BinaryOp::Eq, ..)), "NaN is not itself: {inst:?}");
}

#[test]
fn division_by_power_of_two_shifts() {
    assert!(matches!(
        simplify_with_constant(BinaryOp::Div, Const::u32(8)),
        Inst::Binary(BinaryOp::Shr, ..)
    ));
    assert!(matches!(
        simplify_with_constant(BinaryOp::Rem, Const::u32(8)),
        Inst::Binary(BinaryOp::And, ..)
    ));
    let half = simplify_with_constant(BinaryOp::Div, Const::f32(2.0));
    assert!(matches!(half, Inst::Binary(BinaryOp::Mul, ..)));
}

#[test]
fn constants_are_merged_by_reassociation() {
    let (kir, inst) = simplify(|b, x, _| {
        let (three, five) = (b.u32(3), b.u32(5));
        let less = b.binary(BinaryOp::Sub, x, five);
        b.binary(BinaryOp::Add, three, less)
    });
    let Inst::Binary(BinaryOp::Sub, _, two) = inst else { panic!("{inst:?}") };
    assert_eq!(kir.constant(two), Some(Const::u32(2)));
}

#[test]
fn zero_minus_x_is_negation() {
    let (kir, inst) = simplify(|b, x, _| {
        let zero = b.u32(0);
        b.binary(BinaryOp::Sub, zero, x)
    });
    let Inst::Unary(UnaryOp::Neg, x) = inst else { panic!("{inst:?}") };
    assert!(matches!(kir.inst(x), Inst::Load { .. }));
}

#[test]
fn untaken_branches_are_removed() {
    let mut b = Builder::new("test", [1; 3]);
    let out = b.buffer(Access::ReadWrite);
    let never = b.constant(Const::bool(false));
    let exit = |b: &mut Builder| b.break_to(Label::KERNEL);
    b.if_then(never, exit);
    let always = b.unary(UnaryOp::Not, never);
    b.if_then(always, |b| {
        let one = b.u32(1);
        store_result(b, out, one);
        b.break_to(Label::KERNEL);
    });
    let two = b.u32(2);
    store_result(&mut b, out, two);
    let mut kir = b.finish();
    fold(&mut kir);
    let stores = kir.body.iter().filter(|stmt| matches!(stmt, Stmt::Store { .. })).count();
    assert_eq!(stores, 1, "the code after the exit is removed");
    optimise(&mut kir);
    assert_eq!(last_stored_inst(&kir), Inst::Const(Const::u32(1)));
}

#[test]
fn equal_values_are_computed_once() {
    let (kir, _) = simplify(|b, x, _| {
        let three = b.u32(3);
        let other = b.u32(3);
        let a = b.binary(BinaryOp::Add, x, three);
        let again = b.binary(BinaryOp::Add, other, x);
        b.binary(BinaryOp::Mul, a, again)
    });
    assert_eq!(count_binary(&kir, BinaryOp::Add), 1);
    assert_eq!(count_insts(&kir, |inst| matches!(inst, Inst::Const(_))), 1);
}

/// A value of a branch is not visible after it, nor in the other branch.
#[test]
fn visible_values_are_merged() {
    let mut b = Builder::new("test", [64, 1, 1]);
    let out = b.buffer(Access::ReadWrite);
    let id = b.builtin(Builtin::LocalId(0));
    let seven = b.u32(7);
    let odd = b.binary(BinaryOp::Lt, id, seven);
    let square = |b: &mut Builder| {
        let square = b.binary(BinaryOp::Mul, id, id);
        store_result(b, out, square);
    };
    b.if_else(odd, square, square);
    square(&mut b);
    square(&mut b);
    let mut kir = b.finish();
    cse(&mut kir);
    assert_eq!(count_binary(&kir, BinaryOp::Mul), 3);
}

#[test]
fn assigned_values_are_forwarded() {
    let mut b = Builder::new("test", [64, 1, 1]);
    let out = b.buffer(Access::ReadWrite);
    let var = b.var(Type::U32);
    let id = b.builtin(Builtin::LocalId(0));
    b.set(var, id);
    let read = b.get(var);
    store_result(&mut b, out, read);
    let mut kir = b.finish();
    optimise(&mut kir);
    assert_eq!(last_stored_inst(&kir), Inst::Builtin(Builtin::LocalId(0)));
    assert!(kir.vars.is_empty(), "the variable is not read");
}

/// Returns the number of remaining loads of a kernel that loads an element twice, with other
/// statements between.
fn loads_around(access: Access, between: impl FnOnce(&mut Builder, AddressSpace)) -> usize {
    let mut b = Builder::new("test", [64, 1, 1]);
    let (read, out) = (b.buffer(access), b.buffer(Access::ReadWrite));
    let space = AddressSpace::Binding(read);
    let place = Place::new(space, None, 4, 0);
    let first = b.load(Type::U32, place, 1)[0];
    between(&mut b, space);
    let second = b.load(Type::U32, place, 1)[0];
    store_result(&mut b, out, first);
    store_result(&mut b, out, second);
    let mut kir = b.finish();
    optimise(&mut kir);
    count_loads(&kir)
}

#[test]
fn loads_merge_until_memory_changes() {
    let store = |b: &mut Builder, space| {
        let one = b.u32(1);
        b.store(Place::new(space, None, 4, 4), vec![one]);
    };
    let atomic_add = |b: &mut Builder, space| {
        let one = b.u32(1);
        let place = Place::new(space, None, 4, 8);
        b.atomic(Type::U32, AtomicOp::Add, place, Some(one), None);
    };
    assert_eq!(loads_around(Access::ReadWrite, |_, _| ()), 1);
    assert_eq!(loads_around(Access::ReadWrite, store), 2);
    assert_eq!(loads_around(Access::ReadWrite, atomic_add), 2);
    assert_eq!(loads_around(Access::ReadWrite, |b, _| b.barrier(Barrier::Workgroup)), 2);
    assert_eq!(loads_around(Access::Read, |b, _| b.barrier(Barrier::Workgroup)), 1);
    assert_eq!(loads_around(Access::ReadWrite, |b, _| store(b, AddressSpace::Binding(1))), 1);
}

/// The store comes after the load, but in the next iteration before it.
#[test]
fn memory_written_in_loops_is_reloaded() {
    let mut b = Builder::new("test", [64, 1, 1]);
    let out = b.buffer(Access::ReadWrite);
    let place = Place::new(AddressSpace::Binding(out), None, 4, 0);
    let before = b.load(Type::U32, place, 1)[0];
    b.loop_(|b, label| {
        let now = b.load(Type::U32, place, 1)[0];
        let more = b.binary(BinaryOp::Add, now, before);
        b.store(place, vec![more]);
        let done = b.binary(BinaryOp::Lt, before, now);
        b.if_then(done, |b| b.break_to(label));
    });
    let mut kir = b.finish();
    optimise(&mut kir);
    assert_eq!(count_loads(&kir), 2);
}

#[test]
fn stored_values_are_forwarded_to_loads() {
    let mut b = Builder::new("test", [64, 1, 1]);
    let out = b.buffer(Access::ReadWrite);
    let local = b.local_array(Type::U32, 4);
    let id = b.builtin(Builtin::LocalId(0));
    let three = b.u32(3);
    let index = b.binary(BinaryOp::And, id, three);
    b.store(Place::new(local, Some(index), 4, 0), vec![id]);
    let read = b.load(Type::U32, Place::new(local, Some(index), 4, 0), 1)[0];
    store_result(&mut b, out, read);
    let mut kir = b.finish();
    optimise(&mut kir);
    assert_eq!((count_loads(&kir), kir.locals.len()), (0, 0), "the array is not needed");
}

#[test]
fn unused_atomics_are_kept() {
    let mut b = Builder::new("test", [64, 1, 1]);
    let out = b.buffer(Access::ReadWrite);
    let one = b.u32(1);
    for _ in 0..2 {
        let place = Place::new(AddressSpace::Binding(out), None, 4, 0);
        b.atomic(Type::U32, AtomicOp::Add, place, Some(one), None);
    }
    let mut kir = b.finish();
    optimise(&mut kir);
    assert_eq!(count_insts(&kir, |inst| matches!(inst, Inst::Atomic { .. })), 2);
}

#[test]
fn unused_collective_operations_are_removed() {
    let mut b = Builder::new("test", [32, 1, 1]);
    let out = b.buffer(Access::ReadWrite);
    let id = b.builtin(Builtin::LocalId(0));
    b.subgroup(SubgroupOp::Shuffle { source: ShuffleSource::First, value: id });
    let x = b.convert(Type::F32, id);
    b.multiply_fragments([x; 4], [x; 2], [x; 4]);
    let used = b.multiply_fragments([x; 4], [x; 2], [x; 4]);
    store_result(&mut b, out, used[2]);
    let mut kir = b.finish();
    eliminate(&mut kir);
    let kinds = all_insts(&kir, &kir.body);
    let is_product = |inst: &Inst| matches!(inst, Inst::MultiplyFragments { .. });
    assert!(!kinds.iter().any(|inst| matches!(inst, Inst::Subgroup(_))), "{kinds:?}");
    assert_eq!(kinds.iter().filter(|inst| is_product(inst)).count(), 1, "{kinds:?}");
    assert_eq!(crate::kir::verify(&kir), Ok(()));
}

/// A counter that is only read to increment it, and a branch that only assigns an unused variable.
#[test]
fn dead_code_is_eliminated() {
    let mut b = Builder::new("test", [64, 1, 1]);
    let (read, out) = (b.buffer(Access::Read), b.buffer(Access::ReadWrite));
    let (counter, unread) = (b.var(Type::U32), b.var(Type::U32));
    let id = b.builtin(Builtin::LocalId(0));
    let condition = b.convert(Type::Bool, id);
    b.if_then(condition, |b| b.set(unread, id));
    b.finite_loop(|b, label| {
        let old = b.get(counter);
        let new = b.binary(BinaryOp::Add, old, id);
        b.set(counter, new);
        let place = Place::new(AddressSpace::Binding(read), None, 4, 0);
        let values = b.load(Type::U32, place, 4);
        let done = b.convert(Type::Bool, values[1]);
        store_result(b, out, values[0]);
        b.if_then(done, |b| b.break_to(label));
    });
    let mut kir = b.finish();
    eliminate(&mut kir);
    let kinds = all_insts(&kir, &kir.body);
    assert!(matches!(kinds[..], [Inst::Load { count: 2, .. }, Inst::Convert(_)]), "{kinds:?}");
}
