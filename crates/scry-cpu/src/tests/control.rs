//! Tests of divergent control flow.

use scry_ir::kir::{Access, BinaryOp, Builder, Kir, Label, Type, Value, Var};

use super::support::{BuilderExt, SHAPES, TestLaunch, bytes, noise};

/// Returns a kernel that stores the variable of each invocation to a buffer. `fill` is called with
/// the invocation's word of the other buffer, which is pseudo-random, and the variable.
fn kernel(shape: [u32; 3], fill: impl FnOnce(&mut Builder, Value, Var)) -> Kir {
    let mut b = Builder::new("control", shape);
    let (input, out) = (b.buffer(Access::Read), b.buffer(Access::ReadWrite));
    let result = b.var(Type::U32);
    let number = b.global_index();
    let noise = b.load_word(input, number);
    fill(&mut b, noise, result);
    let value = b.get(result);
    b.store_word(out, number, value);
    b.finish()
}

/// Asserts that the kernel of `fill` computes the results of the reference interpreter in
/// workgroups of every shape.
fn assert_agrees(fill: impl Fn(&mut Builder, Value, Var)) {
    for shape in SHAPES {
        let size = shape.iter().product::<u32>() as usize * 6;
        let kir = kernel(shape, &fill);
        let launch = TestLaunch::new([3, 2, 1], &[bytes(&noise(size)), bytes(&vec![7; size])]);
        let out = launch.assert_agrees(&kir);
        assert!(size < 100 || out[1] != launch.buffers[1], "the kernel writes something");
    }
}

/// Adds a constant to a variable.
fn bump(b: &mut Builder, var: Var, by: u32) {
    let old = b.get(var);
    let by = b.u32(by);
    let new = b.add(old, by);
    b.set(var, new);
}

/// Tests a bit of a value.
fn bit(b: &mut Builder, value: Value, bit: u32) -> Value {
    let mask = b.u32(1 << bit);
    let masked = b.binary(BinaryOp::And, value, mask);
    b.compare(BinaryOp::Ne, masked, 0)
}

#[test]
fn branches_within_branches() {
    assert_agrees(|b, noise, result| {
        let [first, second, third] = [0, 1, 2].map(|n| bit(b, noise, n));
        b.if_else(
            first,
            |b| {
                bump(b, result, 1);
                b.if_then(second, |b| bump(b, result, 10));
                bump(b, result, 100);
            },
            |b| {
                b.if_else(
                    second,
                    |b| b.if_else(third, |b| bump(b, result, 1000), |b| bump(b, result, 2000)),
                    |_| (),
                );
            },
        );
        bump(b, result, 5);
    });
}

#[test]
fn lanes_leave_loops_in_different_iterations() {
    assert_agrees(|b, noise, result| {
        let seven = b.u32(7);
        let iterations = b.binary(BinaryOp::And, noise, seven);
        b.finite_loop(|b, label| {
            let count = b.get(result);
            let done = b.binary(BinaryOp::Ge, count, iterations);
            b.if_then(done, |b| b.break_to(label));
            bump(b, result, 1);
        });
        bump(b, result, 100);
    });
}

#[test]
fn loops_with_continue_and_break() {
    assert_agrees(|b, noise, result| {
        let count = b.var(Type::U32);
        b.finite_loop(|b, label| {
            b.scope(|b, next| {
                let iteration = b.get(count);
                let shifted = b.binary(BinaryOp::Shr, noise, iteration);
                let continues = bit(b, shifted, 0);
                b.if_then(continues, |b| b.break_to(next));
                let breaks = bit(b, shifted, 9);
                b.if_then(breaks, |b| b.break_to(label));
                bump(b, result, 3);
            });
            bump(b, count, 1);
            let iteration = b.get(count);
            let done = b.compare(BinaryOp::Ge, iteration, 9);
            b.if_then(done, |b| b.break_to(label));
        });
    });
}

