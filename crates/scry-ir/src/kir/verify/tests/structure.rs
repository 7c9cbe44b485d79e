//! Tests of the rules of declarations, blocks and the visibility of values.

use super::support::{assert_error, assert_valid, builder, value_of, verify_built, verify_changed};
use crate::kir::{
    AddressSpace, Builder, Const, Definition, Inst, Kir, Label, Place, Stmt, Type, UnaryOp, Value,
    Var, VerifyErrorKind, random, verify,
};

/// A valid kernel.
fn valid_kernel() -> Kir {
    builder().0.finish()
}

#[test]
fn random_kernels_are_valid() {
    for seed in 0..500 {
        let kir = random::kernel(seed, true);
        assert_eq!(verify(&kir), Ok(()), "{kir}");
    }
}

#[test]
fn declarations_are_checked() {
    let size = verify_changed(|kir| kir.workgroup_size[1] = 0);
    assert_eq!(
        size,
        Err("the workgroup size is [64, 0, 1], but each axis must be 1 to 65536".to_owned())
    );
    for (size, error) in [
        ([1 << 17, 1, 1], "the workgroup size is [131072, 1, 1], but each axis must be 1 to 65536"),
        (
            [u32::MAX; 3],
            "the workgroup size is [4294967295, 4294967295, 4294967295], but each axis must be 1 \
             to 65536",
        ),
    ] {
        assert_eq!(verify_changed(|kir| kir.workgroup_size = size), Err(error.to_owned()));
    }
    let labels = verify_changed(|kir| kir.labels = u32::MAX);
    assert_eq!(labels, Err("4294967295 labels are more than 4194304".to_owned()));
    let labels = verify_changed(|kir| kir.labels = 0);
    assert_eq!(labels, Err("the kernel's own label is not counted".to_owned()));
    let arrays: [fn(&mut Kir); 2] = [|kir| kir.workgroup[0].len = 0, |kir| kir.locals[0].len = 0];
    for arrays in arrays {
        let length = verify_changed(arrays);
        assert_eq!(length, Err("there is an array of length zero".to_owned()));
    }
}

#[test]
fn names_are_printable() {
    let error = verify(&Kir { name: "a\nb".to_owned(), ..valid_kernel() }).unwrap_err();
    assert_eq!(error.to_string(), "kernel a\\nb: \"a\\nb\" is not a name");
    for name in ["", "a b", "a,b", "a\0"] {
        let result = verify_changed(|kir| kir.buffers[1].name = name.to_owned());
        assert_eq!(result, Err(format!("{name:?} is not a name of a buffer")));
    }
}

#[test]
fn deep_nesting_is_rejected_without_recursion() {
    let nested = |depth| {
        let mut body = Vec::new();
        for label in (1..=depth).rev() {
            body = vec![Stmt::Scope { label: Label(label), body }];
        }
        verify(&Kir { body, labels: depth + 1, ..valid_kernel() })
    };
    assert_eq!(nested(1200), Ok(()));
    let error = nested(1201).unwrap_err();
    assert_eq!((error.kind, error.position), (VerifyErrorKind::TooLarge, Some(1200)));
    assert_eq!(error.message, "blocks are nested more than 1200 deep");
}

#[test]
fn definitions_without_statement_are_checked() {
    let unused = |definition| {
        verify_changed(|kir| {
            kir.values.push(definition);
        })
    };
    let ty = Type::U32;
    let inst = Inst::Unary(UnaryOp::Neg, Value(99));
    let missing = unused(Definition { ty, inst });
    assert_eq!(missing, Err("`%10: u32 = neg %99`: %99 has no definition".to_owned()));
    let variable = unused(Definition { ty, inst: Inst::Get(Var(5)) });
    assert_eq!(variable, Err("`%10: u32 = v5`: variable v5 is not declared".to_owned()));
    let place = Place::new(AddressSpace::Local(7), None, 0, 0);
    let memory = unused(Definition { ty, inst: Inst::Load { place, count: 1 } });
    assert_eq!(memory, Err("`%10: u32 = load local7[0]`: local7 is not declared".to_owned()));
    let length =
        unused(Definition { ty, inst: Inst::ArrayLength { binding: 2, offset: 0, stride: 4 } });
    assert!(length.is_err_and(|error| error.ends_with("binding2 is not declared")));
    assert_eq!(unused(Definition { ty, inst: Inst::Unary(UnaryOp::Sqrt, Value(4)) }), Ok(()));
}

#[test]
fn long_statements_are_abbreviated() {
    let error = verify_changed(|kir| {
        let values = vec![Value(4); 1000];
        let place = Place::new(AddressSpace::Binding(1), None, 0, 0);
        kir.body.push(Stmt::Store { place, values, at: None });
    })
    .unwrap_err();
    assert!(error.len() < 400 && error.contains("…`: 1000 values are accessed"), "{error}");
}

