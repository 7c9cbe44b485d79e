//! Tests that every index is clamped, and that buffers must contain accesses without an index.

use super::{new_kernel, rejection, run, sanitised};
use crate::kir::{
    AddressSpace, AtomicOp, BinaryOp, Builder, Inst, Kir, Place, Stmt, Type, Value, for_each_stmt,
};
use crate::{Program, ShaderErrorKind};

/// A kernel that stores 7 to `count` elements from byte `index * stride + offset` on.
fn store_kernel(
    index: impl Fn(&mut Builder, Value) -> Value,
    stride: u32,
    offset: u32,
    count: usize,
) -> Kir {
    let (mut b, data, local) = new_kernel();
    let (index, seven) = (index(&mut b, local), b.u32(7));
    let place = Place::new(AddressSpace::Binding(data), Some(index), stride, offset);
    b.store(place, vec![seven; count]);
    b.finish()
}

#[test]
fn indices_are_clamped_to_last_element() {
    let far = |b: &mut Builder, _| b.u32(u32::MAX);
    assert_eq!(run(&sanitised(&store_kernel(far, 4, 0, 1)), &[&[0; 3]]), [[0, 0, 7]]);
    assert_eq!(run(&sanitised(&store_kernel(far, 8, 4, 1)), &[&[0; 5]]), [[0, 0, 0, 7, 0]]);
    assert_eq!(run(&sanitised(&store_kernel(far, 4, 4, 2)), &[&[0; 5]]), [[0, 0, 0, 7, 7]]);
    assert_eq!(run(&sanitised(&store_kernel(far, 16, 0, 4)), &[&[0; 6]]), [[7, 7, 7, 7, 0, 0]]);
    let local = |_: &mut Builder, local| local;
    assert_eq!(run(&sanitised(&store_kernel(local, 4, 0, 1)), &[&[0; 3]]), [[7; 3]]);
    assert_eq!(run(&sanitised(&store_kernel(local, 0, 4, 1)), &[&[0; 3]]), [[0, 7, 0]]);
}

#[test]
fn redundant_clamps_are_removed() {
    let (mut b, data, local) = new_kernel();
    let length = b.array_length(data, 0, 4);
    let inside = b.binary(BinaryOp::Lt, local, length);
    b.if_then(inside, |b| {
        let place = b.element(data, local);
        b.store(place, vec![local]);
    });
    let kir = sanitised(&b.finish());
    let is_min = |inst: &Inst| matches!(inst, Inst::Binary(BinaryOp::Min, ..));
    assert!(!kir.values.iter().any(|definition| is_min(&definition.inst)), "{kir}");
    assert_eq!(run(&kir, &[&[9; 3]]), [[0, 1, 2]]);
}

#[test]
fn arrays_are_clamped() {
    let (mut b, data, local) = new_kernel();
    let tile = b.workgroup_array(Type::U32, 3);
    let local_array = b.local_array(Type::U32, 2);
    let far = b.unary(crate::kir::UnaryOp::Not, local);
    for space in [tile, local_array] {
        let place = Place::new(space, Some(far), 4, 0);
        b.store(place, vec![far]);
        let read = b.load(Type::U32, place, 1)[0];
        let one = b.u32(1);
        let result = b.binary(BinaryOp::Or, read, one);
        let out = b.element(data, local);
        b.store(out, vec![result]);
    }
    let atomic = Place::new(tile, Some(far), 4, 0);
    b.atomic(Type::U32, AtomicOp::Add, atomic, Some(far), None);
    let kir = sanitised(&b.finish());
    assert_eq!(run(&kir, &[&[0; 4]])[0][3], !3 | 1);
}

#[test]
fn claimed_sizes_are_dropped() {
    let (mut b, data, _) = new_kernel();
    b.set_buffer_min_size(data, 1 << 20);
    let (index, seven) = (b.u32(9), b.u32(7));
    let place = b.element(data, index);
    b.store(place, vec![seven]);
    let kir = sanitised(&b.finish());
    assert_eq!(kir.buffers[0].min_size, 4);
    assert_eq!(run(&kir, &[&[0; 3]]), [[0, 0, 7]]);
}

#[test]
fn unindexed_accesses_set_minimum_size() {
    let (mut b, data, _) = new_kernel();
    let seven = b.u32(7);
    b.store(Place::new(AddressSpace::Binding(data), None, 0, 40), vec![seven]);
    let program = Program::from_kir(&b.finish()).unwrap();
    let layout = &program.interface().bindings[0].layout;
    assert_eq!(layout.min_binding_size(), 44);
    assert_eq!(layout.to_string(), "array<u32> of at least 11 elements");
}

#[test]
fn impossible_accesses_are_rejected() {
    let (mut b, _, local) = new_kernel();
    let tile = b.workgroup_array(Type::U32, 3);
    b.load(Type::U32, Place::new(tile, Some(local), 4, 12), 1);
    let (kind, message) = rejection(&b.finish());
    assert_eq!(kind, ShaderErrorKind::Validation);
    assert!(message.contains("workgroup0"), "{message}");

    let (mut b, data, local) = new_kernel();
    let place = Place::new(AddressSpace::Binding(data), Some(local), u32::MAX - 3, u32::MAX - 3);
    b.load(Type::U32, place, 1);
    assert!(rejection(&b.finish()).1.contains("4 GiB or more"));

    let (mut b, data, _) = new_kernel();
    b.array_length(data, 0, 3);
    assert!(rejection(&b.finish()).1.contains("by 3 bytes"));
}

#[test]
fn results_of_atomic_stores_are_rejected() {
    let (mut b, data, local) = new_kernel();
    let place = Place::new(AddressSpace::Binding(data), None, 0, 0);
    let nothing = b.atomic(Type::U32, AtomicOp::Store, place, Some(local), None);
    b.store(place, vec![nothing]);
    assert!(rejection(&b.finish()).1.contains("an atomic store has none"));
}

#[test]
fn unused_definitions_are_dropped() {
    let (mut b, data, local) = new_kernel();
    let place = b.element(data, local);
    b.store(place, vec![local]);
    let mut kir = b.finish();
    let invalid = Place::new(AddressSpace::Binding(data), Some(Value(0)), 3, 1);
    for inst in [
        Inst::Load { place: invalid, count: 200 },
        Inst::Builtin(crate::kir::Builtin::LocalId(9)),
        Inst::Extra(Value(0), 255),
    ] {
        kir.values.push(crate::kir::Definition { ty: Type::Bool, inst });
    }
    let kir = sanitised(&kir);
    let mut lets = 0;
    for_each_stmt(&kir.body, &mut |stmt| lets += usize::from(matches!(stmt, Stmt::Let(_))));
    assert_eq!(kir.values.len(), lets, "{kir}");
}
