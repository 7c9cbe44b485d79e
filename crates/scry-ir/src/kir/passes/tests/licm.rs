//! Values that are hoisted out of loops, and values that must not be.

use super::super::super::{
    AddressSpace, BinaryOp, Block, Builder, Builtin, Inst, Kir, Label, Place, Type, UnaryOp, Value,
};
use super::super::{
    if_conversion::convert_branches, licm::hoist, optimise, simplify_control::simplify,
};
use super::support::{count, insts, loop_body, show};

/// A loop with `body` and an exit after it; one buffer is read, the other one written.
fn around(body: impl FnOnce(&mut Builder, Label, [Value; 2])) -> Kir {
    let mut b = Builder::new("test", [64, 1, 1]);
    b.buffer(false);
    let out = b.buffer(true);
    let (x, y) = (b.builtin(Builtin::GroupId(0)), b.builtin(Builtin::LocalId(0)));
    let condition = b.binary(BinaryOp::Lt, x, y);
    b.repeat(true, |b, label| {
        body(b, label, [x, condition]);
        show(b, out, y);
        b.if_then(condition, |b| b.leave(label));
    });
    let mut kir = b.finish();
    hoist(&mut kir);
    kir
}

/// Returns whether the loop contains only its own exit condition.
fn moved(kir: &Kir) -> bool {
    insts(kir, loop_body(kir)).is_empty()
}

fn fixed(b: &mut Builder) {
    b.load(Type::U32, Place::new(AddressSpace::Binding(0), None, 4, 0), 2);
}

#[test]
fn invariants_are_hoisted() {
    assert!(moved(&around(|b, _, [x, _]| {
        let sum = b.binary(BinaryOp::Add, x, x);
        b.binary(BinaryOp::Mul, sum, x);
    })));
}

#[test]
fn branches_keep_costly_functions_only() {
    assert!(moved(&around(|b, _, [x, condition]| {
        b.if_then(condition, |b| {
            b.binary(BinaryOp::Add, x, x);
        });
    })));
    let kir = around(|b, _, [x, condition]| {
        let float = b.convert(Type::F32, x);
        b.if_then(condition, |b| {
            b.unary(UnaryOp::Sin, float);
        });
    });
    assert!(matches!(insts(&kir, loop_body(&kir))[..], [Inst::Unary(UnaryOp::Sin, _)]));
}

#[test]
fn certain_first_iteration_loads_are_hoisted() {
    assert!(moved(&around(|b, _, _| fixed(b))));
    assert!(!moved(&around(|b, _, [_, condition]| b.if_then(condition, fixed))));
    assert!(!moved(&around(|b, label, [_, condition]| {
        b.if_then(condition, |b| b.leave(label));
        fixed(b);
    })));
    assert!(moved(&around(|b, _, [_, condition]| {
        b.scope(|b, label| b.if_then(condition, |b| b.leave(label)));
        fixed(b);
    })));
    assert!(!moved(&around(|b, _, [_, condition]| {
        b.scope(|b, label| {
            b.if_then(condition, |b| b.leave(label));
            fixed(b);
        });
    })));
}

#[test]
fn clamped_loads_move_from_anywhere() {
    let clamped = |stride| {
        around(|b, label, [x, condition]| {
            b.if_then(condition, |b| b.leave(label));
            let length = b.array_length(0, 0, 4);
            let one = b.u32(1);
            let last = b.binary(BinaryOp::Sub, length, one);
            let index = b.binary(BinaryOp::Min, x, last);
            b.load(Type::U32, Place::new(AddressSpace::Binding(0), Some(index), stride, 0), 1);
        })
    };
    assert!(moved(&clamped(4)));
    assert!(!moved(&clamped(8)), "the index is clamped for another stride");
}

/// The minimum size is 16 bytes.
#[test]
fn loads_within_minimum_size_are_hoisted() {
    let sized = |limit: Option<u32>, offset| {
        around(|b, label, [x, condition]| {
            b.buffer_size(0, 16);
            b.if_then(condition, |b| b.leave(label));
            let index = limit.map(|limit| {
                let limit = b.u32(limit);
                b.binary(BinaryOp::Min, x, limit)
            });
            b.load(Type::U32, Place::new(AddressSpace::Binding(0), index, 4, offset), 2);
        })
    };
    assert!(moved(&sized(None, 8)) && moved(&sized(Some(2), 0)) && moved(&sized(Some(1), 4)));
    for (limit, offset) in [(None, 12), (Some(3), 0), (Some(1), 8), (Some(u32::MAX), 0)] {
        assert!(!moved(&sized(limit, offset)), "{limit:?} {offset}");
    }
}

#[test]
fn writable_memory_is_loaded_every_iteration() {
    let load =
        |b: &mut Builder| b.load(Type::U32, Place::new(AddressSpace::Binding(1), None, 4, 0), 1);
    assert!(!moved(&around(|b, _, _| drop(load(b)))));
}