#[test]
fn lanes_return_from_every_depth() {
    assert_agrees(|b, noise, result| {
        let [first, second] = [0, 1].map(|n| bit(b, noise, n));
        bump(b, result, 1);
        b.if_then(first, |b| b.break_to(Label::KERNEL));
        b.finite_loop(|b, label| {
            bump(b, result, 1);
            b.scope(|b, inner| {
                b.if_then(second, |b| b.break_to(Label::KERNEL));
                let third = bit(b, noise, 2);
                b.if_then(third, |b| b.break_to(inner));
                bump(b, result, 50);
            });
            let now = b.get(result);
            let done = b.compare(BinaryOp::Gt, now, 5);
            b.if_then(done, |b| b.break_to(label));
        });
    });
}

#[test]
fn lanes_leave_two_levels_at_once() {
    assert_agrees(|b, noise, result| {
        let count = b.var(Type::U32);
        b.finite_loop(|b, outer| {
            bump(b, count, 1);
            let iteration = b.get(count);
            b.scope(|b, scope| {
                b.finite_loop(|b, inner| {
                    let rotated = b.binary(BinaryOp::Shr, noise, iteration);
                    let [out, to_scope] = [0, 4].map(|n| bit(b, rotated, n));
                    bump(b, result, 1);
                    b.if_then(out, |b| b.break_to(outer));
                    b.if_then(to_scope, |b| b.break_to(scope));
                    bump(b, result, 10);
                    b.break_to(inner);
                });
                bump(b, result, 100);
            });
            let done = b.compare(BinaryOp::Ge, iteration, 6);
            b.if_then(done, |b| b.break_to(outer));
        });
        bump(b, result, 1000);
    });
}

#[test]
fn all_lanes_leave() {
    assert_agrees(|b, noise, result| {
        b.scope(|b, label| {
            let first = bit(b, noise, 0);
            b.if_else(
                first,
                |b| {
                    bump(b, result, 1);
                    b.break_to(label);
                },
                |b| {
                    bump(b, result, 2);
                    b.break_to(label);
                },
            );
        });
        b.scope(|b, label| {
            let always = b.constant(scry_ir::kir::Const::bool(true));
            let odd = bit(b, noise, 1);
            b.if_then(odd, |b| {
                b.if_then(always, |b| b.break_to(label));
                bump(b, result, 1000);
            });
            bump(b, result, 10);
        });
    });
}

#[test]
fn uniform_control_flow_within_divergent() {
    assert_agrees(|b, noise, result| {
        let group = b.builtin(scry_ir::kir::Builtin::GroupId(0));
        let first_group = b.compare(BinaryOp::Eq, group, 0);
        let odd = bit(b, noise, 0);
        let count = b.var(Type::U32);
        b.if_then(odd, |b| {
            b.if_else(first_group, |b| bump(b, result, 1), |b| bump(b, result, 2));
            b.finite_loop(|b, label| {
                let iteration = b.get(count);
                let done = b.binary(BinaryOp::Ge, iteration, group);
                b.if_then(done, |b| b.break_to(label));
                bump(b, count, 1);
                bump(b, result, 10);
            });
            b.if_then(first_group, |b| b.break_to(Label::KERNEL));
        });
        // Only some lanes have counted.
        let iterations = b.get(count);
        let sum = b.get(result);
        let both = b.add(iterations, sum);
        b.set(result, both);
    });
}

#[test]
fn divergent_control_flow_within_uniform() {
    assert_agrees(|b, noise, result| {
        let count = b.var(Type::U32);
        b.finite_loop(|b, label| {
            let iteration = b.get(count);
            let done = b.compare(BinaryOp::Ge, iteration, 5);
            b.if_then(done, |b| b.break_to(label));
            let shifted = b.binary(BinaryOp::Shr, noise, iteration);
            let odd = bit(b, shifted, 0);
            b.if_else(odd, |b| bump(b, result, 7), |b| bump(b, count, 0));
            bump(b, count, 1);
        });
    });
}

#[test]
fn inactive_lanes_keep_values_and_variables() {
    assert_agrees(|b, noise, result| {
        let (early, late) = (b.var(Type::U32), b.var(Type::U32));
        b.set(early, noise);
        let odd = bit(b, noise, 0);
        b.if_then(odd, |b| {
            // Never assigned by the other lanes, for which it is zero.
            b.set(late, noise);
            let nine = b.u32(9);
            let changed = b.mul(noise, nine);
            let high = bit(b, noise, 31);
            b.if_then(high, |b| b.set(early, changed));
        });
        let (early, late) = (b.get(early), b.get(late));
        let both = b.binary(BinaryOp::Xor, early, late);
        b.set(result, both);
    });
}

