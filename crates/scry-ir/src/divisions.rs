//! Gives every integer division a divisor that it can be divided by.
//!
//! SPIR-V leaves undefined what divides by zero, and the least number by -1. WGSL has the dividend
//! as the quotient of both, and no remainder: as if the divisor were one. Most divisors are
//! constants that need no guard, but naga's writer has a function with one for each type.
//!
//! The remainder of signed numbers is the dividend less divisor times quotient, for that
//! instruction of SPIR-V takes no negative numbers in Vulkan.

use naga::valid::{FunctionInfo, ModuleInfo};
use naga::{
    Arena, BinaryOperator, Expression, Function, Handle, Literal, Module, Scalar, ScalarKind,
    TypeInner, VectorSize,
};

use crate::handles;
use crate::rebuild::{Lowering, Maker, rebuild};
use crate::shifts::each_function;

type Expr = Handle<Expression>;

/// How one division is written.
#[derive(Clone, Copy)]
struct Division {
    scalar: Scalar,
    size: Option<VectorSize>,
    /// The divisor may be one that nothing can be divided by.
    guarded: bool,
}

/// True if a division of the module has to be written otherwise.
pub(crate) fn needed(module: &Module, info: &ModuleInfo) -> bool {
    each_function(module, info).any(|(function, info)| {
        let mut expressions = function.expressions.iter();
        expressions.any(|(_, expression)| division(module, function, info, expression).is_some())
    })
}

/// Rewrites the divisions. `info` is the validator's of this very module.
pub(crate) fn apply(module: &mut Module, info: &ModuleInfo) {
    let all: Vec<Vec<_>> = each_function(module, info)
        .map(|(function, info)| {
            let expressions = function.expressions.iter();
            let division = |(_, e)| division(module, function, info, e);
            expressions.map(division).collect()
        })
        .collect();
    let functions = handles::functions_mut(&mut module.functions, &mut module.entry_points);
    for (function, divisions) in functions.into_iter().zip(all) {
        if divisions.iter().any(Option::is_some) {
            rebuild(function, &divisions);
        }
    }
}

/// How an expression is written, if it is a division that needs it.
fn division(
    module: &Module,
    function: &Function,
    info: &FunctionInfo,
    expression: &Expression,
) -> Option<Division> {
    let Expression::Binary {
        op: op @ (BinaryOperator::Divide | BinaryOperator::Modulo),
        left,
        right,
    } = *expression
    else {
        return None;
    };
    let (scalar, size) = match *info[left].ty.inner_with(&module.types) {
        TypeInner::Scalar(scalar) => (scalar, None),
        TypeInner::Vector { size, scalar } => (scalar, Some(size)),
        _ => return None,
    };
    let is_signed = match scalar.kind {
        ScalarKind::Sint => true,
        ScalarKind::Uint => false,
        _ => return None,
    };
    let guarded = !is_harmless(module, &function.expressions, right);
    let rewritten = guarded || (is_signed && op == BinaryOperator::Modulo);
    rewritten.then_some(Division { scalar, size, guarded })
}

/// True for constants that everything can be divided by.
fn is_harmless(module: &Module, expressions: &Arena<Expression>, divisor: Expr) -> bool {
    match &expressions[divisor] {
        Expression::Literal(literal) => !is_zero_or_minus_one(*literal),
        Expression::Constant(constant) => {
            let init = module.constants[*constant].init;
            is_harmless(module, &module.global_expressions, init)
        }
        Expression::Splat { value, .. } => is_harmless(module, expressions, *value),
        Expression::Compose { components, .. } => {
            components.iter().all(|part| is_harmless(module, expressions, *part))
        }
        _ => false,
    }
}

fn is_zero_or_minus_one(literal: Literal) -> bool {
    match literal {
        Literal::I16(value) => matches!(value, 0 | -1),
        Literal::I32(value) => matches!(value, 0 | -1),
        Literal::I64(value) => matches!(value, 0 | -1),
        Literal::U16(value) => value == 0,
        Literal::U32(value) => value == 0,
        Literal::U64(value) => value == 0,
        _ => true,
    }
}

impl Lowering for Division {
    fn size(&self) -> Option<VectorSize> {
        self.size
    }

    fn lower(&self, expression: &Expression, make: &mut Maker) -> Expr {
        let Expression::Binary { op, left, right } = *expression else {
            unreachable!("only such expressions are rewritten");
        };
        let divisor = if self.guarded { self.guard(make, left, right) } else { right };
        if self.scalar.kind == ScalarKind::Uint || op == BinaryOperator::Divide {
            return make.binary(op, left, divisor);
        }
        let quotient = make.binary(BinaryOperator::Divide, left, divisor);
        let product = make.binary(BinaryOperator::Multiply, quotient, divisor);
        make.binary(BinaryOperator::Subtract, left, product)
    }
}

impl Division {
    /// The divisor, or one.
    fn guard(&self, make: &mut Maker, dividend: Expr, divisor: Expr) -> Expr {
        let zero = make.all(self.number(0));
        let mut undefined = make.binary(BinaryOperator::Equal, divisor, zero);
        if self.scalar.kind == ScalarKind::Sint {
            let least = make.all(self.number(i64::MIN));
            let is_least = make.binary(BinaryOperator::Equal, dividend, least);
            let minus_one = make.all(self.number(-1));
            let is_minus_one = make.binary(BinaryOperator::Equal, divisor, minus_one);
            let overflows = make.binary(BinaryOperator::And, is_least, is_minus_one);
            undefined = make.binary(BinaryOperator::InclusiveOr, undefined, overflows);
        }
        let one = make.all(self.number(1));
        make.select(undefined, one, divisor)
    }

    /// A number of the division's type, the least one for what is too small for it.
    fn number(&self, value: i64) -> Literal {
        match (self.scalar.kind, self.scalar.width) {
            (ScalarKind::Sint, 2) => Literal::I16(value.max(i16::MIN.into()) as i16),
            (ScalarKind::Sint, 4) => Literal::I32(value.max(i32::MIN.into()) as i32),
            (ScalarKind::Sint, _) => Literal::I64(value),
            (_, 2) => Literal::U16(value as u16),
            (_, 4) => Literal::U32(value as u32),
            _ => Literal::U64(value as u64),
        }
    }
}
