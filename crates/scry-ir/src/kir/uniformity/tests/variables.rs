//! The uniformity of variables, and partial assignments.

use super::support::{Kernel, kernel, read, set, step, until_ten};
use crate::kir::uniformity::VarUniformity;
use crate::kir::uniformity::Variability::{Affine, Uniform, Varying};
use crate::kir::{BinaryOp, Builtin, Label, Stmt, Type};

const LOCAL: Builtin = Builtin::LocalId(1);

#[test]
fn uniform_assignment_keeps_the_value_class() {
    let mut k = kernel();
    k.set(1);
    k.b.if_then(k.same, |b| set(b, k.x, 2));
    k.read();
    assert_eq!(k.fact(), (Uniform, false));
}

#[test]
fn partial_assignment_read_by_all() {
    for branch in [0, 1] {
        let mut k = kernel();
        k.set(1);
        k.b.open();
        set(&mut k.b, k.x, 2);
        let mut blocks = [k.b.close(), Vec::new()];
        blocks.rotate_right(branch);
        let [then_block, else_block] = blocks;
        k.b.push(Stmt::If { condition: k.differs, then_block, else_block, at: None });
        k.read();
        assert_eq!(k.fact(), (Varying, true));
    }
}

#[test]
fn assignment_and_read_in_one_branch() {
    let mut k = kernel();
    let x = k.x;
    k.b.if_else(
        k.differs,
        |b| {
            set(b, x, 1);
            read(b, x);
        },
        |b| {
            set(b, x, 2);
            read(b, x);
        },
    );
    assert_eq!(k.fact(), (Uniform, false));
}

#[test]
fn assignment_read_in_the_other_branch() {
    let mut k = kernel();
    k.set(1);
    let x = k.x;
    k.b.if_else(k.differs, |b| set(b, x, 2), |b| read(b, x));
    assert_eq!(k.fact(), (Varying, true));
}

#[test]
fn initial_zero_counts_as_assigned() {
    let mut k = kernel();
    let x = k.x;
    k.b.if_then(k.differs, |b| {
        read(b, x);
        set(b, x, 1);
    });
    assert_eq!(k.fact(), (Uniform, false));
}

#[test]
fn loops_carry_partial_assignments() {
    let mut k = kernel();
    let (x, counter) = (k.x, k.b.var(Type::U32));
    k.b.repeat(true, |b, label| {
        until_ten(b, counter, label);
        step(b, counter);
        read(b, x);
        b.if_then(k.differs, |b| set(b, x, 1));
    });
    let uniformity = k.b.finish().uniformity();
    assert_eq!(uniformity.var(x), VarUniformity { class: Varying, partial: true });
    assert_eq!(uniformity.var(counter), VarUniformity { class: Uniform, partial: false });
}

/// A loop that counts to ten, which some invocations leave early.
fn divergent_loop(k: &mut Kernel) {
    let x = k.x;
    k.set(0);
    k.b.repeat(true, |b, label| {
        until_ten(b, x, label);
        b.if_then(k.differs, |b| b.leave(label));
        step(b, x);
    });
}

#[test]
fn counters_are_uniform_inside_divergent_loops() {
    let mut k = kernel();
    divergent_loop(&mut k);
    assert_eq!(k.fact(), (Uniform, false));
}

#[test]
fn counters_are_partial_after_divergent_loops() {
    let mut k = kernel();
    divergent_loop(&mut k);
    k.read();
    assert_eq!(k.fact(), (Varying, true));
}

#[test]
fn inner_counter_is_partial_unless_reset() {
    for again in [true, false] {
        let mut k = kernel();
        let (x, outer) = (k.x, k.b.var(Type::U32));
        k.b.repeat(true, |b, label| {
            until_ten(b, outer, label);
            step(b, outer);
            if again {
                set(b, x, 0);
            }
            b.repeat(true, |b, label| {
                until_ten(b, x, label);
                b.if_then(k.differs, |b| b.leave(label));
                step(b, x);
            });
        });
        let expected = if again { (Uniform, false) } else { (Varying, true) };
        assert_eq!(k.fact(), expected);
    }
}

