//! Tests of bounds-check elimination: redundant clamps are removed, and no others.

use super::super::super::{
    AddressSpace, BinaryOp, Builder, Builtin, Const, Label, Place, Type, Value,
};
use super::super::optimise;
use super::support::{count_binary, store_result};
use crate::Access;

const SIZE: [u32; 3] = [64, 1, 1];

/// Returns the number of clamps that remain in the kernel that `make` builds.
fn remaining_clamps(make: impl FnOnce(&mut Builder)) -> usize {
    let mut b = Builder::new("test", SIZE);
    b.buffer(Access::Read);
    b.buffer(Access::ReadWrite);
    b.workgroup_array(Type::U32, 256);
    make(&mut b);
    let mut kir = b.finish();
    optimise(&mut kir);
    count_binary(&kir, BinaryOp::Min)
}

/// Loads an element of a workgroup array of 256 elements at a clamped index, and stores it.
fn access(b: &mut Builder, index: Value) {
    let last = b.u32(255);
    let index = b.binary(BinaryOp::Min, index, last);
    let value = b.load(Type::U32, Place::new(AddressSpace::Workgroup(0), Some(index), 4, 0), 1)[0];
    store_result(b, 1, value);
}

/// Loads an element of the first buffer, whose length is unknown, at a clamped index, and stores
/// it.
fn access_buffer(b: &mut Builder, index: Value) {
    let length = b.array_length(0, 0, 4);
    let one = b.u32(1);
    let last = b.binary(BinaryOp::Sub, length, one);
    let index = b.binary(BinaryOp::Min, index, last);
    let value = b.load(Type::U32, Place::new(AddressSpace::Binding(0), Some(index), 4, 0), 1)[0];
    store_result(b, 1, value);
}

/// Loads a `U32` of any value.
fn unknown(b: &mut Builder) -> Value {
    b.load(Type::U32, Place::new(AddressSpace::Binding(0), None, 4, 0), 1)[0]
}

fn binary_constant(b: &mut Builder, op: BinaryOp, a: Value, constant: u32) -> Value {
    let constant = b.u32(constant);
    b.binary(op, a, constant)
}

/// Returns the number of clamps that remain of an index that `make` computes from an unknown
/// number.
fn clamps_of_unknown(make: impl FnOnce(&mut Builder, Value) -> Value) -> usize {
    remaining_clamps(|b| {
        let x = unknown(b);
        let index = make(b, x);
        access(b, index);
    })
}

#[test]
fn local_ids_are_below_workgroup_size() {
    let position = |b: &mut Builder, factor, summand| {
        let id = b.builtin(Builtin::LocalId(0));
        let product = binary_constant(b, BinaryOp::Mul, id, factor);
        binary_constant(b, BinaryOp::Add, product, summand)
    };
    let clamps = |factor, summand| {
        remaining_clamps(|b| {
            let index = position(b, factor, summand);
            access(b, index);
        })
    };
    assert_eq!((clamps(4, 3), clamps(4, 4), clamps(5, 0)), (0, 1, 1));
}

#[test]
fn masks_remainders_and_shifts_bound() {
    use BinaryOp::{And, Min, Rem, Shr};
    let clamps = |op, constant| clamps_of_unknown(|b, x| binary_constant(b, op, x, constant));
    assert_eq!((clamps(And, 255), clamps(And, 256)), (0, 1));
    assert_eq!((clamps(Rem, 250), clamps(Rem, 257)), (0, 1));
    assert_eq!((clamps(Shr, 24), clamps(Shr, 23)), (0, 1));
    assert_eq!(clamps(Min, 7), 1, "the two clamps become one");
}

#[test]
fn sums_that_may_wrap_prove_nothing() {
    let clamps = |summand| {
        clamps_of_unknown(|b, x| {
            let low = binary_constant(b, BinaryOp::And, x, 15);
            binary_constant(b, BinaryOp::Sub, low, summand)
        })
    };
    assert_eq!((clamps(0), clamps(1)), (0, 1));
}

