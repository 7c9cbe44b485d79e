//! Variables that are uniform inside a loop, and varying after it.

use scry_ir::kir::{BinaryOp, Builder, Builtin, Kir, Label, Stmt, Type, Value, Var};

use super::support::{Launch, Make, SHAPES, bytes, noise};

/// The values and variables that a kernel is built from: a pseudo-random number, one from 0 to 15,
/// a variable for the result, and another one.
struct Parts {
    noise: Value,
    few: Value,
    result: Var,
    other: Var,
}

fn kernel(shape: [u32; 3], fill: impl FnOnce(&mut Builder, &Parts)) -> Kir {
    let mut b = Builder::new("counters", shape);
    let (input, out) = (b.buffer(false), b.buffer(true));
    let (result, other) = (b.var(Type::U32), b.var(Type::U32));
    let number = b.number();
    let (noise, fifteen) = (b.word(input, number), b.u32(15));
    let few = b.binary(BinaryOp::And, noise, fifteen);
    fill(&mut b, &Parts { noise, few, result, other });
    let [result, other] = [result, other].map(|var| b.get(var));
    let both = b.binary(BinaryOp::Xor, result, other);
    b.put(out, number, both);
    b.finish()
}

fn agree(fill: impl Fn(&mut Builder, &Parts)) {
    for shape in SHAPES {
        let size = shape.iter().product::<u32>() as usize * 6;
        let launch = Launch::new([3, 2, 1], &[bytes(&noise(size)), bytes(&vec![7; size])]);
        launch.agree(&kernel(shape, &fill));
    }
}

fn bump(b: &mut Builder, var: Var, by: u32) {
    let (old, by) = (b.get(var), b.u32(by));
    let new = b.add(old, by);
    b.set(var, new);
}

/// An iteration of a loop: lanes leave when a variable reaches their own number.
fn leave_at(b: &mut Builder, var: Var, limit: Value, otherwise: impl FnOnce(&mut Builder)) {
    let now = b.get(var);
    let less = b.binary(BinaryOp::Lt, now, limit);
    b.open();
    otherwise(b);
    let else_block = b.close();
    b.push(Stmt::If { condition: less, then_block: Vec::new(), else_block, at: None });
}

#[test]
fn counters_start_at_any_value() {
    for first in [None, Some(3)] {
        agree(|b, parts| {
            if let Some(first) = first {
                let first = b.u32(first);
                b.set(parts.result, first);
            }
            b.repeat(true, |b, label| {
                leave_at(b, parts.result, parts.few, |b| b.leave(label));
                bump(b, parts.result, 1);
                bump(b, parts.other, 0x100);
            });
        });
    }
}

#[test]
fn counters_changed_by_some_workgroups_first() {
    agree(|b, parts| {
        let (zero, three) = (b.u32(0), b.u32(3));
        b.set(parts.result, zero);
        let group = b.builtin(Builtin::GroupId(0));
        let second = b.compare(BinaryOp::Eq, group, 1);
        b.if_then(second, |b| b.set(parts.result, three));
        b.repeat(true, |b, label| {
            leave_at(b, parts.result, parts.few, |b| b.leave(label));
            bump(b, parts.result, 1);
        });
    });
}

#[test]
fn loops_with_uniform_and_divergent_exits() {
    for (op, turned) in [(BinaryOp::And, false), (BinaryOp::Or, true)] {
        for iterations in [0, 1, 9, 40] {
            agree(|b, parts| {
                b.repeat(true, |b, label| {
                    let now = b.get(parts.result);
                    let (uniform, own) = if turned {
                        (BinaryOp::Ge, BinaryOp::Gt)
                    } else {
                        (BinaryOp::Lt, BinaryOp::Le)
                    };
                    let all = b.compare(uniform, now, iterations);
                    let some = b.binary(own, now, parts.few);
                    let condition = b.binary(op, some, all);
                    b.open();
                    b.leave(label);
                    let (leave, stay) = (b.close(), Vec::new());
                    let (then_block, else_block) =
                        if turned { (leave, stay) } else { (stay, leave) };
                    b.push(Stmt::If { condition, then_block, else_block, at: None });
                    bump(b, parts.result, 1);
                });
            });
        }
    }
}

#[test]
fn exits_from_two_nested_loops() {
    agree(|b, parts| {
        let (three, zero) = (b.u32(3), b.u32(0));
        let inner = b.var(Type::U32);
        b.repeat(true, |b, outer| {
            leave_at(b, parts.result, parts.few, |b| b.leave(outer));
            b.set(inner, zero);
            b.repeat(true, |b, label| {
                leave_at(b, inner, three, |b| b.leave(label));
                let bit = b.binary(BinaryOp::And, parts.noise, three);
                leave_at(b, inner, bit, |b| b.leave(label));
                leave_at(b, parts.other, parts.few, |b| b.leave(outer));
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
    agree(|b, parts| {
        let (iteration, two) = (b.var(Type::U32), b.u32(2));
        b.repeat(true, |b, outer| {
            leave_at(b, iteration, two, |b| b.leave(outer));
            // Continues with its value, which differs between lanes in the second iteration.
            b.repeat(true, |b, label| {
                let (limit, iterations) = (b.get(iteration), parts.few);
                let limit = b.mul(limit, iterations);
                leave_at(b, parts.result, limit, |b| b.leave(label));
                bump(b, parts.result, 1);
            });
            bump(b, iteration, 1);
        });
    });
}

#[test]
fn returns_from_loops_with_branch_assignments() {
    agree(|b, parts| {
        b.repeat(true, |b, label| {
            let now = b.get(parts.result);
            let some = b.compare(BinaryOp::Gt, parts.few, 11);
            b.if_then(some, |b| {
                let late = b.compare(BinaryOp::Gt, now, 4);
                b.if_then(late, |b| b.leave(Label::KERNEL));
                bump(b, parts.other, 0x1000);
            });
            leave_at(b, parts.result, parts.few, |b| {
                bump(b, parts.result, 0x100);
                b.leave(label);
            });
            bump(b, parts.result, 1);
        });
    });
}
