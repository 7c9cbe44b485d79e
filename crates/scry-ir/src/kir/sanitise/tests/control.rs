//! Tests of termination proofs, and of barriers in divergent control flow.

use super::{new_kernel, rejection, run, sanitised};
use crate::ShaderErrorKind;
use crate::kir::{
    Barrier, BinaryOp, Builder, Builtin, Inst, Kir, Label, Reduction, Stmt, SubgroupOp, Type,
    Value, any_stmt, for_each_stmt_mut,
};

/// Returns whether all loops of a kernel are proven to terminate. Asserts that its own claims, its
/// `finite` flags, have no effect.
fn all_finite(mut kir: Kir) -> bool {
    let mut found = Vec::new();
    for claim in [true, false] {
        for_each_stmt_mut(&mut kir.body, &mut |stmt| {
            if let Stmt::Loop { finite, .. } = stmt {
                *finite = claim;
            }
        });
        let is_unproven = |stmt: &Stmt| matches!(stmt, Stmt::Loop { finite: false, .. });
        found.push(!any_stmt(&sanitised(&kir).body, &mut |stmt| is_unproven(stmt)));
    }
    assert_eq!(found[0], found[1], "claims have no effect");
    found[0]
}

/// A loop whose counter starts at an unknown number: `while c op end { c = step(c, by) }`. `end` is
/// loaded from memory if it is `None`.
fn counting_loop(op: BinaryOp, end: Option<u32>, step: BinaryOp, by: u32) -> Kir {
    let (mut b, data, local) = new_kernel();
    let counter = b.var(Type::U32);
    b.set(counter, local);
    let end = match end {
        Some(end) => b.u32(end),
        None => {
            let place = b.element(data, local);
            b.load(Type::U32, place, 1)[0]
        }
    };
    b.finite_loop(|b, label| {
        let now = b.get(counter);
        let continues = b.binary(op, now, end);
        b.if_else(continues, |_| (), |b| b.break_to(label));
        let place = b.element(data, now);
        b.store(place, vec![now]);
        let by = b.u32(by);
        let next = b.binary(step, now, by);
        b.set(counter, next);
    });
    b.finish()
}

#[test]
fn counting_loops_terminate() {
    use BinaryOp::{Add, Ge, Gt, Le, Lt, Ne, Sub};
    assert!(all_finite(counting_loop(Lt, None, Add, 1)));
    assert!(all_finite(counting_loop(Lt, Some(100), Add, 7)));
    assert!(all_finite(counting_loop(Le, Some(100), Add, 1)));
    assert!(all_finite(counting_loop(Gt, None, Sub, 1)));
    assert!(all_finite(counting_loop(Gt, Some(3), Sub, 4)));
    assert!(all_finite(counting_loop(Ne, None, Add, 1)));
    // These may wrap around.
    assert!(!all_finite(counting_loop(Le, None, Add, 1)));
    assert!(!all_finite(counting_loop(Lt, None, Add, 2)));
    assert!(!all_finite(counting_loop(Lt, Some(u32::MAX), Add, 2)));
    assert!(!all_finite(counting_loop(Gt, Some(2), Sub, 4)));
    assert!(!all_finite(counting_loop(Ge, Some(0), Sub, 1)));
    // These count in the other direction, not at all, or may never equal or reach the bound.
    assert!(!all_finite(counting_loop(Lt, None, Sub, 1)));
    assert!(!all_finite(counting_loop(Lt, None, Add, 0)));
    assert!(!all_finite(counting_loop(Ne, None, Add, 2)));
    assert!(!all_finite(counting_loop(Lt, None, BinaryOp::Mul, 2)));
}

/// A loop of [`Builder::for_range`] with this body.
fn with_body(body: impl FnOnce(&mut Builder, Value, Label)) -> Kir {
    let (mut b, data, _) = new_kernel();
    let (first, end) = (b.u32(0), b.array_length(data, 0, 4));
    b.for_range(first, end, body);
    b.finish()
}

#[test]
fn irregular_loops_are_not_proven() {
    assert!(all_finite(with_body(|_, _, _| ())));
    let counter = crate::kir::Var(0);
    // Another assignment, in a branch.
    assert!(!all_finite(with_body(|b, now, _| {
        let zero = b.u32(0);
        let low = b.binary(BinaryOp::Lt, now, zero);
        b.if_then(low, |b| b.set(counter, zero));
    })));
    // The assigned value is not the one of this iteration.
    let (mut b, data, _) = new_kernel();
    let counter = b.var(Type::U32);
    let (one, end) = (b.u32(1), b.array_length(data, 0, 4));
    let stale = b.get(counter);
    let next = b.binary(BinaryOp::Add, stale, one);
    b.finite_loop(|b, label| {
        let now = b.get(counter);
        let done = b.binary(BinaryOp::Gt, now, end);
        b.if_then(done, |b| b.break_to(label));
        b.set(counter, next);
    });
    assert!(!all_finite(b.finish()));
    // The exit is in a branch, or after a `continue`.
    let (mut b, data, local) = new_kernel();
    let counter = b.var(Type::U32);
    let (one, end) = (b.u32(1), b.array_length(data, 0, 4));
    let some = b.binary(BinaryOp::Lt, local, one);
    b.finite_loop(|b, label| {
        let now = b.get(counter);
        let next = b.binary(BinaryOp::Add, now, one);
        b.set(counter, next);
        b.scope(|b, again| {
            b.if_then(some, |b| b.break_to(again));
            let done = b.binary(BinaryOp::Ge, now, end);
            b.if_then(done, |b| b.break_to(label));
        });
    });
    assert!(!all_finite(b.finish()));
}