#[test]
fn conditions_bound_only_in_their_block() {
    let clamps = |limit: u32, inside: bool| {
        remaining_clamps(|b| {
            let x = unknown(b);
            let below = binary_constant(b, BinaryOp::Lt, x, limit);
            b.if_then(below, |b| if inside { access(b, x) } else { store_result(b, 1, x) });
            if !inside {
                access(b, x);
            }
        })
    };
    assert_eq!((clamps(256, true), clamps(257, true), clamps(256, false)), (0, 1, 1));
}

#[test]
fn early_returns_bound_later_accesses() {
    let clamps = |op, of_buffer: bool| {
        remaining_clamps(|b| {
            let x = unknown(b);
            let limit = if of_buffer { b.array_length(0, 0, 4) } else { b.u32(256) };
            let outside = b.binary(op, x, limit);
            b.if_then(outside, |b| b.break_to(Label::KERNEL));
            if of_buffer { access_buffer(b, x) } else { access(b, x) }
        })
    };
    assert_eq!((clamps(BinaryOp::Ge, false), clamps(BinaryOp::Gt, false)), (0, 1));
    assert_eq!((clamps(BinaryOp::Ge, true), clamps(BinaryOp::Gt, true)), (0, 1));
}

#[test]
fn lengths_of_other_arrays_prove_nothing() {
    let clamps = |binding, stride| {
        remaining_clamps(|b| {
            let x = unknown(b);
            let length = b.array_length(binding, 0, stride);
            let below = b.binary(BinaryOp::Lt, x, length);
            b.if_then(below, |b| access_buffer(b, x));
        })
    };
    assert_eq!((clamps(0, 4), clamps(1, 4), clamps(0, 2)), (0, 1, 1));
}

#[test]
fn neighbours_are_bounded_by_last_index() {
    // `if x < length - subtrahend { a[x + summand] }`
    let clamps = |subtrahend: u32, summand: u32| {
        remaining_clamps(|b| {
            let x = unknown(b);
            let length = b.array_length(0, 0, 4);
            let limit = binary_constant(b, BinaryOp::Sub, length, subtrahend);
            let below = b.binary(BinaryOp::Lt, x, limit);
            b.if_then(below, |b| {
                let next = binary_constant(b, BinaryOp::Add, x, summand);
                access_buffer(b, next);
            });
        })
    };
    assert_eq!((clamps(1, 1), clamps(1, 2)), (0, 1));
    assert_eq!(clamps(2, 2), 1, "`length - 2` wraps if the length is 1");
}

#[test]
fn conjunctions_bound_by_both_conditions() {
    let clamps = |op, in_then_block: bool| {
        remaining_clamps(|b| {
            let (x, y) = (unknown(b), b.builtin(Builtin::GroupId(1)));
            let first = binary_constant(b, BinaryOp::Lt, x, 16);
            let second = binary_constant(b, BinaryOp::Lt, y, 16);
            let both = b.binary(op, first, second);
            let index = |b: &mut Builder| {
                let row = binary_constant(b, BinaryOp::Mul, y, 16);
                let index = b.binary(BinaryOp::Add, row, x);
                access(b, index);
            };
            if in_then_block { b.if_then(both, index) } else { b.if_else(both, |_| (), index) }
        })
    };
    assert_eq!((clamps(BinaryOp::And, true), clamps(BinaryOp::Or, true)), (0, 1));
    assert_eq!(clamps(BinaryOp::And, false), 1);
}

