//! Writes operations on integers as what has WGSL's result on every driver, all in one pass.

use naga::valid::{FunctionInfo, ModuleInfo};
use naga::{
    BinaryOperator, Expression, Function, Handle, Literal, MathFunction, Module, Scalar,
    ScalarKind, TypeInner, UnaryOperator, VectorSize,
};

use crate::bits::{self, Bits};
use crate::divisions::{self, Division};
use crate::handles;
use crate::rebuild::{Lowering, Maker, rebuild};
use crate::shifts::each_function;

type Expr = Handle<Expression>;

/// A function whose operations are looked at.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) module: &'a Module,
    pub(crate) function: &'a Function,
    info: &'a FunctionInfo,
}

/// How one operation is written.
enum Change {
    Bits(Bits),
    Division(Division),
    Signed(Signed),
}

/// An operation on signed numbers.
#[derive(Clone, Copy)]
struct Signed {
    operation: Operation,
    scalar: Scalar,
    size: Option<VectorSize>,
}

#[derive(Clone, Copy)]
enum Operation {
    /// `sign`, as what bounds the number by -1 and 1.
    ///
    /// NVIDIA's driver 580 makes no pipeline of some kernels that choose among -1, 0 and 1 by the
    /// sign of a number, and divide integers of 64 bits or convert floats to them. SPIR-V's
    /// instruction is such a choice there, and failed for complements.
    Sign,
    /// `-x` of 16 bits, in a way that is not seen to be one. That driver widens the negative of
    /// the least number to a positive one, as if it had not overflowed.
    Negate,
    /// `abs`, as the greater of the number and its negative. That driver takes what SPIR-V's
    /// instruction gives never to be negative, which it is for the least number.
    Abs,
}

/// True if the module has operations that have to be written otherwise.
pub(crate) fn needed(module: &Module, info: &ModuleInfo) -> bool {
    contexts(module, info).any(|context| {
        let mut expressions = context.function.expressions.iter();
        expressions.any(|(_, expression)| context.change(expression).is_some())
    })
}

/// Rewrites the operations. `info` is the validator's of this very module.
pub(crate) fn apply(module: &mut Module, info: &ModuleInfo) {
    let mut all: Vec<Vec<_>> = contexts(module, info).map(|context| context.changes()).collect();
    for change in all.iter_mut().flatten().flatten() {
        if let Change::Division(division) = change {
            division.settle(&mut module.types);
        }
    }
    let functions = handles::functions_mut(&mut module.functions, &mut module.entry_points);
    for (function, changes) in functions.into_iter().zip(all) {
        if changes.iter().any(Option::is_some) {
            rebuild(function, &changes);
        }
    }
}

fn contexts<'a>(module: &'a Module, info: &'a ModuleInfo) -> impl Iterator<Item = Context<'a>> {
    each_function(module, info).map(move |(function, info)| Context { module, function, info })
}

/// An integer of a type, the least one for what is too small for it.
pub(crate) fn integer(scalar: Scalar, value: i64) -> Literal {
    match (scalar.kind, scalar.width) {
        (ScalarKind::Sint, 2) => Literal::I16(value.max(i16::MIN.into()) as i16),
        (ScalarKind::Sint, 4) => Literal::I32(value.max(i32::MIN.into()) as i32),
        (ScalarKind::Sint, _) => Literal::I64(value),
        (_, 2) => Literal::U16(value as u16),
        (_, 4) => Literal::U32(value as u32),
        _ => Literal::U64(value as u64),
    }
}

impl Context<'_> {
    /// What an expression consists of, and how many of them if it is a vector.
    pub(crate) fn numbers(&self, at: Expr) -> Option<(Scalar, Option<VectorSize>)> {
        match *self.info[at].ty.inner_with(&self.module.types) {
            TypeInner::Scalar(scalar) => Some((scalar, None)),
            TypeInner::Vector { size, scalar } => Some((scalar, Some(size))),
            _ => None,
        }
    }

    fn changes(&self) -> Vec<Option<Change>> {
        let expressions = self.function.expressions.iter();
        expressions.map(|(_, expression)| self.change(expression)).collect()
    }

    fn change(&self, expression: &Expression) -> Option<Change> {
        match *expression {
            Expression::Binary { .. } => {
                divisions::division(self, expression).map(Change::Division)
            }
            Expression::Unary { op: UnaryOperator::Negate, expr } => {
                let negated = self.signed(Operation::Negate, expr)?;
                (negated.scalar == Scalar::I16).then_some(Change::Signed(negated))
            }
            Expression::Math { fun: MathFunction::Sign, arg, .. } => {
                self.signed(Operation::Sign, arg).map(Change::Signed)
            }
            Expression::Math { fun: MathFunction::Abs, arg, .. } => {
                self.signed(Operation::Abs, arg).map(Change::Signed)
            }
            Expression::Math { .. } => bits::bits(self, expression).map(Change::Bits),
            _ => None,
        }
    }

    fn signed(&self, operation: Operation, operand: Expr) -> Option<Signed> {
        let (scalar, size) = self.numbers(operand)?;
        (scalar.kind == ScalarKind::Sint).then_some(Signed { operation, scalar, size })
    }
}

impl Lowering for Change {
    fn size(&self) -> Option<VectorSize> {
        match self {
            Self::Bits(bits) => bits.size(),
            Self::Division(division) => division.size(),
            Self::Signed(signed) => signed.size,
        }
    }

    fn lower(&self, expression: &Expression, make: &mut Maker) -> Expr {
        match self {
            Self::Bits(bits) => bits.lower(expression, make),
            Self::Division(division) => division.lower(expression, make),
            Self::Signed(signed) => signed.lower(expression, make),
        }
    }
}

impl Signed {
    fn lower(&self, expression: &Expression, make: &mut Maker) -> Expr {
        let (Expression::Math { arg: x, .. } | Expression::Unary { expr: x, .. }) = *expression
        else {
            unreachable!("only such expressions are rewritten");
        };
        match self.operation {
            Operation::Sign => self.sign(make, x),
            Operation::Negate => self.negate(make, x),
            Operation::Abs => {
                let negative = self.negate(make, x);
                make.math(MathFunction::Max, x, Some(negative))
            }
        }
    }

    fn sign(&self, make: &mut Maker, x: Expr) -> Expr {
        let [least, most] = [-1, 1].map(|bound| make.all(integer(self.scalar, bound)));
        let bounded = make.math(MathFunction::Max, x, Some(least));
        make.math(MathFunction::Min, bounded, Some(most))
    }

    /// The complement of all bits but the sign, and what is then missing.
    fn negate(&self, make: &mut Maker, x: Expr) -> Expr {
        if self.scalar != Scalar::I16 {
            return make.negative(x);
        }
        let [bits, rest] = [i16::MAX, -i16::MAX].map(|bits| make.all(Literal::I16(bits)));
        let complement = make.binary(BinaryOperator::ExclusiveOr, x, bits);
        make.binary(BinaryOperator::Add, complement, rest)
    }
}