#[test]
fn values_are_computed_before_use() {
    let late = verify_changed(|kir| {
        let inst = Inst::Const(Const::u32(1));
        kir.values.push(Definition { ty: Type::U32, inst });
        kir.body.extend([Stmt::Set(Var(0), Value(10)), Stmt::Let(Value(10))]);
    });
    assert_eq!(late, Err("`v0 = %10`: %10 is not computed before".to_owned()));
    assert_error("`v0 = %99`: %99 has no definition", |b, _| b.set(Var(0), Value(99)));
    assert_error("`%99 = ?`: %99 has no definition", |b, _| b.push(Stmt::Let(Value(99))));
}

#[test]
fn values_are_computed_once() {
    assert_error("`%10: u32 = 1`: %10 is computed twice", |b, _| {
        let one = b.u32(1);
        b.push(Stmt::Let(one));
    });
}

#[test]
fn values_are_visible_in_nested_blocks() {
    assert_valid(|b, v| {
        let one = b.u32(1);
        b.if_then(value_of(v, Type::Bool), |b| b.loop_(|b, _| b.set(Var(0), one)));
    });
    for kind in 0..3 {
        assert_error("`v0 = %10`: %10 is not visible here", |b, v| {
            let mut inside = Value(0);
            match kind {
                0 => b.if_then(value_of(v, Type::Bool), |b| inside = b.u32(1)),
                1 => b.if_else(value_of(v, Type::Bool), |_| (), |b| inside = b.u32(1)),
                _ => b.loop_(|b, _| inside = b.u32(1)),
            }
            b.set(Var(0), inside);
        });
    }
    assert_error("`v0 = %10`: %10 is not visible here", |b, v| {
        let mut inside = Value(0);
        let condition = value_of(v, Type::Bool);
        b.open();
        inside.0 = b.u32(1).0;
        let then_block = b.close();
        let else_block = vec![Stmt::Set(Var(0), inside)];
        b.push(Stmt::If { condition, then_block, else_block, at: None });
    });
}

/// Verifies a kernel that computes a value in a scope, and uses it after the scope. The computation
/// is `before` or after an exit, from the outer scope if `exits_outer`. Both are directly in the
/// outer scope (`within` is 0), in a nested scope (1) or in a branch (2).
fn after_scope(before: bool, within: usize, exits_outer: bool) -> Result<(), String> {
    verify_built(|b, v| {
        let condition = value_of(v, Type::Bool);
        let mut inside = Value(0);
        b.scope(|b, outer| {
            let mut body = |b: &mut Builder, inner: Label| {
                let label = if exits_outer { outer } else { inner };
                if before {
                    inside = b.u32(1);
                }
                b.if_then(condition, |b| b.break_to(label));
                if !before {
                    inside = b.u32(1);
                }
            };
            match within {
                0 => body(b, outer),
                1 => b.scope(body),
                _ => b.if_then(condition, |b| body(b, outer)),
            }
        });
        b.set(Var(0), inside);
    })
}

#[test]
fn values_before_scope_exits_stay_visible() {
    let hidden = Err("`v0 = %10`: %10 is not visible here".to_owned());
    for (within, exits_outer) in [(0, true), (1, true), (1, false)] {
        assert_eq!(after_scope(true, within, exits_outer), Ok(()), "{within} {exits_outer}");
        assert_eq!(after_scope(false, within, exits_outer), hidden, "{within} {exits_outer}");
    }
    assert_eq!(after_scope(true, 2, true), hidden);
}

#[test]
fn labels_are_unique_and_enclosing() {
    assert_error("`L1: scope`: L1 is the label of another statement", |b, _| {
        b.scope(|_, _| ());
        b.push(Stmt::Scope { label: Label(1), body: Vec::new() });
    });
    assert_error("`L0: loop`: L0 is the kernel's own label", |b, _| {
        b.push(Stmt::Loop { label: Label(0), body: Vec::new(), finite: false });
    });
    assert_error("`L7: scope`: L7 is not below 1, the number of labels", |b, _| {
        b.push(Stmt::Scope { label: Label(7), body: Vec::new() });
    });
    assert_error("`break L1`: no enclosing loop or scope has label L1", |b, _| {
        b.scope(|_, _| ());
        b.break_to(Label(1));
    });
    assert_valid(|b, _| {
        b.loop_(|b, outer| b.loop_(|b, _| b.break_to(outer)));
        b.break_to(Label::KERNEL);
    });
}

#[test]
fn exits_end_a_block() {
    let result = verify_changed(|kir| kir.body.insert(0, Stmt::Break(Label::KERNEL)));
    assert_eq!(result, Err("`break kernel`: statements follow in the block".to_owned()));
}

#[test]
fn operands_of_instructions_are_defined() {
    let result = verify_changed(|kir| {
        let inst = Inst::Unary(UnaryOp::Neg, Value(11));
        kir.values.push(Definition { ty: Type::U32, inst });
        kir.body.push(Stmt::Let(Value(10)));
    });
    assert_eq!(result, Err("`%10: u32 = neg %11`: %11 has no definition".to_owned()));
}
