//! Redundant clamps are removed, and no others.

use super::super::super::{
    AddressSpace, BinaryOp, Builder, Builtin, Const, Label, Place, Type, Value,
};
use super::super::optimise;
use super::support::{binaries, show};

const SIZE: [u32; 3] = [64, 1, 1];

/// Returns the number of remaining clamps of the kernel that `make` builds.
fn clamps(make: impl FnOnce(&mut Builder)) -> usize {
    let mut b = Builder::new("test", SIZE);
    b.buffer(false);
    b.buffer(true);
    b.workgroup_array(Type::U32, 256);
    make(&mut b);
    let mut kir = b.finish();
    optimise(&mut kir);
    binaries(&kir, BinaryOp::Min)
}

/// Loads an element of a workgroup array of 256 elements, and stores it.
fn access(b: &mut Builder, index: Value) {
    let last = b.u32(255);
    let index = b.binary(BinaryOp::Min, index, last);
    let value = b.load(Type::U32, Place::new(AddressSpace::Workgroup(0), Some(index), 4, 0), 1)[0];
    show(b, 1, value);
}

/// The same for the first buffer, whose length is unknown.
fn access_buffer(b: &mut Builder, index: Value) {
    let length = b.array_length(0, 0, 4);
    let one = b.u32(1);
    let last = b.binary(BinaryOp::Sub, length, one);
    let index = b.binary(BinaryOp::Min, index, last);
    let value = b.load(Type::U32, Place::new(AddressSpace::Binding(0), Some(index), 4, 0), 1)[0];
    show(b, 1, value);
}

fn unknown(b: &mut Builder) -> Value {
    b.load(Type::U32, Place::new(AddressSpace::Binding(0), None, 4, 0), 1)[0]
}

fn with_constant(b: &mut Builder, op: BinaryOp, a: Value, constant: u32) -> Value {
    let constant = b.u32(constant);
    b.binary(op, a, constant)
}

/// Returns the number of remaining clamps of an index that is computed from an unknown number.
fn of_unknown(make: impl FnOnce(&mut Builder, Value) -> Value) -> usize {
    clamps(|b| {
        let x = unknown(b);
        let index = make(b, x);
        access(b, index);
    })
}

#[test]
fn local_positions_are_below_the_size() {
    let position = |b: &mut Builder, factor, summand| {
        let id = b.builtin(Builtin::LocalId(0));
        let product = with_constant(b, BinaryOp::Mul, id, factor);
        with_constant(b, BinaryOp::Add, product, summand)
    };
    let left = |factor, summand| {
        clamps(|b| {
            let index = position(b, factor, summand);
            access(b, index);
        })
    };
    assert_eq!((left(4, 3), left(4, 4), left(5, 0)), (0, 1, 1));
}

#[test]
fn masks_and_remainders_bound() {
    use BinaryOp::{And, Min, Rem, Shr};
    let left = |op, constant| of_unknown(|b, x| with_constant(b, op, x, constant));
    assert_eq!((left(And, 255), left(And, 256)), (0, 1));
    assert_eq!((left(Rem, 250), left(Rem, 257)), (0, 1));
    assert_eq!((left(Shr, 24), left(Shr, 23)), (0, 1));
    assert_eq!(left(Min, 7), 1, "one of both stays");
}

#[test]
fn sums_that_may_wrap_prove_nothing() {
    let left = |summand| {
        of_unknown(|b, x| {
            let low = with_constant(b, BinaryOp::And, x, 15);
            with_constant(b, BinaryOp::Sub, low, summand)
        })
    };
    assert_eq!((left(0), left(1)), (0, 1));
}

#[test]
fn conditions_bound_in_their_block_only() {
    let guarded = |limit: u32, inside: bool| {
        clamps(|b| {
            let x = unknown(b);
            let below = with_constant(b, BinaryOp::Lt, x, limit);
            b.if_then(below, |b| if inside { access(b, x) } else { show(b, 1, x) });
            if !inside {
                access(b, x);
            }
        })
    };
    assert_eq!((guarded(256, true), guarded(257, true), guarded(256, false)), (0, 1, 1));
}

#[test]
fn early_returns_bound_later_accesses() {
    let left = |op, of_buffer: bool| {
        clamps(|b| {
            let x = unknown(b);
            let limit = if of_buffer { b.array_length(0, 0, 4) } else { b.u32(256) };
            let outside = b.binary(op, x, limit);
            b.if_then(outside, |b| b.leave(Label::KERNEL));
            if of_buffer { access_buffer(b, x) } else { access(b, x) }
        })
    };
    assert_eq!((left(BinaryOp::Ge, false), left(BinaryOp::Gt, false)), (0, 1));
    assert_eq!((left(BinaryOp::Ge, true), left(BinaryOp::Gt, true)), (0, 1));
}