#[test]
fn variables_carry_over_between_iterations() {
    assert_agrees(|b, noise, result| {
        let (inner, count) = (b.var(Type::U32), b.var(Type::U32));
        b.finite_loop(|b, label| {
            let before = b.get(inner);
            let sum = b.get(result);
            let sum = b.add(sum, before);
            b.set(result, sum);
            let iteration = b.get(count);
            let shifted = b.binary(BinaryOp::Shr, noise, iteration);
            let odd = bit(b, shifted, 0);
            b.if_then(odd, |b| b.set(inner, iteration));
            bump(b, count, 1);
            let iteration = b.get(count);
            let done = b.compare(BinaryOp::Ge, iteration, 6);
            b.if_then(done, |b| b.break_to(label));
        });
    });
}

#[test]
fn scope_values_are_visible_afterwards() {
    assert_agrees(|b, noise, result| {
        let mut product = None;
        b.scope(|b, label| {
            let three = b.u32(3);
            product = Some(b.mul(noise, three));
            let odd = bit(b, noise, 0);
            b.if_then(odd, |b| b.break_to(label));
            bump(b, result, 1);
        });
        let sum = b.get(result);
        let both = b.add(sum, product.expect("the scope was built"));
        b.set(result, both);
    });
}

#[test]
fn switch_with_fallthrough() {
    assert_agrees(|b, noise, result| {
        let (matched, three) = (b.var(Type::Bool), b.u32(3));
        let selector = b.binary(BinaryOp::And, noise, three);
        b.scope(|b, label| {
            for case in 0..3 {
                let here = b.compare(BinaryOp::Eq, selector, case);
                let before = b.get(matched);
                let enters = b.binary(BinaryOp::Or, here, before);
                b.if_then(enters, |b| {
                    bump(b, result, 1 << case);
                    b.set(matched, enters);
                    if case == 1 {
                        b.break_to(label);
                    }
                });
            }
            bump(b, result, 100);
        });
    });
}

#[test]
fn hundreds_of_simultaneously_live_values() {
    assert_agrees(|b, noise, result| {
        let mut values = vec![noise];
        for n in 1..300u32 {
            let factor = b.u32(2 * n + 1);
            let value = b.mul(values[values.len() / 2], factor);
            values.push(value);
        }
        let odd = bit(b, noise, 3);
        b.if_then(odd, |b| {
            let more: Vec<_> = values.iter().map(|value| b.not(*value)).collect();
            let sum = more.into_iter().reduce(|a, c| b.binary(BinaryOp::Xor, a, c));
            b.set(result, sum.expect("there are values"));
        });
        let sum = values.into_iter().reduce(|a, c| b.add(a, c)).expect("there are values");
        let before = b.get(result);
        let both = b.binary(BinaryOp::Xor, before, sum);
        b.set(result, both);
    });
}

#[test]
fn variables_of_every_width() {
    assert_agrees(|b, noise, result| {
        let types = [Type::U16, Type::I16, Type::U64, Type::I64, Type::I32];
        let vars = types.map(|ty| b.var(ty));
        let odd = bit(b, noise, 0);
        for (ty, var) in types.into_iter().zip(vars) {
            let converted = b.convert(ty, noise);
            let square = b.mul(converted, converted);
            b.set(var, square);
            b.if_then(odd, |b| {
                let sum = b.add(square, converted);
                b.set(var, sum);
            });
        }
        for var in vars {
            let value = b.get(var);
            let less = b.compare(BinaryOp::Lt, value, 1000);
            let truncated = b.convert(Type::U32, value);
            let flag = b.convert(Type::U32, less);
            let sum = b.get(result);
            let sum = b.binary(BinaryOp::Xor, sum, truncated);
            let sum = b.add(sum, flag);
            b.set(result, sum);
        }
    });
}
