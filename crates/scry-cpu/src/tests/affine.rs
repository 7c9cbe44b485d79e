//! Tests of affine values, and of values that are affine for some lanes only.

use scry_ir::kir::{Access, BinaryOp, Builder, Builtin, Kir, Label, Type, UnaryOp, Value};

use super::support::{BuilderExt, SHAPES, TestLaunch, bytes, noise};

/// Returns a kernel that stores a value to each invocation's elements, and the word of the other
/// buffer with that value as its index.
fn kernel(shape: [u32; 3], value: impl FnOnce(&mut Builder) -> Value) -> Kir {
    let mut b = Builder::new("affine", shape);
    let (input, out) = (b.buffer(Access::Read), b.buffer(Access::ReadWrite));
    let value = value(&mut b);
    let value = b.bitcast(Type::U32, value);
    let number = b.global_index();
    let loaded = b.load_word(input, value);
    let two = b.u32(2);
    let first = b.mul(number, two);
    b.store_word(out, first, value);
    let one = b.u32(1);
    let second = b.add(first, one);
    b.store_word(out, second, loaded);
    b.finish()
}

/// Asserts that the kernel of a value computes the results of the reference interpreter.
fn assert_agrees(value: impl Fn(&mut Builder) -> Value) {
    for shape in SHAPES {
        let size = 2 * shape.iter().product::<u32>() as usize * 4;
        let launch = TestLaunch::new([2, 2, 1], &[bytes(&noise(40)), bytes(&vec![0; size])]);
        launch.assert_agrees(&kernel(shape, &value));
    }
}

#[test]
fn sums_and_products_that_wrap() {
    for constant in [0, 1, 3, 40, 1 << 31, u32::MAX, u32::MAX - 20, 0x5555_5555] {
        for op in [BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul] {
            assert_agrees(|b| {
                let number = b.global_index();
                let constant = b.u32(constant);
                b.binary(op, number, constant)
            });
            assert_agrees(|b| {
                let y = b.local_id(1);
                let constant = b.u32(constant);
                b.binary(op, constant, y)
            });
        }
    }
}

#[test]
fn negations_and_complements() {
    for op in [UnaryOp::Neg, UnaryOp::Not] {
        assert_agrees(|b| {
            let x = b.global_x();
            b.unary(op, x)
        });
        assert_agrees(|b| {
            let index = b.local_index();
            let signed = b.bitcast(Type::I32, index);
            let negative = b.unary(op, signed);
            b.unary(op, negative)
        });
    }
}

#[test]
fn shifts_by_any_distance() {
    for by in [0, 1, 5, 28, 31, 32, 33, u32::MAX] {
        for op in [BinaryOp::Shl, BinaryOp::Shr] {
            assert_agrees(|b| {
                let number = b.global_index();
                let by = b.u32(by);
                b.binary(op, number, by)
            });
        }
    }
    assert_agrees(|b| {
        let number = b.global_index();
        let x = b.local_id(0);
        b.binary(BinaryOp::Shl, number, x)
    });
}

#[test]
fn min_and_max_clamp_some_lanes() {
    for bound in [0, 1, 7, 13, 20, 40, u32::MAX, 1 << 31] {
        for op in [BinaryOp::Min, BinaryOp::Max] {
            for ty in [Type::U32, Type::I32] {
                assert_agrees(|b| {
                    let number = b.global_index();
                    let nine = b.u32(9);
                    let shifted = b.binary(BinaryOp::Sub, number, nine);
                    let value = b.bitcast(ty, shifted);
                    let bound = b.u32(bound);
                    let bound = b.bitcast(ty, bound);
                    b.binary(op, value, bound)
                });
            }
        }
    }
}

#[test]
fn minimum_of_two_affine_values() {
    assert_agrees(|b| {
        let [x, y] = [0, 1].map(|axis| b.local_id(axis));
        let three = b.u32(3);
        let row = b.mul(y, three);
        let less = b.binary(BinaryOp::Min, x, row);
        let one = b.u32(1);
        // Continues with a value that is no longer affine.
        b.add(less, one)
    });
}

