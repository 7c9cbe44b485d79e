//! Affine values, and values that are affine for some lanes only.

use scry_ir::kir::{BinaryOp, Builder, Builtin, Kir, Label, Type, UnaryOp, Value};

use super::support::{Launch, Make, SHAPES, bytes, noise};

/// Stores a value to each invocation's element, and uses it as the index of a load.
fn kernel(shape: [u32; 3], value: impl FnOnce(&mut Builder) -> Value) -> Kir {
    let mut b = Builder::new("affine", shape);
    let (input, out) = (b.buffer(false), b.buffer(true));
    let value = value(&mut b);
    let value = b.bitcast(Type::U32, value);
    let number = b.number();
    let found = b.word(input, value);
    let two = b.u32(2);
    let first = b.mul(number, two);
    b.put(out, first, value);
    let one = b.u32(1);
    let second = b.add(first, one);
    b.put(out, second, found);
    b.finish()
}

fn agree(value: impl Fn(&mut Builder) -> Value) {
    for shape in SHAPES {
        let size = 2 * shape.iter().product::<u32>() as usize * 4;
        let launch = Launch::new([2, 2, 1], &[bytes(&noise(40)), bytes(&vec![0; size])]);
        launch.agree(&kernel(shape, &value));
    }
}

#[test]
fn sums_and_products_that_wrap() {
    for constant in [0, 1, 3, 40, 1 << 31, u32::MAX, u32::MAX - 20, 0x5555_5555] {
        for op in [BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul] {
            agree(|b| {
                let number = b.number();
                let constant = b.u32(constant);
                b.binary(op, number, constant)
            });
            agree(|b| {
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
        agree(|b| {
            let x = b.global_x();
            b.unary(op, x)
        });
        agree(|b| {
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
            agree(|b| {
                let number = b.number();
                let by = b.u32(by);
                b.binary(op, number, by)
            });
        }
    }
    agree(|b| {
        let number = b.number();
        let x = b.local_id(0);
        b.binary(BinaryOp::Shl, number, x)
    });
}

#[test]
fn min_and_max_clamp_some_lanes() {
    for bound in [0, 1, 7, 13, 20, 40, u32::MAX, 1 << 31] {
        for op in [BinaryOp::Min, BinaryOp::Max] {
            for ty in [Type::U32, Type::I32] {
                agree(|b| {
                    let number = b.number();
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
fn bounds_that_are_affine_themselves() {
    agree(|b| {
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
    agree(|b| {
        let group = b.builtin(Builtin::GroupId(0));
        let first = b.compare(BinaryOp::Eq, group, 0);
        let (x, number) = (b.local_id(0), b.number());
        b.select(first, x, number)
    });
    agree(|b| {
        let (x, number) = (b.local_id(0), b.number());
        let low = b.compare(BinaryOp::Lt, x, 3);
        b.select(low, x, number)
    });
}

#[test]
fn uniform_and_varying_comparisons() {
    use BinaryOp::{Eq, Ge, Gt, Le, Lt, Ne};
    for op in [Eq, Ne, Lt, Le, Gt, Ge] {
        for (ty, bound) in [(Type::U32, 0), (Type::U32, 5), (Type::I32, 5), (Type::I32, 1 << 31)] {
            agree(|b| {
                let number = b.number();
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

/// Calls `test` with conjunctions and disjunctions of uniform and varying conditions.
fn joined(test: impl Fn(&mut Builder, Value) -> Value) {
    for op in [BinaryOp::And, BinaryOp::Or] {
        for (low, high) in [(0, 1 << 30), (0, 9), (9, 1 << 30), (3, 20), (1 << 30, 9), (9, 0)] {
            agree(|b| {
                let number = b.number();
                let first = b.compare(BinaryOp::Ge, number, low);
                let second = b.compare(BinaryOp::Lt, number, high);
                let x = b.local_id(0);
                let third = b.compare(BinaryOp::Ne, x, 70);
                let both = b.binary(op, first, second);
                let all = b.binary(BinaryOp::And, third, both);
                test(b, all)
            });
        }
    }
}

#[test]
fn uniform_and_varying_conjunctions() {
    joined(|b, holds| {
        let (result, number) = (b.var(Type::U32), b.number());
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
    joined(|b, holds| {
        let number = b.number();
        let zero = b.u32(0);
        let chosen = b.select(holds, number, zero);
        b.if_then(holds, |b| b.leave(Label::KERNEL));
        b.add(chosen, number)
    });
    joined(|b, holds| {
        let result = b.var(Type::U32);
        b.scope(|b, label| {
            b.if_else(holds, |_| (), |b| b.leave(label));
            let number = b.number();
            b.set(result, number);
        });
        b.get(result)
    });
}

#[test]
fn variables_that_are_affine_or_varying() {
    for divergent in [false, true] {
        agree(|b| {
            let (index, count) = (b.var(Type::U32), b.var(Type::U32));
            let number = b.number();
            b.set(index, number);
            b.repeat(true, |b, label| {
                let iteration = b.get(count);
                let x = b.local_id(0);
                let bound = b.u32(2);
                let bound = if divergent { b.binary(BinaryOp::Min, x, bound) } else { bound };
                let done = b.binary(BinaryOp::Ge, iteration, bound);
                b.if_then(done, |b| b.leave(label));
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
