//! Reductions within a workgroup: elements become states, which merge.
//!
//! Minima and maxima of floats are those of integers with the same order, so that they are exact:
//! -0 is smaller than +0, and the state of NaN is 0, which wins.

use scry_gpu::kir::{BinaryOp, Builder, Const, Type, Value};

use super::rows::RowReduction;

const SIGN: u32 = 0x8000_0000;
const INFINITY: u32 = 0x7f80_0000;

/// A reduction of elements of a type.
#[derive(Clone, Copy)]
pub(super) struct States {
    pub(super) reduction: RowReduction,
    /// The type that elements are computed with: `F32`, `I32` or `U32`.
    pub(super) ty: Type,
}

impl States {
    fn is_extreme(self) -> bool {
        matches!(self.reduction, RowReduction::Min | RowReduction::Max)
    }

    /// Returns the type of states.
    pub(super) fn state_type(self) -> Type {
        if self.is_extreme() { Type::U32 } else { self.ty }
    }

    /// Returns the state of no elements.
    pub(super) fn neutral(self, b: &mut Builder) -> Value {
        match self.is_extreme() {
            true => b.u32(u32::MAX),
            false => b.constant(Const::zero(self.ty)),
        }
    }

    /// Returns the state of an element.
    pub(super) fn lift(self, b: &mut Builder, element: Value) -> Value {
        if !self.is_extreme() {
            return element;
        }
        let bits = b.bitcast(Type::U32, element);
        let (sign, nan) = (b.u32(SIGN), b.u32(INFINITY));
        let ordinal = match self.ty {
            Type::F32 => {
                let is_negative = b.binary(BinaryOp::Ge, bits, sign);
                let of_negative = self.complement(b, bits);
                let of_positive = b.binary(BinaryOp::Or, bits, sign);
                b.select(is_negative, of_negative, of_positive)
            }
            Type::I32 => b.binary(BinaryOp::Xor, bits, sign),
            _ => bits,
        };
        let state = self.rising(b, ordinal);
        if self.ty != Type::F32 {
            return state;
        }
        let magnitude = b.u32(SIGN - 1);
        let magnitude = b.binary(BinaryOp::And, bits, magnitude);
        let is_nan = b.binary(BinaryOp::Gt, magnitude, nan);
        let zero = b.u32(0);
        b.select(is_nan, zero, state)
    }

    /// Returns the state of the elements of two states.
    pub(super) fn merge(self, b: &mut Builder, first: Value, second: Value) -> Value {
        let op = if self.is_extreme() { BinaryOp::Min } else { BinaryOp::Add };
        b.binary(op, first, second)
    }

    /// Returns the result of a state of `count` elements, a `u32`.
    pub(super) fn finish(self, b: &mut Builder, state: Value, count: Value) -> Value {
        match self.reduction {
            RowReduction::Sum => state,
            RowReduction::Mean => {
                let count = b.convert(Type::F32, count);
                b.binary(BinaryOp::Div, state, count)
            }
            RowReduction::Min | RowReduction::Max => {
                let ordinal = self.rising(b, state);
                let sign = b.u32(SIGN);
                let bits = match self.ty {
                    Type::F32 => {
                        let is_positive = b.binary(BinaryOp::Ge, ordinal, sign);
                        let magnitude = b.u32(SIGN - 1);
                        let positive = b.binary(BinaryOp::And, ordinal, magnitude);
                        let negative = self.complement(b, ordinal);
                        b.select(is_positive, positive, negative)
                    }
                    Type::I32 => b.binary(BinaryOp::Xor, ordinal, sign),
                    _ => ordinal,
                };
                b.bitcast(self.ty, bits)
            }
        }
    }

    /// Returns an ordinal as a state, of which the smallest wins, and the other way round.
    fn rising(self, b: &mut Builder, ordinal: Value) -> Value {
        match self.reduction {
            RowReduction::Max => self.complement(b, ordinal),
            _ => ordinal,
        }
    }

    fn complement(self, b: &mut Builder, bits: Value) -> Value {
        let all = b.u32(u32::MAX);
        b.binary(BinaryOp::Xor, bits, all)
    }
}