/// Returns the number of clamps that remain of `for (var i = first; i op limit; i += step)` with an
/// access to `a[i + summand]`.
fn clamps_in_loop(
    ty: Type,
    first: i64,
    op: BinaryOp,
    limit: i64,
    step: i64,
    summand: u32,
) -> usize {
    remaining_clamps(|b| {
        let var = b.var(ty);
        let first = b.constant(Const::int(ty, first));
        b.set(var, first);
        b.finite_loop(|b, label| {
            let i = b.get(var);
            let limit = b.constant(Const::int(ty, limit));
            let continues = b.binary(op, i, limit);
            b.if_else(continues, |_| (), |b| b.break_to(label));
            let index = b.bitcast(Type::U32, i);
            let index = binary_constant(b, BinaryOp::Add, index, summand);
            access(b, index);
            let step = b.constant(Const::int(ty, step));
            let next = b.binary(BinaryOp::Add, i, step);
            b.set(var, next);
        });
    })
}

#[test]
fn counters_are_bounded_by_their_limit() {
    use BinaryOp::{Ge, Gt, Le, Lt, Ne};
    assert_eq!(clamps_in_loop(Type::U32, 0, Lt, 256, 1, 0), 0);
    assert_eq!(clamps_in_loop(Type::U32, 0, Lt, 256, 1, 1), 1);
    assert_eq!(clamps_in_loop(Type::U32, 3, Le, 255, 7, 0), 0);
    assert_eq!(clamps_in_loop(Type::I32, 0, Lt, 256, 1, 0), 0);
    assert_eq!(clamps_in_loop(Type::I32, -1, Lt, 256, 1, 0), 1);
    assert_eq!(clamps_in_loop(Type::I32, 255, Ge, 0, -1, 0), 0);
    assert_eq!(clamps_in_loop(Type::I32, 256, Gt, 0, -1, 0), 1);
    assert_eq!(clamps_in_loop(Type::U32, 0, Ne, 256, 1, 0), 1, "true, but not proven");
}

/// With a step of 1 a counter does not wrap, whatever its limit is. With larger steps it may.
#[test]
fn counters_that_may_wrap_prove_nothing() {
    let clamps = |step: i64| {
        remaining_clamps(|b| {
            let var = b.var(Type::I32);
            let limit = unknown(b);
            let limit = b.bitcast(Type::I32, limit);
            b.finite_loop(|b, label| {
                let i = b.get(var);
                let continues = b.binary(BinaryOp::Lt, i, limit);
                b.if_else(continues, |_| (), |b| b.break_to(label));
                let (zero, last) = (b.constant(Const::i32(0)), b.u32(255));
                let non_negative = b.binary(BinaryOp::Max, i, zero);
                let index = b.bitcast(Type::U32, non_negative);
                let low = b.binary(BinaryOp::And, index, last);
                access(b, low);
                let step = b.constant(Const::int(Type::I32, step));
                let next = b.binary(BinaryOp::Add, i, step);
                b.set(var, next);
            });
        })
    };
    assert_eq!((clamps(1), clamps(2)), (0, 0), "the mask bounds the index");
    // The number of `max(i, 0)` that remain.
    let remaining_max = |step: i64| {
        let mut b = Builder::new("test", SIZE);
        b.buffer(Access::Read);
        b.buffer(Access::ReadWrite);
        let var = b.var(Type::I32);
        let limit = unknown(&mut b);
        let limit = b.bitcast(Type::I32, limit);
        b.finite_loop(|b, label| {
            let i = b.get(var);
            let continues = b.binary(BinaryOp::Lt, i, limit);
            b.if_else(continues, |_| (), |b| b.break_to(label));
            let zero = b.constant(Const::i32(0));
            let non_negative = b.binary(BinaryOp::Max, i, zero);
            let result = b.bitcast(Type::U32, non_negative);
            store_result(b, 1, result);
            let step = b.constant(Const::int(Type::I32, step));
            let next = b.binary(BinaryOp::Add, i, step);
            b.set(var, next);
        });
        let mut kir = b.finish();
        optimise(&mut kir);
        count_binary(&kir, BinaryOp::Max)
    };
    assert_eq!((remaining_max(1), remaining_max(2)), (0, 1));
}

