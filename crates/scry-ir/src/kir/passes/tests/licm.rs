//! Tests of LICM, if-conversion and the simplification of control flow.

use super::super::super::{
    AddressSpace, BinaryOp, Block, Builder, Builtin, Inst, Kir, Label, Place, Type, UnaryOp, Value,
};
use super::super::{
    if_conversion::convert_branches, licm::hoist, optimise, simplify_control::simplify,
};
use super::support::{all_insts, count_insts, loop_body, store_result};
use crate::Access;

/// Returns a kernel after LICM: a loop of `body`, a store and an exit. `body` gets the loop's
/// label, a uniform value and a condition. Buffer 0 is read-only, buffer 1 is written.
fn hoist_from_loop(body: impl FnOnce(&mut Builder, Label, [Value; 2])) -> Kir {
    let mut b = Builder::new("test", [64, 1, 1]);
    b.buffer(Access::Read);
    let out = b.buffer(Access::ReadWrite);
    let (x, y) = (b.builtin(Builtin::GroupId(0)), b.builtin(Builtin::LocalId(0)));
    let condition = b.binary(BinaryOp::Lt, x, y);
    b.finite_loop(|b, label| {
        body(b, label, [x, condition]);
        store_result(b, out, y);
        b.if_then(condition, |b| b.break_to(label));
    });
    let mut kir = b.finish();
    hoist(&mut kir);
    kir
}

/// Returns whether no instruction is left in the loop.
fn is_all_hoisted(kir: &Kir) -> bool {
    all_insts(kir, loop_body(kir)).is_empty()
}

/// Loads from a fixed address of the read-only buffer.
fn load_fixed(b: &mut Builder) {
    b.load(Type::U32, Place::new(AddressSpace::Binding(0), None, 4, 0), 2);
}

#[test]
fn invariants_are_hoisted() {
    assert!(is_all_hoisted(&hoist_from_loop(|b, _, [x, _]| {
        let sum = b.binary(BinaryOp::Add, x, x);
        b.binary(BinaryOp::Mul, sum, x);
    })));
}

#[test]
fn costly_functions_stay_in_branches() {
    assert!(is_all_hoisted(&hoist_from_loop(|b, _, [x, condition]| {
        b.if_then(condition, |b| {
            b.binary(BinaryOp::Add, x, x);
        });
    })));
    let kir = hoist_from_loop(|b, _, [x, condition]| {
        let float = b.convert(Type::F32, x);
        b.if_then(condition, |b| {
            b.unary(UnaryOp::Sin, float);
        });
    });
    assert!(matches!(all_insts(&kir, loop_body(&kir))[..], [Inst::Unary(UnaryOp::Sin, _)]));
}

#[test]
fn unconditional_loads_are_hoisted() {
    assert!(is_all_hoisted(&hoist_from_loop(|b, _, _| load_fixed(b))));
    assert!(!is_all_hoisted(&hoist_from_loop(
        |b, _, [_, condition]| b.if_then(condition, load_fixed)
    )));
    assert!(!is_all_hoisted(&hoist_from_loop(|b, label, [_, condition]| {
        b.if_then(condition, |b| b.break_to(label));
        load_fixed(b);
    })));
    assert!(is_all_hoisted(&hoist_from_loop(|b, _, [_, condition]| {
        b.scope(|b, label| b.if_then(condition, |b| b.break_to(label)));
        load_fixed(b);
    })));
    assert!(!is_all_hoisted(&hoist_from_loop(|b, _, [_, condition]| {
        b.scope(|b, label| {
            b.if_then(condition, |b| b.break_to(label));
            load_fixed(b);
        });
    })));
}

/// Adds statements that may depend on a condition.
type Write = fn(&mut Builder, Value);