#[test]
fn invariant_variable_reads_are_hoisted() {
    let mut b = Builder::new("test", [64, 1, 1]);
    let out = b.buffer(true);
    let (outer, inner) = (b.var(Type::U32), b.var(Type::U32));
    let id = b.builtin(Builtin::LocalId(0));
    let condition = b.convert(Type::Bool, id);
    b.repeat(true, |b, label| {
        b.repeat(true, |b, label| {
            let (x, y) = (b.get(outer), b.get(inner));
            let sum = b.binary(BinaryOp::Add, x, y);
            b.set(inner, sum);
            b.if_then(condition, |b| b.leave(label));
        });
        let x = b.get(outer);
        let next = b.binary(BinaryOp::Add, x, id);
        b.set(outer, next);
        show(b, out, next);
        b.if_then(condition, |b| b.leave(label));
    });
    let mut kir = b.finish();
    hoist(&mut kir);
    let own = |block: &Block| block.iter().filter(|stmt| stmt.blocks().count() == 0).count();
    let body = loop_body(&kir);
    // The outer variable is read before the inner loop, and again after it.
    assert_eq!((own(body), insts(&kir, body).len()), (5, 5), "{body:?}");
}

#[test]
fn redundant_exits_are_removed() {
    let mut b = Builder::new("test", [64, 1, 1]);
    let out = b.buffer(true);
    let id = b.builtin(Builtin::LocalId(0));
    let condition = b.convert(Type::Bool, id);
    b.scope(|b, outer| {
        b.repeat(false, |b, iteration| {
            show(b, out, id);
            b.leave(iteration);
        });
        b.scope(|b, inner| {
            b.if_else(
                condition,
                |b| {
                    show(b, out, id);
                    b.leave(outer);
                },
                |b| b.leave(inner),
            );
        });
    });
    let mut kir = b.finish();
    simplify(&mut kir);
    assert!(kir.body.iter().all(|stmt| stmt.blocks().flatten().all(|stmt| {
        stmt.blocks().count() == 0 && !matches!(stmt, super::super::super::Stmt::Leave(_))
    })));
    assert_eq!(kir.body.len(), 4, "two values, a store and a branch");
}

#[test]
fn small_branches_become_selections() {
    let mut b = Builder::new("test", [64, 1, 1]);
    let out = b.buffer(true);
    let var = b.var(Type::U32);
    let id = b.builtin(Builtin::LocalId(0));
    let condition = b.convert(Type::Bool, id);
    b.if_then(condition, |b| {
        let old = b.get(var);
        let sum = b.binary(BinaryOp::Add, old, id);
        b.set(var, sum);
    });
    b.if_then(condition, |b| show(b, out, id));
    let mut kir = b.finish();
    convert_branches(&mut kir);
    let branches = kir.body.iter().filter(|stmt| stmt.blocks().count() > 0).count();
    assert_eq!((branches, count(&kir, |inst| matches!(inst, Inst::Select(..)))), (1, 1));
}

/// `t = a; if t { t = b }; if t { … }` is `if a & b { … }`.
#[test]
fn conditions_made_by_branches_are_conjunctions() {
    let mut b = Builder::new("test", [64, 1, 1]);
    let out = b.buffer(true);
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
    b.if_then(both, |b| show(b, out, x));
    let mut kir = b.finish();
    optimise(&mut kir);
    assert!(kir.vars.is_empty());
    assert_eq!(super::support::binaries(&kir, BinaryOp::And), 1);
}

#[test]
fn matrix_products_and_users_stay() {
    let kir = around(|b, _, [x, _]| {
        let one = b.convert(Type::F32, x);
        for result in b.multiply_fragments([one; 4], [one; 2], [one; 4]) {
            b.unary(UnaryOp::Neg, result);
        }
    });
    let kinds = insts(&kir, loop_body(&kir));
    assert!(matches!(kinds[..], [Inst::MultiplyFragments { .. }, ..]), "{kinds:?}");
    assert_eq!(kinds.len(), 5);
}

#[test]
fn results_of_products_stay_together() {
    let mut b = Builder::new("test", [64, 1, 1]);
    let out = b.buffer(true);
    let lane = b.builtin(Builtin::SubgroupLane);
    let unused = b.builtin(Builtin::GroupId(2));
    b.binary(BinaryOp::Add, unused, lane);
    let one = b.convert(Type::F32, lane);
    let results = b.multiply_fragments([one; 4], [one; 2], [one; 4]);
    let last = b.convert(Type::U32, results[3]);
    show(&mut b, out, last);
    let mut kir = b.finish();
    optimise(&mut kir);
    assert_eq!(crate::kir::verify(&kir), Ok(()));
    let extras = kir.values.iter().filter(|value| matches!(value.inst, Inst::Extra(..)));
    assert_eq!(extras.count(), 3);
}
