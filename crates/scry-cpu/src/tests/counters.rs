//! Tests of variables that are uniform inside a loop, and varying after it.

use scry_ir::kir::{Access, BinaryOp, Builder, Builtin, Kir, Label, Stmt, Type, Value, Var};

use super::support::{BuilderExt, SHAPES, TestLaunch, bytes, noise};

/// The values and variables that a kernel is built from.
struct Parts {
    /// A pseudo-random number.
    noise: Value,
    /// A pseudo-random number from 0 to 15.
    small: Value,
    /// The two variables that the kernel stores.
    result: Var,
    other: Var,
}

fn kernel(shape: [u32; 3], fill: impl FnOnce(&mut Builder, &Parts)) -> Kir {
    let mut b = Builder::new("counters", shape);
    let (input, out) = (b.buffer(Access::Read), b.buffer(Access::ReadWrite));
    let (result, other) = (b.var(Type::U32), b.var(Type::U32));
    let number = b.global_index();
    let (noise, fifteen) = (b.load_word(input, number), b.u32(15));
    let small = b.binary(BinaryOp::And, noise, fifteen);
    fill(&mut b, &Parts { noise, small, result, other });
    let [result, other] = [result, other].map(|var| b.get(var));
    let both = b.binary(BinaryOp::Xor, result, other);
    b.store_word(out, number, both);
    b.finish()
}

fn assert_agrees(fill: impl Fn(&mut Builder, &Parts)) {
    for shape in SHAPES {
        let size = shape.iter().product::<u32>() as usize * 6;
        let launch = TestLaunch::new([3, 2, 1], &[bytes(&noise(size)), bytes(&vec![7; size])]);
        launch.assert_agrees(&kernel(shape, &fill));
    }
}

fn bump(b: &mut Builder, var: Var, by: u32) {
    let (old, by) = (b.get(var), b.u32(by));
    let new = b.add(old, by);
    b.set(var, new);
}

/// Emits `leave`, which leaves a loop, for the lanes in which a variable has reached `limit`.
fn leave_at(b: &mut Builder, var: Var, limit: Value, leave: impl FnOnce(&mut Builder)) {
    let now = b.get(var);
    let less = b.binary(BinaryOp::Lt, now, limit);
    b.open();
    leave(b);
    let else_block = b.close();
    b.push(Stmt::If { condition: less, then_block: Vec::new(), else_block, at: None });
}

#[test]
fn counters_start_at_any_value() {
    for first in [None, Some(3)] {
        assert_agrees(|b, parts| {
            if let Some(first) = first {
                let first = b.u32(first);
                b.set(parts.result, first);
            }
            b.finite_loop(|b, label| {
                leave_at(b, parts.result, parts.small, |b| b.break_to(label));
                bump(b, parts.result, 1);
                bump(b, parts.other, 0x100);
            });
        });
    }
}

#[test]
fn initial_values_differ_between_workgroups() {
    assert_agrees(|b, parts| {
        let (zero, three) = (b.u32(0), b.u32(3));
        b.set(parts.result, zero);
        let group = b.builtin(Builtin::GroupId(0));
        let second = b.compare(BinaryOp::Eq, group, 1);
        b.if_then(second, |b| b.set(parts.result, three));
        b.finite_loop(|b, label| {
            leave_at(b, parts.result, parts.small, |b| b.break_to(label));
            bump(b, parts.result, 1);
        });
    });
}

#[test]
fn loops_with_uniform_and_divergent_exits() {
    for (op, exit_if_true) in [(BinaryOp::And, false), (BinaryOp::Or, true)] {
        for iterations in [0, 1, 9, 40] {
            assert_agrees(|b, parts| {
                b.finite_loop(|b, label| {
                    let now = b.get(parts.result);
                    let (uniform_op, varying_op) = if exit_if_true {
                        (BinaryOp::Ge, BinaryOp::Gt)
                    } else {
                        (BinaryOp::Lt, BinaryOp::Le)
                    };
                    let all = b.compare(uniform_op, now, iterations);
                    let some = b.binary(varying_op, now, parts.small);
                    let condition = b.binary(op, some, all);
                    b.open();
                    b.break_to(label);
                    let (leave, stay) = (b.close(), Vec::new());
                    let (then_block, else_block) =
                        if exit_if_true { (leave, stay) } else { (stay, leave) };
                    b.push(Stmt::If { condition, then_block, else_block, at: None });
                    bump(b, parts.result, 1);
                });
            });
        }
    }
}

#[test]
fn inner_loop_exits_both_loops() {
    assert_agrees(|b, parts| {
        let (three, zero) = (b.u32(3), b.u32(0));
        let inner = b.var(Type::U32);
        b.finite_loop(|b, outer| {
            leave_at(b, parts.result, parts.small, |b| b.break_to(outer));
            b.set(inner, zero);
            b.finite_loop(|b, label| {
                leave_at(b, inner, three, |b| b.break_to(label));
                let bit = b.binary(BinaryOp::And, parts.noise, three);
                leave_at(b, inner, bit, |b| b.break_to(label));
                leave_at(b, parts.other, parts.small, |b| b.break_to(outer));
                bump(b, inner, 1);
                bump(b, parts.other, 1);
            });
            let iterations = b.get(inner);
            let sum = b.get(parts.result);
            let one = b.u32(1);
            let next = b.add(sum, iterations);
            let next = b.add(next, one);
            b.set(parts.result, next);
        });
    });
}

#[test]
fn counters_of_a_reentered_loop() {
    assert_agrees(|b, parts| {
        let (iteration, two) = (b.var(Type::U32), b.u32(2));
        b.finite_loop(|b, outer| {
            leave_at(b, iteration, two, |b| b.break_to(outer));
            // The counter continues with its value, which is varying in the second iteration.
            b.finite_loop(|b, label| {
                let (limit, iterations) = (b.get(iteration), parts.small);
                let limit = b.mul(limit, iterations);
                leave_at(b, parts.result, limit, |b| b.break_to(label));
                bump(b, parts.result, 1);
            });
            bump(b, iteration, 1);
        });
    });
}

#[test]
fn returns_from_loops_with_branch_assignments() {
    assert_agrees(|b, parts| {
        b.finite_loop(|b, label| {
            let now = b.get(parts.result);
            let some = b.compare(BinaryOp::Gt, parts.small, 11);
            b.if_then(some, |b| {
                let late = b.compare(BinaryOp::Gt, now, 4);
                b.if_then(late, |b| b.break_to(Label::KERNEL));
                bump(b, parts.other, 0x1000);
            });
            leave_at(b, parts.result, parts.small, |b| {
                bump(b, parts.result, 0x100);
                b.break_to(label);
            });
            bump(b, parts.result, 1);
        });
    });
}
