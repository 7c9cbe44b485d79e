//! Arithmetic on floats of one type.

use crate::asm::Opcode;
use crate::body::Body;
use crate::types::{Operand, PtxType, Reg};

/// Emits arithmetic on `f32` or `f64`. Every operation has an explicit rounding mode, so that ptxas
/// contracts nothing: FMAs are explicit.
pub(super) struct Floats<'b> {
    pub(super) b: &'b mut Body,
    /// `F32` or `F64`.
    pub(super) ty: PtxType,
}

/// The coefficients of a polynomial for each type, from the highest power.
pub(super) struct Table {
    pub(super) single: &'static [f64],
    pub(super) double: &'static [f64],
}

// The most frequent ones are not inlined: inlining would add a third to the crate's code.
impl Floats<'_> {
    pub(super) fn is_double(&self) -> bool {
        self.ty == PtxType::F64
    }

    /// Selects by type.
    pub(super) fn either<T>(&self, single: T, double: T) -> T {
        if self.is_double() { double } else { single }
    }

    #[inline(never)]
    pub(super) fn number(&self, x: f64) -> Operand {
        self.either(Operand::f32(x as f32), Operand::f64(x))
    }

    /// Returns the signed integer type of the same size.
    pub(super) fn integer(&self) -> PtxType {
        self.either(PtxType::S32, PtxType::S64)
    }

    /// A constant by its bits.
    pub(super) fn bits(&self, single: u32, double: u64) -> Operand {
        Operand::Imm { bits: self.either(single.into(), double), ty: self.integer() }
    }

    /// Emits an instruction on floats.
    #[inline(never)]
    pub(super) fn op(&mut self, name: &str, operands: &[Operand]) -> Operand {
        self.b.typed(name, self.ty, operands).into()
    }

    /// Emits an instruction on integers of the same size.
    pub(super) fn integer_op(&mut self, name: &str, operands: &[Operand]) -> Operand {
        self.b.typed(name, self.integer(), operands).into()
    }

    /// Emits an instruction on untyped bits of the same size.
    pub(super) fn bits_op(&mut self, name: &str, operands: &[Operand]) -> Operand {
        self.b.typed(name, self.ty.to_bits(), operands).into()
    }

    #[inline(never)]
    pub(super) fn add(&mut self, a: Operand, b: Operand) -> Operand {
        self.op("add.rn", &[a, b])
    }

    pub(super) fn sub(&mut self, a: Operand, b: Operand) -> Operand {
        self.op("sub.rn", &[a, b])
    }

    #[inline(never)]
    pub(super) fn mul(&mut self, a: Operand, b: Operand) -> Operand {
        self.op("mul.rn", &[a, b])
    }

    /// Multiplies by a constant.
    pub(super) fn times(&mut self, a: Operand, b: f64) -> Operand {
        self.mul(a, self.number(b))
    }

    /// Adds a constant.
    pub(super) fn plus(&mut self, a: Operand, b: f64) -> Operand {
        self.add(a, self.number(b))
    }

    /// `a * b + c`, rounded once.
    #[inline(never)]
    pub(super) fn fma(&mut self, a: Operand, b: Operand, c: Operand) -> Operand {
        self.op("fma.rn", &[a, b, c])
    }

    pub(super) fn neg(&mut self, a: Operand) -> Operand {
        self.op("neg", &[a])
    }

    pub(super) fn abs(&mut self, a: Operand) -> Operand {
        self.op("abs", &[a])
    }

    /// Copies the sign of one number to another (`copysign`).
    pub(super) fn with_sign(&mut self, size: Operand, sign: Operand) -> Operand {
        self.op("copysign", &[sign, size])
    }

    /// `1 / a`: an `f32` within 1 ULP, if neither is subnormal; those count as zero.
    pub(super) fn reciprocal(&mut self, a: Operand) -> Operand {
        self.op(self.either("rcp.approx.ftz", "rcp.rn"), &[a])
    }

    /// `a / b`: an `f32` within 2 ULP, if neither b nor its inverse is subnormal.
    pub(super) fn quotient(&mut self, a: Operand, b: Operand) -> Operand {
        if self.is_double() {
            return self.div(a, b);
        }
        let inverse = self.reciprocal(b);
        self.mul(a, inverse)
    }

    /// `a / b`: an `f32` within 2 ULP for all operands.
    pub(super) fn div(&mut self, a: Operand, b: Operand) -> Operand {
        self.op(self.either("div.full", "div.rn"), &[a, b])
    }

    /// Square root: an `f32` within 2^-23.
    pub(super) fn sqrt(&mut self, a: Operand) -> Operand {
        self.op(self.either("sqrt.approx", "sqrt.rn"), &[a])
    }

    /// The same for normal numbers; subnormal `f32` are flushed to zero.
    pub(super) fn sqrt_of_normal(&mut self, a: Operand) -> Operand {
        self.op(self.either("sqrt.approx.ftz", "sqrt.rn"), &[a])
    }

    /// Emits a comparison by its name.
    pub(super) fn compare(&mut self, name: &str, a: Operand, b: Operand) -> Reg {
        self.b.compare(name, self.ty, a, b)
    }

    /// Whether a number is less than a constant; false for NaN.
    pub(super) fn is_below(&mut self, a: Operand, b: f64) -> Reg {
        self.compare("lt", a, self.number(b))
    }

    /// Whether a number is greater than a constant; false for NaN.
    pub(super) fn is_above(&mut self, a: Operand, b: f64) -> Reg {
        self.compare("gt", a, self.number(b))
    }

    /// Whether a number equals a constant.
    pub(super) fn is(&mut self, a: Operand, b: f64) -> Reg {
        self.compare("eq", a, self.number(b))
    }

    pub(super) fn select(&mut self, holds: Reg, a: Operand, b: Operand) -> Operand {
        self.b.select(self.ty, holds, a, b).into()
    }

    /// Clamps a number; NaN is preserved.
    pub(super) fn within(&mut self, a: Operand, low: f64, high: f64) -> Operand {
        let is_below = self.is_below(a, low);
        let raised = self.select(is_below, self.number(low), a);
        let is_above = self.is_above(raised, high);
        self.select(is_above, self.number(high), raised)
    }

    /// The value of a polynomial.
    pub(super) fn polynomial(&mut self, x: Operand, table: &Table) -> Operand {
        let coefficients = self.either(table.single, table.double);
        let first = self.number(coefficients[0]);
        coefficients[1..].iter().fold(first, |sum, c| self.fma(sum, x, self.number(*c)))
    }

    /// `x + x * square * P(square)`: an odd function, given the square of its argument.
    pub(super) fn odd(&mut self, x: Operand, square: Operand, table: &Table) -> Operand {
        let polynomial = self.polynomial(square, table);
        let change = self.mul(square, polynomial);
        self.fma(change, x, x)
    }

    /// Returns the addend that rounds to the nearest integer, which is then in the lowest bits of
    /// the sum.
    pub(super) fn rounder(&self) -> Operand {
        self.number(self.either(12_582_912.0, 6_755_399_441_055_744.0))
    }

    /// Computes `x - floor(x)`: 1 where that rounds up.
    pub(super) fn fract(&mut self, x: Operand) -> Operand {
        let whole = self.b.convert("rmi", self.ty, self.ty, x);
        self.sub(x, whole.into())
    }

    /// Truncates to an integer.
    pub(super) fn trunc(&mut self, x: Operand) -> Operand {
        self.b.convert("rzi", self.ty, self.ty, x).into()
    }

    /// Emits an instruction that only `f32` has.
    pub(super) fn single(&mut self, name: &str, x: Operand) -> Operand {
        self.b.op(PtxType::F32, Opcode::typed(name, PtxType::F32), &[x]).into()
    }
}