#[test]
fn lengths_of_other_arrays_prove_nothing() {
    let left = |binding, stride| {
        clamps(|b| {
            let x = unknown(b);
            let length = b.array_length(binding, 0, stride);
            let below = b.binary(BinaryOp::Lt, x, length);
            b.if_then(below, |b| access_buffer(b, x));
        })
    };
    assert_eq!((left(0, 4), left(1, 4), left(0, 2)), (0, 1, 1));
}

#[test]
fn neighbours_are_bounded_by_last_index() {
    let left = |less: u32, more: u32| {
        clamps(|b| {
            let x = unknown(b);
            let length = b.array_length(0, 0, 4);
            let limit = with_constant(b, BinaryOp::Sub, length, less);
            let below = b.binary(BinaryOp::Lt, x, limit);
            b.if_then(below, |b| {
                let next = with_constant(b, BinaryOp::Add, x, more);
                access_buffer(b, next);
            });
        })
    };
    assert_eq!((left(1, 1), left(1, 2)), (0, 1));
    assert_eq!(left(2, 2), 1, "of a length of one, two less is very much");
}

#[test]
fn both_of_two_conditions_bound() {
    let left = |op, holds: bool| {
        clamps(|b| {
            let (x, y) = (unknown(b), b.builtin(Builtin::GroupId(1)));
            let first = with_constant(b, BinaryOp::Lt, x, 16);
            let second = with_constant(b, BinaryOp::Lt, y, 16);
            let both = b.binary(op, first, second);
            let index = |b: &mut Builder| {
                let row = with_constant(b, BinaryOp::Mul, y, 16);
                let index = b.binary(BinaryOp::Add, row, x);
                access(b, index);
            };
            if holds { b.if_then(both, index) } else { b.if_else(both, |_| (), index) }
        })
    };
    assert_eq!((left(BinaryOp::And, true), left(BinaryOp::Or, true)), (0, 1));
    assert_eq!(left(BinaryOp::And, false), 1);
}

/// `for (var i = first; i op limit; i += step)`, with an access to `i + more`.
fn counted(ty: Type, first: i64, op: BinaryOp, limit: i64, step: i64, more: u32) -> usize {
    clamps(|b| {
        let var = b.var(ty);
        let first = b.constant(Const::int(ty, first));
        b.set(var, first);
        b.repeat(true, |b, label| {
            let i = b.get(var);
            let limit = b.constant(Const::int(ty, limit));
            let goes_on = b.binary(op, i, limit);
            b.if_else(goes_on, |_| (), |b| b.leave(label));
            let index = b.bitcast(Type::U32, i);
            let index = with_constant(b, BinaryOp::Add, index, more);
            access(b, index);
            let step = b.constant(Const::int(ty, step));
            let next = b.binary(BinaryOp::Add, i, step);
            b.set(var, next);
        });
    })
}

#[test]
fn counters_stay_between_their_ends() {
    use BinaryOp::{Ge, Gt, Le, Lt, Ne};
    assert_eq!(counted(Type::U32, 0, Lt, 256, 1, 0), 0);
    assert_eq!(counted(Type::U32, 0, Lt, 256, 1, 1), 1);
    assert_eq!(counted(Type::U32, 3, Le, 255, 7, 0), 0);
    assert_eq!(counted(Type::I32, 0, Lt, 256, 1, 0), 0);
    assert_eq!(counted(Type::I32, -1, Lt, 256, 1, 0), 1);
    assert_eq!(counted(Type::I32, 255, Ge, 0, -1, 0), 0);
    assert_eq!(counted(Type::I32, 256, Gt, 0, -1, 0), 1);
    assert_eq!(counted(Type::U32, 0, Ne, 256, 1, 0), 1, "not proven, though true");
}

/// With a step of one any limit keeps the counter from wrapping, with larger ones it may not.
#[test]
fn counters_that_may_wrap_prove_nothing() {
    let left = |step: i64| {
        clamps(|b| {
            let var = b.var(Type::I32);
            let limit = unknown(b);
            let limit = b.bitcast(Type::I32, limit);
            b.repeat(true, |b, label| {
                let i = b.get(var);
                let goes_on = b.binary(BinaryOp::Lt, i, limit);
                b.if_else(goes_on, |_| (), |b| b.leave(label));
                let (zero, last) = (b.constant(Const::i32(0)), b.u32(255));
                let natural = b.binary(BinaryOp::Max, i, zero);
                let index = b.bitcast(Type::U32, natural);
                let low = b.binary(BinaryOp::And, index, last);
                access(b, low);
                let step = b.constant(Const::int(Type::I32, step));
                let next = b.binary(BinaryOp::Add, i, step);
                b.set(var, next);
            });
        })
    };
    assert_eq!((left(1), left(2)), (0, 0), "the mask bounds");
    let natural = |step: i64| {
        let mut b = Builder::new("test", SIZE);
        b.buffer(false);
        b.buffer(true);
        let var = b.var(Type::I32);
        let limit = unknown(&mut b);
        let limit = b.bitcast(Type::I32, limit);
        b.repeat(true, |b, label| {
            let i = b.get(var);
            let goes_on = b.binary(BinaryOp::Lt, i, limit);
            b.if_else(goes_on, |_| (), |b| b.leave(label));
            let zero = b.constant(Const::i32(0));
            let natural = b.binary(BinaryOp::Max, i, zero);
            let shown = b.bitcast(Type::U32, natural);
            show(b, 1, shown);
            let step = b.constant(Const::int(Type::I32, step));
            let next = b.binary(BinaryOp::Add, i, step);
            b.set(var, next);
        });
        let mut kir = b.finish();
        optimise(&mut kir);
        binaries(&kir, BinaryOp::Max)
    };
    assert_eq!((natural(1), natural(2)), (0, 1));
}