/// Asserts that a kernel is rejected for divergence; `build` receives a condition that only the
/// first invocation satisfies. Returns the message.
fn assert_divergent(build: impl FnOnce(&mut Builder, u32, Value)) -> String {
    let (mut b, data, local) = new_kernel();
    let one = b.u32(1);
    let some = b.binary(BinaryOp::Lt, local, one);
    build(&mut b, data, some);
    let (kind, message) = rejection(&b.finish());
    assert_eq!(kind, ShaderErrorKind::Validation);
    assert!(message.contains("control flow that is not uniform"), "{message}");
    message
}

#[test]
fn barriers_in_divergent_flow_are_rejected() {
    let message = assert_divergent(|b, _, some| b.if_then(some, |b| b.barrier(Barrier::Workgroup)));
    assert!(message.ends_with(
        "`barrier workgroup` is in control flow that is not uniform: `%2: bool = lt %0, %1` may \
         differ between the invocations of a workgroup"
    ));
    assert_divergent(|b, _, some| b.if_else(some, |_| (), |b| b.barrier(Barrier::Subgroup)));
    assert_divergent(|b, _, some| {
        b.if_then(some, |b| b.break_to(Label::KERNEL));
        b.barrier(Barrier::Workgroup);
    });
    assert_divergent(|b, _, some| {
        b.scope(|b, end| {
            b.if_then(some, |b| b.break_to(end));
            b.barrier(Barrier::Workgroup);
        });
    });
    // The barrier of the second iteration.
    assert_divergent(|b, _, some| {
        b.finite_loop(|b, end| {
            b.barrier(Barrier::Workgroup);
            b.if_then(some, |b| b.break_to(end));
        });
    });
    // Other invocations may write what is loaded.
    assert_divergent(|b, data, _| {
        let zero = b.u32(0);
        let place = b.element(data, zero);
        let read = b.load(Type::U32, place, 1)[0];
        let raced = b.binary(BinaryOp::Eq, read, zero);
        b.if_then(raced, |b| b.barrier(Barrier::Workgroup));
    });
    assert_divergent(|b, _, some| {
        b.if_then(some, |b| {
            let op = Reduction::Add;
            let value = b.u32(1);
            b.subgroup(SubgroupOp::Reduce { op, group: crate::kir::GroupOperation::Reduce, value });
        });
    });
}

#[test]
fn barriers_in_uniform_flow_are_accepted() {
    let (mut b, data, local) = new_kernel();
    let tile = b.workgroup_array(Type::U32, 4);
    let (first, end) = (b.u32(0), b.array_length(data, 0, 4));
    b.for_range(first, end, |b, i, _| {
        let place = crate::kir::Place::new(tile, Some(local), 4, 0);
        b.store(place, vec![i]);
        b.barrier(Barrier::Workgroup);
        let group = b.builtin(Builtin::GroupId(0));
        let low = b.binary(BinaryOp::Lt, group, i);
        b.if_then(low, |b| b.barrier(Barrier::Workgroup));
        let one = b.u32(1);
        let some = b.binary(BinaryOp::Lt, local, one);
        // Invocations that exit the scope early reconverge before the next barrier.
        b.scope(|b, end| b.if_then(some, |b| b.break_to(end)));
        b.barrier(Barrier::Workgroup);
        let read = b.load(Type::U32, place, 1)[0];
        let out = b.element(data, local);
        b.store(out, vec![read]);
    });
    let kir = sanitised(&b.finish());
    assert_eq!(run(&kir, &[&[9; 4]]), [[3; 4]]);
    let is_barrier = |stmt: &Stmt| matches!(stmt, Stmt::Barrier(..));
    assert!(any_stmt(&kir.body, &mut |stmt| is_barrier(stmt)));
    assert!(!kir.values.iter().any(|it| matches!(it.inst, Inst::Subgroup(_))));
}

#[test]
fn uniform_loads_have_uniform_indices() {
    let load = |varies: bool| {
        let (mut b, data, local) = new_kernel();
        let tile = b.workgroup_array(Type::U32, 4);
        let two = b.u32(2);
        let index = if varies { local } else { two };
        let place = crate::kir::Place::new(tile, Some(index), 4, 0);
        let read = b.workgroup_uniform_load(Type::U32, place, 1)[0];
        let out = b.element(data, read);
        b.barrier(Barrier::Workgroup);
        let low = b.binary(BinaryOp::Lt, read, two);
        // The condition is uniform.
        b.if_then(low, |b| b.barrier(Barrier::Workgroup));
        b.store(out, vec![local]);
        b.finish()
    };
    let message = rejection(&load(true)).1;
    assert!(message.contains("has an index that may differ"), "{message}");
    assert!(message.ends_with(": `%0: u32 = local_id.x`"), "{message}");
    assert_eq!(run(&sanitised(&load(false)), &[&[9; 2]])[0][1], 9);
}