#[test]
fn a_stride_keeps_a_counter_affine() {
    let mut k = kernel();
    let (x, local, size) = (k.x, k.b.builtin(LOCAL), k.b.builtin(Builtin::GroupCount(0)));
    k.b.set(x, local);
    k.b.repeat(true, |b, label| {
        until_ten(b, x, label);
        let old = b.get(x);
        let new = b.binary(BinaryOp::Add, old, size);
        b.set(x, new);
    });
    assert_eq!(k.fact(), (Affine, false));
}

#[test]
fn early_return_keeps_remaining_lanes_converged() {
    let mut k = kernel();
    let (x, differs) = (k.x, k.differs);
    k.b.if_then(differs, |b| b.leave(Label::KERNEL));
    k.set(0);
    k.b.repeat(true, |b, label| {
        b.if_then(differs, |b| b.leave(Label::KERNEL));
        until_ten(b, x, label);
        step(b, x);
    });
    k.read();
    assert_eq!(k.fact(), (Uniform, false));
}

#[test]
fn assignments_before_exit_are_partial() {
    let mut k = kernel();
    let x = k.x;
    k.b.if_then(k.differs, |b| {
        set(b, x, 1);
        b.leave(Label::KERNEL);
    });
    k.read();
    assert_eq!(k.fact(), (Varying, true));
}

#[test]
fn a_continue_of_some_skips_assignments() {
    let mut k = kernel();
    let (x, counter) = (k.x, k.b.var(Type::U32));
    k.b.repeat(true, |b, label| {
        b.scope(|b, next| {
            until_ten(b, counter, label);
            b.if_then(k.differs, |b| b.leave(next));
            set(b, x, 1);
        });
        read(b, x);
        step(b, counter);
    });
    let uniformity = k.b.finish().uniformity();
    assert_eq!(uniformity.var(x), VarUniformity { class: Varying, partial: true });
    assert_eq!(uniformity.var(counter), VarUniformity { class: Uniform, partial: false });
}

#[test]
fn assignment_before_divergent_exit_is_complete() {
    for (before, expected) in [(true, (Uniform, false)), (false, (Varying, true))] {
        let mut k = kernel();
        let x = k.x;
        k.b.scope(|b, label| {
            if before {
                set(b, x, 1);
            }
            b.if_then(k.differs, |b| b.leave(label));
            if !before {
                set(b, x, 1);
            }
        });
        k.read();
        assert_eq!(k.fact(), expected);
    }
}

#[test]
fn uniform_scope_exit_is_not_divergent() {
    let mut k = kernel();
    let x = k.x;
    k.b.scope(|b, label| {
        b.if_then(k.same, |b| b.leave(label));
        set(b, x, 1);
    });
    k.read();
    assert_eq!(k.fact(), (Uniform, false));
}

#[test]
fn loop_exit_diverges_an_outer_scope() {
    let mut k = kernel();
    let x = k.x;
    k.b.scope(|b, scope| {
        b.repeat(true, |b, label| {
            b.if_then(k.differs, |b| b.leave(label));
            b.leave(scope);
        });
        set(b, x, 2);
    });
    k.read();
    assert_eq!(k.fact(), (Varying, true));
}

#[test]
fn scope_exit_diverges_an_outer_scope() {
    let mut k = kernel();
    let x = k.x;
    k.b.scope(|b, outer| {
        b.scope(|b, inner| {
            b.if_then(k.differs, |b| b.leave(inner));
            b.leave(outer);
        });
        set(b, x, 2);
    });
    k.read();
    assert_eq!(k.fact(), (Varying, true));
}

#[test]
fn last_iteration_lacks_lanes_that_exited() {
    let mut k = kernel();
    let (x, counter) = (k.x, k.b.var(Type::U32));
    k.b.scope(|b, scope| {
        b.repeat(true, |b, label| {
            set(b, x, 1);
            b.if_then(k.differs, |b| b.leave(scope));
            until_ten(b, counter, label);
            step(b, counter);
        });
    });
    k.read();
    assert_eq!(k.fact(), (Varying, true));
}
