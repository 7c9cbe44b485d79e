//! Emits arithmetic on floats of one type.

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

// The methods with most calls are not inlined: inlining would add a third to the crate's code.
impl Floats<'_> {
    pub(super) fn is_double(&self) -> bool {
        self.ty == PtxType::F64
    }

    /// Returns `double` if the type is `f64`, else `single`.
    pub(super) fn by_type<T>(&self, single: T, double: T) -> T {
        if self.is_double() { double } else { single }
    }

    /// Returns a constant, rounded to the type.
    #[inline(never)]
    pub(super) fn constant(&self, x: f64) -> Operand {
        self.by_type(Operand::f32(x as f32), Operand::f64(x))
    }

    /// Returns the signed integer type of the same size.
    pub(super) fn integer(&self) -> PtxType {
        self.by_type(PtxType::S32, PtxType::S64)
    }

    /// Returns a constant by its bits.
    pub(super) fn bits(&self, single: u32, double: u64) -> Operand {
        Operand::Imm { bits: self.by_type(single.into(), double), ty: self.integer() }
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
        self.mul(a, self.constant(b))
    }

    /// Adds a constant.
    pub(super) fn plus(&mut self, a: Operand, b: f64) -> Operand {
        self.add(a, self.constant(b))
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
    pub(super) fn with_sign(&mut self, magnitude: Operand, sign: Operand) -> Operand {
        self.op("copysign", &[sign, magnitude])
    }

    /// `1 / a`: an `f32` within 1 ULP, with subnormal operands and results flushed to zero.
    pub(super) fn reciprocal(&mut self, a: Operand) -> Operand {
        self.op(self.by_type("rcp.approx.ftz", "rcp.rn"), &[a])
    }

    /// `a / b` by a reciprocal: an `f32` within 2 ULP, if neither b nor its inverse is subnormal.
    pub(super) fn fast_div(&mut self, a: Operand, b: Operand) -> Operand {
        if self.is_double() {
            return self.div(a, b);
        }
        let inverse = self.reciprocal(b);
        self.mul(a, inverse)
    }

    /// `a / b`: an `f32` within 2 ULP for all operands.
    pub(super) fn div(&mut self, a: Operand, b: Operand) -> Operand {
        self.op(self.by_type("div.full", "div.rn"), &[a, b])
    }

    /// Square root: an `f32` with a relative error of at most 2^-23.
    pub(super) fn sqrt(&mut self, a: Operand) -> Operand {
        self.op(self.by_type("sqrt.approx", "sqrt.rn"), &[a])
    }

    /// As [`Floats::sqrt`], for normal numbers: subnormal `f32` are flushed to zero.
    pub(super) fn sqrt_of_normal(&mut self, a: Operand) -> Operand {
        self.op(self.by_type("sqrt.approx.ftz", "sqrt.rn"), &[a])
    }

    /// Emits a comparison by its name.
    pub(super) fn compare(&mut self, name: &str, a: Operand, b: Operand) -> Reg {
        self.b.compare(name, self.ty, a, b)
    }

    /// Returns whether a number is less than a constant; false for NaN.
    pub(super) fn is_below(&mut self, a: Operand, b: f64) -> Reg {
        self.compare("lt", a, self.constant(b))
    }

    /// Returns whether a number is greater than a constant; false for NaN.
    pub(super) fn is_above(&mut self, a: Operand, b: f64) -> Reg {
        self.compare("gt", a, self.constant(b))
    }

    /// Returns whether a number equals a constant.
    pub(super) fn equals(&mut self, a: Operand, b: f64) -> Reg {
        self.compare("eq", a, self.constant(b))
    }

    pub(super) fn select(&mut self, condition: Reg, a: Operand, b: Operand) -> Operand {
        self.b.select(self.ty, condition, a, b).into()
    }

    /// Clamps a number; NaN is preserved.
    pub(super) fn clamp(&mut self, a: Operand, low: f64, high: f64) -> Operand {
        let is_below = self.is_below(a, low);
        let raised = self.select(is_below, self.constant(low), a);
        let is_above = self.is_above(raised, high);
        self.select(is_above, self.constant(high), raised)
    }

    /// Evaluates a polynomial by Horner's scheme.
    pub(super) fn polynomial(&mut self, x: Operand, table: &Table) -> Operand {
        let coefficients = self.by_type(table.single, table.double);
        let first = self.constant(coefficients[0]);
        coefficients[1..].iter().fold(first, |sum, c| self.fma(sum, x, self.constant(*c)))
    }

    /// Evaluates an odd function, `x + x * square * P(square)`, given the square of its argument.
    pub(super) fn odd_polynomial(&mut self, x: Operand, square: Operand, table: &Table) -> Operand {
        let polynomial = self.polynomial(square, table);
        let change = self.mul(square, polynomial);
        self.fma(change, x, x)
    }

    /// Returns the addend that rounds to the nearest integer, which is then in the lowest bits of
    /// the sum: 1.5 * 2^23, or 1.5 * 2^52 for `f64`.
    pub(super) fn rounding_addend(&self) -> Operand {
        self.constant(self.by_type(12_582_912.0, 6_755_399_441_055_744.0))
    }

    /// Computes `x - floor(x)`: 1 where that rounds up.
    pub(super) fn fract(&mut self, x: Operand) -> Operand {
        let integer = self.b.convert("rmi", self.ty, self.ty, x);
        self.sub(x, integer.into())
    }

    /// Truncates to an integer.
    pub(super) fn trunc(&mut self, x: Operand) -> Operand {
        self.b.convert("rzi", self.ty, self.ty, x).into()
    }

    /// Emits an instruction that only `f32` has.
    pub(super) fn f32_op(&mut self, name: &str, x: Operand) -> Operand {
        self.b.op(PtxType::F32, Opcode::typed(name, PtxType::F32), &[x]).into()
    }
}
