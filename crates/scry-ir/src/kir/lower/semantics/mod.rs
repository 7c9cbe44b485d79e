//! Tests of operators and functions, by evaluating the instructions that they are lowered to.
//! Expected values are computed from the text of WGSL's specification.

mod bits;
mod convert;
mod geometry;
mod matrix;
mod numeric;
mod operators;
mod pack;

use half::f16;
use naga::MathFunction;

use super::math::math;
use super::shape::{Shape, Shaped};
use crate::ShaderError;
use crate::kir::{Builder, Const, Kir, Stmt, Type, Value, interpret};

/// A Rust type that exists in WGSL.
trait Scalar: Copy {
    fn constant(self) -> Const;
}

macro_rules! scalars {
    ($($scalar:ty: |$value:ident| $constant:expr;)*) => {$(
        impl Scalar for $scalar {
            fn constant(self) -> Const {
                let $value = self;
                $constant
            }
        }
    )*};
}

scalars! {
    bool: |value| Const::bool(value);
    i16: |value| Const::int(Type::I16, value.into());
    u16: |value| Const::int(Type::U16, value.into());
    i32: |value| Const::i32(value);
    u32: |value| Const::u32(value);
    i64: |value| Const::int(Type::I64, value);
    u64: |value| Const::int(Type::U64, value as i64);
    f16: |value| Const { ty: Type::F16, bits: value.to_bits().into() };
    f32: |value| Const::f32(value);
    f64: |value| Const::f64(value);
}

/// A constant operand: its scalars, and their shape.
struct Operand {
    shape: Shape,
    parts: Vec<Const>,
}

fn scalar<T: Scalar>(x: T) -> Operand {
    let part = x.constant();
    Operand { shape: Shape::Scalar(part.ty), parts: vec![part] }
}

fn vector<T: Scalar>(parts: &[T]) -> Operand {
    let parts = constants(parts);
    Operand { shape: Shape::Vector { len: parts.len() as u8, ty: parts[0].ty }, parts }
}

/// Returns a matrix of these columns.
fn matrix<T: Scalar, const R: usize>(columns: &[[T; R]]) -> Operand {
    let parts = constants(columns.as_flattened());
    let (columns, rows) = (columns.len() as u8, R as u8);
    Operand { shape: Shape::Matrix { columns, rows, ty: parts[0].ty }, parts }
}

fn constants<T: Scalar>(parts: &[T]) -> Vec<Const> {
    parts.iter().map(|part| part.constant()).collect()
}

/// Lowers an operation on operands.
type Lower<'f> = dyn Fn(&mut Builder, &[Shaped<'_>]) -> Result<Vec<Value>, ShaderError> + 'f;

/// Lowers an operation on these operands; returns the value of its result.
fn evaluate(lower: &Lower<'_>, operands: &[Operand]) -> Result<Vec<Const>, ShaderError> {
    let mut b = Builder::new("test", [1, 1, 1]);
    let args: Vec<Vec<_>> = (operands.iter())
        .map(|operand| operand.parts.iter().map(|&part| b.constant(part)).collect())
        .collect();
    let args: Vec<_> = (operands.iter().zip(&args))
        .map(|(operand, values)| Shaped { shape: operand.shape, values })
        .collect();
    let results = lower(&mut b, &args)?;
    let kir = b.finish();
    let values = evaluate_kernel(&kir);
    Ok(results.iter().map(|result| values[result.index()]).collect())
}

/// Returns all values of a kernel without control flow or memory accesses.
fn evaluate_kernel(kir: &Kir) -> Vec<Const> {
    let mut values: Vec<Const> = Vec::new();
    for stmt in &kir.body {
        let Stmt::Let(value) = stmt else { panic!("{stmt:?} is not a computation") };
        assert_eq!(value.index(), values.len(), "each value is computed once, in order");
        let result = interpret::scalar::instruction(kir, *value, |value| values[value.index()]);
        assert_eq!(result.ty, kir.ty(*value), "{:?}", kir.inst(*value));
        values.push(result);
    }
    values
}

/// Returns the results of a function.
fn call(fun: MathFunction, operands: &[Operand]) -> Vec<Const> {
    evaluate(&|b, args| math(b, fun, args), operands).expect("the function accepts these arguments")
}

/// Asserts that a function returns exactly these values, bit by bit.
#[track_caller]
fn assert_evaluates<T: Scalar>(fun: MathFunction, operands: &[Operand], expected: &[T]) {
    assert_eq!(call(fun, operands), constants(expected), "{fun:?}");
}

/// Asserts that a function returns these values up to a relative error, which is absolute for
/// values below 1.
#[track_caller]
fn assert_evaluates_near(fun: MathFunction, operands: &[Operand], expected: &[f64], error: f64) {
    let actual: Vec<_> = call(fun, operands).into_iter().map(interpret::scalar::real).collect();
    assert_eq!(actual.len(), expected.len(), "{fun:?}");
    for (&actual, &expected) in actual.iter().zip(expected) {
        let allowed = error * expected.abs().max(1.0);
        assert!((actual - expected).abs() <= allowed, "{fun:?}: {actual}, expected {expected}");
    }
}

#[test]
fn errors_name_unsupported_functions() {
    for (fun, name) in [(MathFunction::Outer, "Outer"), (MathFunction::Inverse, "Inverse")] {
        let operands = [matrix(&[[1f32, 0.0], [0.0, 1.0]])];
        let error = evaluate(&|b, args| math(b, fun, args), &operands).unwrap_err();
        assert_eq!(error.kind, crate::ShaderErrorKind::Compiler);
        assert!(error.message.contains(name), "{}", error.message);
    }
}

#[test]
fn wrong_arguments_are_rejected() {
    let cases = [
        (MathFunction::Clamp, vec![scalar(1f32)]),
        (MathFunction::Cross, vec![vector(&[1f32, 2.0]), vector(&[1f32, 2.0])]),
        (MathFunction::Determinant, vec![scalar(1f32)]),
        (MathFunction::Pack4xI8, vec![]),
        (MathFunction::Sin, vec![scalar(1f32), scalar(1f32)]),
        (MathFunction::Abs, vec![Operand { shape: Shape::Aggregate, parts: vec![] }]),
    ];
    for (fun, operands) in cases {
        let error = evaluate(&|b, args| math(b, fun, args), &operands).unwrap_err();
        assert!(error.message.contains(&format!("{fun:?}")), "{}", error.message);
    }
}