/// `for (s = 128; s > 0; s >>= 1) { if id < s { a[id + s] } }`
#[test]
fn halving_reductions_need_no_clamps() {
    let left = |first: u32| {
        clamps(|b| {
            let var = b.var(Type::U32);
            let id = b.builtin(Builtin::LocalId(0));
            let first = b.u32(first);
            b.set(var, first);
            b.repeat(true, |b, label| {
                let s = b.get(var);
                let goes_on = with_constant(b, BinaryOp::Gt, s, 0);
                b.if_else(goes_on, |_| (), |b| b.leave(label));
                let active = b.binary(BinaryOp::Lt, id, s);
                b.if_then(active, |b| {
                    let other = b.binary(BinaryOp::Add, id, s);
                    access(b, other);
                });
                let half = with_constant(b, BinaryOp::Shr, s, 1);
                b.set(var, half);
            });
        })
    };
    assert_eq!((left(128), left(192), left(193)), (0, 0, 1));
}

/// `if id >= step { a[id - step] }`
#[test]
fn ordered_differences_do_not_wrap() {
    let left = |op| {
        clamps(|b| {
            let id = b.builtin(Builtin::LocalId(0));
            let step = unknown(b);
            let reaches = b.binary(op, id, step);
            b.if_then(reaches, |b| {
                let before = b.binary(BinaryOp::Sub, id, step);
                access(b, before);
            });
        })
    };
    use BinaryOp::{Eq, Ge, Gt, Le, Lt, Ne};
    assert_eq!([Ge, Gt, Lt, Le, Ne].map(left), [0, 0, 1, 1, 1]);
    assert_eq!(left(Eq), 0, "the difference is zero");
}

/// `side = c - side`, initially 0.
#[test]
fn toggles_have_two_values() {
    let left = |sum: u32| {
        clamps(|b| {
            let side = b.var(Type::U32);
            let id = b.builtin(Builtin::LocalId(0));
            b.repeat(false, |b, label| {
                let now = b.get(side);
                access(b, now);
                let sum = b.u32(sum);
                let next = b.binary(BinaryOp::Sub, sum, now);
                b.set(side, next);
                let done = b.binary(BinaryOp::Eq, id, sum);
                b.if_then(done, |b| b.leave(label));
            });
        })
    };
    assert_eq!((left(1), left(255), left(256)), (0, 0, 1));
}

/// The condition of an outer loop does not bound an assignment in an inner loop.
#[test]
fn inner_counters_are_unbounded_outside() {
    let left = clamps(|b| {
        let var = b.var(Type::U32);
        let more = unknown(b);
        b.repeat(true, |b, label| {
            let i = b.get(var);
            access(b, i);
            let goes_on = with_constant(b, BinaryOp::Lt, i, 16);
            b.if_else(goes_on, |_| (), |b| b.leave(label));
            b.repeat(true, |b, label| {
                let i = b.get(var);
                access(b, i);
                let next = with_constant(b, BinaryOp::Add, i, 1);
                b.set(var, next);
                let done = b.binary(BinaryOp::Gt, next, more);
                b.if_then(done, |b| b.leave(label));
            });
        });
    });
    assert_eq!(left, 2);
}

#[test]
fn variables_have_the_assigned_range() {
    let left = |other: u32| {
        clamps(|b| {
            let var = b.var(Type::U32);
            let x = unknown(b);
            let condition = b.convert(Type::Bool, x);
            let (some, other) = (b.u32(254), b.u32(other));
            b.set(var, some);
            b.scope(|b, label| {
                b.if_then(condition, |b| {
                    b.set(var, other);
                    b.leave(label);
                });
                show(b, 1, x);
            });
            let index = b.get(var);
            access(b, index);
        })
    };
    assert_eq!((left(7), left(256)), (0, 1));
}