#[test]
fn selects_with_uniform_and_varying_conditions() {
    assert_agrees(|b| {
        let group = b.builtin(Builtin::GroupId(0));
        let first = b.compare(BinaryOp::Eq, group, 0);
        let (x, number) = (b.local_id(0), b.global_index());
        b.select(first, x, number)
    });
    assert_agrees(|b| {
        let (x, number) = (b.local_id(0), b.global_index());
        let low = b.compare(BinaryOp::Lt, x, 3);
        b.select(low, x, number)
    });
}

#[test]
fn uniform_and_varying_comparisons() {
    use BinaryOp::{Eq, Ge, Gt, Le, Lt, Ne};
    for op in [Eq, Ne, Lt, Le, Gt, Ge] {
        for (ty, bound) in [(Type::U32, 0), (Type::U32, 5), (Type::I32, 5), (Type::I32, 1 << 31)] {
            assert_agrees(|b| {
                let number = b.global_index();
                let minus = b.u32(11);
                let shifted = b.binary(BinaryOp::Sub, number, minus);
                let value = b.bitcast(ty, shifted);
                let bound = b.u32(bound);
                let bound = b.bitcast(ty, bound);
                let holds = b.binary(op, value, bound);
                let result = b.var(Type::U32);
                b.if_else(holds, |b| b.set(result, number), |b| b.set(result, minus));
                b.get(result)
            });
        }
    }
}

/// Calls [`assert_agrees`] for kernels of `value`, which is called with conjunctions and
/// disjunctions of uniform and varying conditions.
fn assert_logical_agrees(value: impl Fn(&mut Builder, Value) -> Value) {
    for op in [BinaryOp::And, BinaryOp::Or] {
        for (low, high) in [(0, 1 << 30), (0, 9), (9, 1 << 30), (3, 20), (1 << 30, 9), (9, 0)] {
            assert_agrees(|b| {
                let number = b.global_index();
                let first = b.compare(BinaryOp::Ge, number, low);
                let second = b.compare(BinaryOp::Lt, number, high);
                let x = b.local_id(0);
                let third = b.compare(BinaryOp::Ne, x, 70);
                let both = b.binary(op, first, second);
                let all = b.binary(BinaryOp::And, third, both);
                value(b, all)
            });
        }
    }
}

#[test]
fn uniform_and_varying_conjunctions() {
    assert_logical_agrees(|b, holds| {
        let (result, number) = (b.var(Type::U32), b.global_index());
        let (one, two) = (b.u32(1), b.u32(2));
        b.if_else(
            holds,
            |b| {
                let few = b.compare(BinaryOp::Lt, number, 12);
                b.if_else(few, |b| b.set(result, number), |b| b.set(result, one));
            },
            |b| b.set(result, two),
        );
        b.get(result)
    });
    assert_logical_agrees(|b, holds| {
        let number = b.global_index();
        let zero = b.u32(0);
        let chosen = b.select(holds, number, zero);
        b.if_then(holds, |b| b.break_to(Label::KERNEL));
        b.add(chosen, number)
    });
    assert_logical_agrees(|b, holds| {
        let result = b.var(Type::U32);
        b.scope(|b, label| {
            b.if_else(holds, |_| (), |b| b.break_to(label));
            let number = b.global_index();
            b.set(result, number);
        });
        b.get(result)
    });
}

#[test]
fn variables_affine_or_varying_after_loops() {
    for divergent in [false, true] {
        assert_agrees(|b| {
            let (index, count) = (b.var(Type::U32), b.var(Type::U32));
            let number = b.global_index();
            b.set(index, number);
            b.finite_loop(|b, label| {
                let iteration = b.get(count);
                let x = b.local_id(0);
                let bound = b.u32(2);
                let bound = if divergent { b.binary(BinaryOp::Min, x, bound) } else { bound };
                let done = b.binary(BinaryOp::Ge, iteration, bound);
                b.if_then(done, |b| b.break_to(label));
                let now = b.get(index);
                let step = b.u32(5);
                let next = b.add(now, step);
                b.set(index, next);
                let one = b.u32(1);
                let iteration = b.add(iteration, one);
                b.set(count, iteration);
            });
            b.get(index)
        });
    }
}
