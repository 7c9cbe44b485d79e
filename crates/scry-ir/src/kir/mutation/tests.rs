//! Tests that mutations change the requested operator and nothing else.

use std::collections::BTreeSet;

use super::{mutate, operators, operators_of};
use crate::Access;
use crate::kir::{
    AddressSpace, AtomicOp, Barrier, BinaryOp, Builder, Builtin, Const, Inst, Kir, Place, Type,
    UnaryOp, Value,
};

/// `out[i] = in[i] * in[i] + 0.5` for two elements at once, a barrier, and a loop with an atomic
/// counter.
fn kernel() -> Kir {
    let mut b = Builder::new("main", [64, 1, 1]);
    let (input, output) = (b.buffer(Access::Read), b.buffer(Access::ReadWrite));
    let i = b.builtin(Builtin::LocalId(0));
    let pair = b.load(Type::F32, Place::new(AddressSpace::Binding(input), Some(i), 8, 0), 2);
    let half = b.constant(Const::f32(0.5));
    let results: Vec<Value> = pair.iter().map(|x| b.fma(*x, *x, half)).collect();
    b.store(Place::new(AddressSpace::Binding(output), Some(i), 8, 0), results);
    b.barrier(Barrier::Workgroup);
    b.finite_loop(|b, label| {
        let one = b.u32(1);
        let place = Place::new(AddressSpace::Binding(output), None, 4, 0);
        let old = b.atomic(Type::U32, AtomicOp::Add, place, Some(one), None);
        let enough = b.binary(BinaryOp::Gt, old, one);
        b.if_then(enough, |b| b.break_to(label));
    });
    b.finish()
}

fn statements(kir: &Kir) -> usize {
    let mut count = 0;
    crate::kir::for_each_stmt(&kir.body, &mut |_| count += 1);
    count
}

#[test]
fn operators_of_a_kernel() {
    let expected = [
        "builtin.local_id.x",
        "load.binding.f32",
        "fma.f32",
        "store.binding.f32",
        "atomic.add.binding.u32",
        "atomic.add.binding.u32.memory",
        "gt.u32",
    ];
    assert_eq!(operators_of(&kernel()), expected.map(str::to_owned).into());
}

#[test]
fn each_operator_is_mutated() {
    for name in operators_of(&kernel()) {
        let mut kir = kernel();
        let expected = if name == "fma.f32" { 2 } else { 1 };
        assert_eq!(mutate(&mut kir, &name), expected, "{name}");
        assert_ne!(kir, kernel(), "{name}");
    }
    let mut kir = kernel();
    assert_eq!(mutate(&mut kir, "add.f32"), 0);
    assert_eq!(kir, kernel());
}

#[test]
fn all_load_results_are_mutated() {
    let mut kir = kernel();
    let extra = |kir: &Kir| kir.values.iter().position(|d| matches!(d.inst, Inst::Extra(..)));
    let extra = extra(&kir).unwrap();
    mutate(&mut kir, "load.binding.f32");
    for value in [extra - 1, extra] {
        let Inst::Bitcast(bits) = kir.values[value].inst else { panic!("{:?}", kir.values[value]) };
        let Inst::Binary(BinaryOp::Xor, ..) = kir.inst(bits) else {
            panic!("{:?}", kir.inst(bits))
        };
    }
    let moved = kir.values[extra + 1..].iter().find_map(|d| match d.inst {
        Inst::Extra(first, 1) => Some(first),
        _ => None,
    });
    assert!(matches!(kir.inst(moved.unwrap()), Inst::Load { count: 2, .. }));
    // The load, and for each result a mask, a bitcast, an exclusive or, and a bitcast back.
    assert_eq!(statements(&kir), statements(&kernel()) + 8);
}

#[test]
fn conditions_are_negated() {
    let mut kir = kernel();
    mutate(&mut kir, "gt.u32");
    assert!(kir.values.iter().any(|d| matches!(d.inst, Inst::Unary(UnaryOp::Not, _))));
}

#[test]
fn atomic_result_and_effect_mutate_separately() {
    let atomic = |kir: &Kir| {
        let is_atomic = |d: &&crate::kir::Definition| matches!(d.inst, Inst::Atomic { .. });
        *kir.values.iter().find(is_atomic).unwrap()
    };
    let (mut result, mut effect) = (kernel(), kernel());
    mutate(&mut result, "atomic.add.binding.u32");
    mutate(&mut effect, "atomic.add.binding.u32.memory");
    assert_eq!(atomic(&result), atomic(&kernel()));
    assert_ne!(atomic(&effect), atomic(&kernel()));
}

#[test]
fn operators_are_listed_once() {
    let all = operators();
    let names: BTreeSet<&String> = all.iter().collect();
    assert_eq!(names.len(), all.len());
    for name in operators_of(&kernel()) {
        assert!(names.contains(&name), "{name}");
    }
    assert!(names.contains(&"builtin.subgroup_lane".to_owned()));
    assert!(names.contains(&"dot4_i8.u32".to_owned()));
}