/// The load is never executed if the loop before it does not terminate, however deeply it is
/// nested.
#[test]
fn loads_after_endless_loops_stay() {
    let endless = |b: &mut Builder, condition| {
        b.loop_(|b, label| b.if_then(condition, |b| b.break_to(label)));
    };
    let nested: [fn(&mut Builder, Value, Write); 4] = [
        |b, condition, write| write(b, condition),
        |b, condition, write| b.if_then(condition, |b| write(b, condition)),
        |b, condition, write| b.scope(|b, _| write(b, condition)),
        |b, condition, write| {
            b.finite_loop(|b, label| {
                write(b, condition);
                b.break_to(label);
            });
        },
    ];
    let finite = |b: &mut Builder, condition| {
        b.finite_loop(|b, label| b.if_then(condition, |b| b.break_to(label)));
    };
    for (nth, nest) in nested.into_iter().enumerate() {
        let loads_stay = |inner: Write| {
            let kir = hoist_from_loop(|b, _, [_, condition]| {
                nest(b, condition, inner);
                load_fixed(b);
            });
            !is_all_hoisted(&kir)
        };
        assert!(loads_stay(endless) && !loads_stay(finite), "nesting {nth}");
    }
}

#[test]
fn clamped_loads_are_always_hoisted() {
    let clamped = |stride| {
        hoist_from_loop(|b, label, [x, condition]| {
            b.if_then(condition, |b| b.break_to(label));
            let length = b.array_length(0, 0, 4);
            let one = b.u32(1);
            let last = b.binary(BinaryOp::Sub, length, one);
            let index = b.binary(BinaryOp::Min, x, last);
            b.load(Type::U32, Place::new(AddressSpace::Binding(0), Some(index), stride, 0), 1);
        })
    };
    assert!(is_all_hoisted(&clamped(4)));
    assert!(!is_all_hoisted(&clamped(8)), "the index is clamped for another stride");
}

/// The minimum size is 16 bytes.
#[test]
fn loads_within_minimum_size_are_hoisted() {
    let sized = |limit: Option<u32>, offset| {
        hoist_from_loop(|b, label, [x, condition]| {
            b.set_buffer_min_size(0, 16);
            b.if_then(condition, |b| b.break_to(label));
            let index = limit.map(|limit| {
                let limit = b.u32(limit);
                b.binary(BinaryOp::Min, x, limit)
            });
            b.load(Type::U32, Place::new(AddressSpace::Binding(0), index, 4, offset), 2);
        })
    };
    assert!(
        is_all_hoisted(&sized(None, 8))
            && is_all_hoisted(&sized(Some(2), 0))
            && is_all_hoisted(&sized(Some(1), 4))
    );
    for (limit, offset) in [(None, 12), (Some(3), 0), (Some(1), 8), (Some(u32::MAX), 0)] {
        assert!(!is_all_hoisted(&sized(limit, offset)), "{limit:?} {offset}");
    }
}

#[test]
fn writable_memory_is_loaded_every_iteration() {
    let load =
        |b: &mut Builder| b.load(Type::U32, Place::new(AddressSpace::Binding(1), None, 4, 0), 1);
    assert!(!is_all_hoisted(&hoist_from_loop(|b, _, _| drop(load(b)))));
}

#[test]
fn invariant_variable_reads_are_hoisted() {
    let mut b = Builder::new("test", [64, 1, 1]);
    let out = b.buffer(Access::ReadWrite);
    let (outer, inner) = (b.var(Type::U32), b.var(Type::U32));
    let id = b.builtin(Builtin::LocalId(0));
    let condition = b.convert(Type::Bool, id);
    b.finite_loop(|b, label| {
        b.finite_loop(|b, label| {
            let (x, y) = (b.get(outer), b.get(inner));
            let sum = b.binary(BinaryOp::Add, x, y);
            b.set(inner, sum);
            b.if_then(condition, |b| b.break_to(label));
        });
        let x = b.get(outer);
        let next = b.binary(BinaryOp::Add, x, id);
        b.set(outer, next);
        store_result(b, out, next);
        b.if_then(condition, |b| b.break_to(label));
    });
    let mut kir = b.finish();
    hoist(&mut kir);
    let unnested = |block: &Block| block.iter().filter(|stmt| stmt.blocks().count() == 0).count();
    let body = loop_body(&kir);
    // The outer variable is read before the inner loop, and again after it.
    assert_eq!((unnested(body), all_insts(&kir, body).len()), (5, 5), "{body:?}");
}

