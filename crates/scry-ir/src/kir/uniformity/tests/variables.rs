//! Tests of the uniformity of variables, and of partial assignments.

use super::support::{Kernel, exit_at_ten, increment, kernel, set, store_var};
use crate::kir::uniformity::VarUniformity;
use crate::kir::uniformity::Variability::{Affine, Uniform, Varying};
use crate::kir::{BinaryOp, Builtin, Label, Stmt, Type};

const LOCAL_Y: Builtin = Builtin::LocalId(1);

#[test]
fn uniform_branch_keeps_variable_uniform() {
    let mut k = kernel();
    k.set_x(1);
    k.b.if_then(k.uniform, |b| set(b, k.x, 2));
    k.store_x();
    assert_eq!(k.uniformity_of_x(), (Uniform, false));
}

#[test]
fn assignment_in_varying_branch_is_partial() {
    for branch in [0, 1] {
        let mut k = kernel();
        k.set_x(1);
        k.b.open();
        set(&mut k.b, k.x, 2);
        let mut blocks = [k.b.close(), Vec::new()];
        blocks.rotate_right(branch);
        let [then_block, else_block] = blocks;
        k.b.push(Stmt::If { condition: k.varying, then_block, else_block, at: None });
        k.store_x();
        assert_eq!(k.uniformity_of_x(), (Varying, true));
    }
}

#[test]
fn read_in_assigning_block_is_uniform() {
    let mut k = kernel();
    let x = k.x;
    k.b.if_else(
        k.varying,
        |b| {
            set(b, x, 1);
            store_var(b, x);
        },
        |b| {
            set(b, x, 2);
            store_var(b, x);
        },
    );
    assert_eq!(k.uniformity_of_x(), (Uniform, false));
}

#[test]
fn read_in_other_block_is_partial() {
    let mut k = kernel();
    k.set_x(1);
    let x = k.x;
    k.b.if_else(k.varying, |b| set(b, x, 2), |b| store_var(b, x));
    assert_eq!(k.uniformity_of_x(), (Varying, true));
}

#[test]
fn initial_zero_counts_as_assigned() {
    let mut k = kernel();
    let x = k.x;
    k.b.if_then(k.varying, |b| {
        store_var(b, x);
        set(b, x, 1);
    });
    assert_eq!(k.uniformity_of_x(), (Uniform, false));
}

#[test]
fn loops_carry_partial_assignments() {
    let mut k = kernel();
    let (x, counter) = (k.x, k.b.var(Type::U32));
    k.b.finite_loop(|b, label| {
        exit_at_ten(b, counter, label);
        increment(b, counter);
        store_var(b, x);
        b.if_then(k.varying, |b| set(b, x, 1));
    });
    let uniformity = k.b.finish().uniformity();
    assert_eq!(uniformity.var(x), VarUniformity { variability: Varying, partially_assigned: true });
    assert_eq!(
        uniformity.var(counter),
        VarUniformity { variability: Uniform, partially_assigned: false }
    );
}

/// Adds a loop that counts `x` to ten, and that some invocations exit early.
fn divergent_loop(k: &mut Kernel) {
    let x = k.x;
    k.set_x(0);
    k.b.finite_loop(|b, label| {
        exit_at_ten(b, x, label);
        b.if_then(k.varying, |b| b.break_to(label));
        increment(b, x);
    });
}

#[test]
fn counters_are_uniform_inside_divergent_loops() {
    let mut k = kernel();
    divergent_loop(&mut k);
    assert_eq!(k.uniformity_of_x(), (Uniform, false));
}

#[test]
fn counters_are_partial_after_divergent_loops() {
    let mut k = kernel();
    divergent_loop(&mut k);
    k.store_x();
    assert_eq!(k.uniformity_of_x(), (Varying, true));
}

#[test]
fn inner_counter_is_partial_unless_reset() {
    for reset in [true, false] {
        let mut k = kernel();
        let (x, outer) = (k.x, k.b.var(Type::U32));
        k.b.finite_loop(|b, label| {
            exit_at_ten(b, outer, label);
            increment(b, outer);
            if reset {
                set(b, x, 0);
            }
            b.finite_loop(|b, label| {
                exit_at_ten(b, x, label);
                b.if_then(k.varying, |b| b.break_to(label));
                increment(b, x);
            });
        });
        let expected = if reset { (Uniform, false) } else { (Varying, true) };
        assert_eq!(k.uniformity_of_x(), expected);
    }
}

