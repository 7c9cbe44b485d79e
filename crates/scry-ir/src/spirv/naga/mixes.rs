//! Writes `mix(a, b, c)` as the expression that its accuracy is inherited from,
//! `a * (1 - c) + b * c`.
//!
//! SPIR-V has an instruction for it, but a driver may compute `a + c * (b - a)` for that, and where
//! `b - a` is rounded, this is off by more than WGSL allows.
//!
//! Only with [`EXPAND_MIX`](crate::SpirvWorkarounds::EXPAND_MIX).

use naga::valid::{FunctionInfo, ModuleInfo};
use naga::{
    BinaryOperator, Expression, Function, Handle, Literal, MathFunction, Module, Span, TypeInner,
    VectorSize,
};

use crate::spirv::naga::shifts::{each_function, redirect};
use crate::wgsl::naga::handles;

type Expr = Handle<Expression>;

/// The type of the factor of one `mix`.
#[derive(Clone, Copy)]
struct Factor {
    one: Literal,
    size: Option<VectorSize>,
}

/// True if the module has a `mix`.
pub(crate) fn needed(module: &Module) -> bool {
    let is_mix =
        |(_, e): (_, &Expression)| matches!(e, Expression::Math { fun: MathFunction::Mix, .. });
    handles::functions(module).iter().any(|function| function.expressions.iter().any(is_mix))
}

/// Rewrites every `mix`. `info` is the validator's of this very module.
pub(crate) fn apply(module: &mut Module, info: &ModuleInfo) {
    let factors: Vec<Vec<_>> = each_function(module, info)
        .map(|(function, info)| {
            let expressions = function.expressions.iter();
            expressions.map(|(_, expression)| factor(module, info, expression)).collect()
        })
        .collect();
    let functions = handles::functions_mut(&mut module.functions, &mut module.entry_points);
    for (function, factors) in functions.into_iter().zip(factors) {
        if factors.iter().any(Option::is_some) {
            rebuild(function, &factors);
        }
    }
}

/// What the factor of an expression is, if that is a `mix`.
fn factor(module: &Module, info: &FunctionInfo, expression: &Expression) -> Option<Factor> {
    let Expression::Math { fun: MathFunction::Mix, arg2: Some(factor), .. } = *expression else {
        return None;
    };
    match *info[factor].ty.inner_with(&module.types) {
        TypeInner::Scalar(scalar) => Some(Factor { one: Literal::one(scalar)?, size: None }),
        TypeInner::Vector { size, scalar } => {
            Some(Factor { one: Literal::one(scalar)?, size: Some(size) })
        }
        _ => None,
    }
}

/// Copies the function's expressions into a new arena, each `mix` as its parts.
fn rebuild(function: &mut Function, factors: &[Option<Factor>]) {
    let old = std::mem::take(&mut function.expressions);
    let spans: Vec<_> = old.iter().map(|(handle, _)| old.get_span(handle)).collect();
    let new = &mut function.expressions;
    let mut ones: Vec<(Literal, Expr)> = Vec::new();
    for factor in factors.iter().flatten() {
        if !ones.iter().any(|(literal, _)| *literal == factor.one) {
            let literal = new.append(Expression::Literal(factor.one), Span::UNDEFINED);
            ones.push((factor.one, literal));
        }
    }
    // For each old expression the first of the new ones that stand for it, and the last.
    let mut places: Vec<(Expr, Expr)> = Vec::with_capacity(factors.len());
    for (at, mut expression) in old.into_inner().into_iter().enumerate() {
        handles::in_expression(&mut expression, &mut |h| *h = places[h.index()].1);
        let first = new.len();
        let last = match (factors[at], expression) {
            (
                Some(factor),
                Expression::Math { arg: from, arg1: Some(to), arg2: Some(share), .. },
            ) => {
                let literal = ones.iter().find(|(literal, _)| *literal == factor.one);
                let one = literal.expect("made above").1;
                let mut add = |expression| new.append(expression, spans[at]);
                mixed(&mut add, [from, to, share], one, factor.size)
            }
            (_, expression) => new.append(expression, spans[at]),
        };
        let mut made = new.range_from(first);
        places.push((made.next().expect("one at least"), last));
    }
    redirect(function, &places);
}

/// `from * (1 - share) + to * share`.
fn mixed(
    add: &mut dyn FnMut(Expression) -> Expr,
    [from, to, share]: [Expr; 3],
    one: Expr,
    size: Option<VectorSize>,
) -> Expr {
    let whole = match size {
        Some(size) => add(Expression::Splat { size, value: one }),
        None => one,
    };
    let mut binary = |op, left, right| add(Expression::Binary { op, left, right });
    let rest = binary(BinaryOperator::Subtract, whole, share);
    let left = binary(BinaryOperator::Multiply, from, rest);
    let right = binary(BinaryOperator::Multiply, to, share);
    binary(BinaryOperator::Add, left, right)
}