#[test]
fn redundant_exits_are_removed() {
    let mut b = Builder::new("test", [64, 1, 1]);
    let out = b.buffer(Access::ReadWrite);
    let id = b.builtin(Builtin::LocalId(0));
    let condition = b.convert(Type::Bool, id);
    b.scope(|b, outer| {
        b.loop_(|b, iteration| {
            store_result(b, out, id);
            b.break_to(iteration);
        });
        b.scope(|b, inner| {
            b.if_else(
                condition,
                |b| {
                    store_result(b, out, id);
                    b.break_to(outer);
                },
                |b| b.break_to(inner),
            );
        });
    });
    let mut kir = b.finish();
    simplify(&mut kir);
    assert!(kir.body.iter().all(|stmt| stmt.blocks().flatten().all(|stmt| {
        stmt.blocks().count() == 0 && !matches!(stmt, super::super::super::Stmt::Break(_))
    })));
    assert_eq!(kir.body.len(), 4, "two values, a store and a branch");
}

#[test]
fn small_branches_become_selects() {
    let mut b = Builder::new("test", [64, 1, 1]);
    let out = b.buffer(Access::ReadWrite);
    let var = b.var(Type::U32);
    let id = b.builtin(Builtin::LocalId(0));
    let condition = b.convert(Type::Bool, id);
    b.if_then(condition, |b| {
        let old = b.get(var);
        let sum = b.binary(BinaryOp::Add, old, id);
        b.set(var, sum);
    });
    b.if_then(condition, |b| store_result(b, out, id));
    let mut kir = b.finish();
    convert_branches(&mut kir);
    let branches = kir.body.iter().filter(|stmt| stmt.blocks().count() > 0).count();
    assert_eq!((branches, count_insts(&kir, |inst| matches!(inst, Inst::Select(..)))), (1, 1));
}

/// `if a { t = b } else { t = false }; if t { … }` becomes `if a & b { … }`.
#[test]
fn short_circuit_and_becomes_and() {
    let mut b = Builder::new("test", [64, 1, 1]);
    let out = b.buffer(Access::ReadWrite);
    let var = b.var(Type::Bool);
    let (x, y) = (b.builtin(Builtin::GroupId(0)), b.builtin(Builtin::GroupId(1)));
    let limit = b.u32(10);
    let first = b.binary(BinaryOp::Lt, x, limit);
    b.if_else(
        first,
        |b| {
            let second = b.binary(BinaryOp::Lt, y, limit);
            b.set(var, second);
        },
        |b| {
            let never = b.constant(super::super::super::Const::bool(false));
            b.set(var, never);
        },
    );
    let both = b.get(var);
    b.if_then(both, |b| store_result(b, out, x));
    let mut kir = b.finish();
    optimise(&mut kir);
    assert!(kir.vars.is_empty());
    assert_eq!(super::support::count_binary(&kir, BinaryOp::And), 1);
}

#[test]
fn matrix_products_and_users_stay() {
    let kir = hoist_from_loop(|b, _, [x, _]| {
        let one = b.convert(Type::F32, x);
        for result in b.multiply_fragments([one; 4], [one; 2], [one; 4]) {
            b.unary(UnaryOp::Neg, result);
        }
    });
    let kinds = all_insts(&kir, loop_body(&kir));
    assert!(matches!(kinds[..], [Inst::MultiplyFragments { .. }, ..]), "{kinds:?}");
    assert_eq!(kinds.len(), 5);
}

#[test]
fn results_of_products_stay_together() {
    let mut b = Builder::new("test", [64, 1, 1]);
    let out = b.buffer(Access::ReadWrite);
    let lane = b.builtin(Builtin::SubgroupLane);
    let unused = b.builtin(Builtin::GroupId(2));
    b.binary(BinaryOp::Add, unused, lane);
    let one = b.convert(Type::F32, lane);
    let results = b.multiply_fragments([one; 4], [one; 2], [one; 4]);
    let last = b.convert(Type::U32, results[3]);
    store_result(&mut b, out, last);
    let mut kir = b.finish();
    optimise(&mut kir);
    assert_eq!(crate::kir::verify(&kir), Ok(()));
    let extras = kir.values.iter().filter(|value| matches!(value.inst, Inst::Extra(..)));
    assert_eq!(extras.count(), 3);
}