#[test]
fn uniform_step_keeps_counter_affine() {
    let mut k = kernel();
    let (x, local, size) = (k.x, k.b.builtin(LOCAL_Y), k.b.builtin(Builtin::GroupCount(0)));
    k.b.set(x, local);
    k.b.finite_loop(|b, label| {
        exit_at_ten(b, x, label);
        let old = b.get(x);
        let new = b.binary(BinaryOp::Add, old, size);
        b.set(x, new);
    });
    assert_eq!(k.uniformity_of_x(), (Affine, false));
}

#[test]
fn early_return_keeps_remaining_lanes_converged() {
    let mut k = kernel();
    let (x, varying) = (k.x, k.varying);
    k.b.if_then(varying, |b| b.break_to(Label::KERNEL));
    k.set_x(0);
    k.b.finite_loop(|b, label| {
        b.if_then(varying, |b| b.break_to(Label::KERNEL));
        exit_at_ten(b, x, label);
        increment(b, x);
    });
    k.store_x();
    assert_eq!(k.uniformity_of_x(), (Uniform, false));
}

#[test]
fn assignments_before_exit_are_partial() {
    let mut k = kernel();
    let x = k.x;
    k.b.if_then(k.varying, |b| {
        set(b, x, 1);
        b.break_to(Label::KERNEL);
    });
    k.store_x();
    assert_eq!(k.uniformity_of_x(), (Varying, true));
}

#[test]
fn divergent_continue_makes_assignment_partial() {
    let mut k = kernel();
    let (x, counter) = (k.x, k.b.var(Type::U32));
    k.b.finite_loop(|b, label| {
        b.scope(|b, next| {
            exit_at_ten(b, counter, label);
            b.if_then(k.varying, |b| b.break_to(next));
            set(b, x, 1);
        });
        store_var(b, x);
        increment(b, counter);
    });
    let uniformity = k.b.finish().uniformity();
    assert_eq!(uniformity.var(x), VarUniformity { variability: Varying, partially_assigned: true });
    assert_eq!(
        uniformity.var(counter),
        VarUniformity { variability: Uniform, partially_assigned: false }
    );
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
            b.if_then(k.varying, |b| b.break_to(label));
            if !before {
                set(b, x, 1);
            }
        });
        k.store_x();
        assert_eq!(k.uniformity_of_x(), expected);
    }
}

#[test]
fn uniform_scope_exit_is_not_divergent() {
    let mut k = kernel();
    let x = k.x;
    k.b.scope(|b, label| {
        b.if_then(k.uniform, |b| b.break_to(label));
        set(b, x, 1);
    });
    k.store_x();
    assert_eq!(k.uniformity_of_x(), (Uniform, false));
}

#[test]
fn divergent_loop_exit_diverges_outer_scope() {
    let mut k = kernel();
    let x = k.x;
    k.b.scope(|b, scope| {
        b.finite_loop(|b, label| {
            b.if_then(k.varying, |b| b.break_to(label));
            b.break_to(scope);
        });
        set(b, x, 2);
    });
    k.store_x();
    assert_eq!(k.uniformity_of_x(), (Varying, true));
}

#[test]
fn divergent_scope_exit_diverges_outer_scope() {
    let mut k = kernel();
    let x = k.x;
    k.b.scope(|b, outer| {
        b.scope(|b, inner| {
            b.if_then(k.varying, |b| b.break_to(inner));
            b.break_to(outer);
        });
        set(b, x, 2);
    });
    k.store_x();
    assert_eq!(k.uniformity_of_x(), (Varying, true));
}

#[test]
fn exited_lanes_miss_later_assignments() {
    let mut k = kernel();
    let (x, counter) = (k.x, k.b.var(Type::U32));
    k.b.scope(|b, scope| {
        b.finite_loop(|b, label| {
            set(b, x, 1);
            b.if_then(k.varying, |b| b.break_to(scope));
            exit_at_ten(b, counter, label);
            increment(b, counter);
        });
    });
    k.store_x();
    assert_eq!(k.uniformity_of_x(), (Varying, true));
}
