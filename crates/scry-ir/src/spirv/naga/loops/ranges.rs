//! What values an integer expression can have.

use naga::{BinaryOperator, Expression, Literal, MathFunction, TypeInner};

use super::{Expr, Prover};
use crate::kir::termination::counter::Interval;

impl Interval {
    /// Returns whether every value of `self` is one of `other`.
    fn fits(self, other: Self) -> bool {
        other.min <= self.min && self.max <= other.max
    }
}

impl Prover<'_> {
    /// The value of an integer constant.
    pub(super) fn constant(&self, expression: Expr) -> Option<i128> {
        match self.function.expressions[expression] {
            Expression::Literal(literal) => integer(literal),
            Expression::ZeroValue(_) => Some(0),
            Expression::Constant(constant) => {
                let init = self.module.constants[constant].init;
                match self.module.global_expressions[init] {
                    Expression::Literal(literal) => integer(literal),
                    Expression::ZeroValue(_) => Some(0),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// An interval that holds every value of an integer expression of a type with values `all`.
    pub(super) fn range(&self, expression: Expr, all: Interval) -> Interval {
        if let Some(value) = self.constant(expression) {
            return Interval::exactly(value);
        }
        match self.function.expressions[expression] {
            Expression::ArrayLength(array) => self.length_range(array).within(all),
            Expression::As { expr, .. } => match self.function.expressions[expr] {
                Expression::ArrayLength(array) => {
                    let length = self.length_range(array);
                    if length.fits(all) { length } else { all }
                }
                _ => all,
            },
            Expression::Math { fun: MathFunction::Min, arg, arg1: Some(other), .. } => {
                let (a, b) = (self.range(arg, all), self.range(other, all));
                Interval { min: a.min.min(b.min), max: a.max.min(b.max) }
            }
            Expression::Math { fun: MathFunction::Max, arg, arg1: Some(other), .. } => {
                let (a, b) = (self.range(arg, all), self.range(other, all));
                Interval { min: a.min.max(b.min), max: a.max.max(b.max) }
            }
            Expression::Binary { op, left, right } => self.binary_range(op, left, right, all),
            _ => all,
        }
    }

    fn binary_range(&self, op: BinaryOperator, left: Expr, right: Expr, all: Interval) -> Interval {
        let known = match (op, self.constant(right)) {
            (BinaryOperator::And, Some(mask)) if mask >= 0 => Some(Interval { min: 0, max: mask }),
            (BinaryOperator::Modulo, Some(by)) if by > 0 => {
                Some(Interval { min: (1 - by).max(all.min), max: by - 1 })
            }
            (BinaryOperator::Divide, Some(by)) if by > 0 => {
                let range = self.range(left, all);
                Some(Interval { min: range.min / by, max: range.max / by })
            }
            (BinaryOperator::ShiftRight, Some(by)) if (0..31).contains(&by) => {
                let range = self.range(left, all);
                Some(Interval { min: range.min >> by, max: range.max >> by })
            }
            (BinaryOperator::Add | BinaryOperator::Subtract, Some(by)) => {
                let by = if op == BinaryOperator::Add { by } else { -by };
                let range = self.range(left, all);
                Some(Interval { min: range.min + by, max: range.max + by })
            }
            _ => None,
        };
        known.filter(|range| range.fits(all)).unwrap_or(all)
    }

    /// The lengths that a runtime-sized array can have: a binding is shorter than 4 GiB.
    fn length_range(&self, array: Expr) -> Interval {
        let global = match self.function.expressions[array] {
            Expression::AccessIndex { base, .. } => base,
            _ => array,
        };
        let mut stride = 1;
        if let Expression::GlobalVariable(global) = self.function.expressions[global] {
            let mut ty = self.module.global_variables[global].ty;
            if let TypeInner::Struct { members, .. } = &self.module.types[ty].inner
                && let Some(last) = members.last()
            {
                ty = last.ty;
            }
            if let TypeInner::Array { stride: bytes, .. } = self.module.types[ty].inner {
                stride = bytes.max(1);
            }
        }
        Interval { min: 0, max: i128::from(u32::MAX / stride) }
    }
}

fn integer(literal: Literal) -> Option<i128> {
    match literal {
        Literal::I16(v) => Some(v.into()),
        Literal::U16(v) => Some(v.into()),
        Literal::I32(v) => Some(v.into()),
        Literal::U32(v) => Some(v.into()),
        Literal::I64(v) => Some(v.into()),
        Literal::U64(v) => Some(v.into()),
        _ => None,
    }
}