/// `for (s = 128; s > 0; s >>= 1) { if id < s { a[id + s] } }`
#[test]
fn halving_reductions_need_no_clamps() {
    let clamps = |first: u32| {
        remaining_clamps(|b| {
            let var = b.var(Type::U32);
            let id = b.builtin(Builtin::LocalId(0));
            let first = b.u32(first);
            b.set(var, first);
            b.finite_loop(|b, label| {
                let s = b.get(var);
                let continues = binary_constant(b, BinaryOp::Gt, s, 0);
                b.if_else(continues, |_| (), |b| b.break_to(label));
                let active = b.binary(BinaryOp::Lt, id, s);
                b.if_then(active, |b| {
                    let other = b.binary(BinaryOp::Add, id, s);
                    access(b, other);
                });
                let half = binary_constant(b, BinaryOp::Shr, s, 1);
                b.set(var, half);
            });
        })
    };
    assert_eq!((clamps(128), clamps(192), clamps(193)), (0, 0, 1));
}

/// `if id op step { a[id - step] }`
#[test]
fn ordered_differences_do_not_wrap() {
    let clamps = |op| {
        remaining_clamps(|b| {
            let id = b.builtin(Builtin::LocalId(0));
            let step = unknown(b);
            let condition = b.binary(op, id, step);
            b.if_then(condition, |b| {
                let before = b.binary(BinaryOp::Sub, id, step);
                access(b, before);
            });
        })
    };
    use BinaryOp::{Eq, Ge, Gt, Le, Lt, Ne};
    assert_eq!([Ge, Gt, Lt, Le, Ne].map(clamps), [0, 0, 1, 1, 1]);
    assert_eq!(clamps(Eq), 0, "the difference is zero");
}

/// `toggle = sum - toggle` in each iteration; initially 0.
#[test]
fn toggles_are_bounded_by_both_values() {
    let clamps = |sum: u32| {
        remaining_clamps(|b| {
            let toggle = b.var(Type::U32);
            let id = b.builtin(Builtin::LocalId(0));
            b.loop_(|b, label| {
                let now = b.get(toggle);
                access(b, now);
                let sum = b.u32(sum);
                let next = b.binary(BinaryOp::Sub, sum, now);
                b.set(toggle, next);
                let done = b.binary(BinaryOp::Eq, id, sum);
                b.if_then(done, |b| b.break_to(label));
            });
        })
    };
    assert_eq!((clamps(1), clamps(255), clamps(256)), (0, 0, 1));
}

/// The exit condition of an outer loop does not bound an assignment in an inner loop.
#[test]
fn inner_counters_are_unbounded_outside() {
    let remaining = remaining_clamps(|b| {
        let var = b.var(Type::U32);
        let limit = unknown(b);
        b.finite_loop(|b, label| {
            let i = b.get(var);
            access(b, i);
            let continues = binary_constant(b, BinaryOp::Lt, i, 16);
            b.if_else(continues, |_| (), |b| b.break_to(label));
            b.finite_loop(|b, label| {
                let i = b.get(var);
                access(b, i);
                let next = binary_constant(b, BinaryOp::Add, i, 1);
                b.set(var, next);
                let done = b.binary(BinaryOp::Gt, next, limit);
                b.if_then(done, |b| b.break_to(label));
            });
        });
    });
    assert_eq!(remaining, 2);
}

#[test]
fn variables_have_the_assigned_range() {
    let clamps = |other: u32| {
        remaining_clamps(|b| {
            let var = b.var(Type::U32);
            let x = unknown(b);
            let condition = b.convert(Type::Bool, x);
            let (some, other) = (b.u32(254), b.u32(other));
            b.set(var, some);
            b.scope(|b, label| {
                b.if_then(condition, |b| {
                    b.set(var, other);
                    b.break_to(label);
                });
                store_result(b, 1, x);
            });
            let index = b.get(var);
            access(b, index);
        })
    };
    assert_eq!((clamps(7), clamps(256)), (0, 1));
}
