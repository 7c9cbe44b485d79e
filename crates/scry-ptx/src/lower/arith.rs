//! Arithmetic.

use scry_ir::kir::{BinaryOp, Const, Inst, Type, UnaryOp, Value};

use super::{Lowering, ptx_type};
use crate::asm::Opcode;
use crate::types::{Operand, PtxType, Reg};

impl Lowering<'_> {
    /// Lowers a function of one operand.
    pub(super) fn unary(&mut self, op: UnaryOp, a: Value) -> Reg {
        match op {
            UnaryOp::Neg => self.lower_neg(a),
            UnaryOp::Not => self.complement(a),
            UnaryOp::Abs => self.lower_abs(a),
            UnaryOp::Sign => self.sign(a),
            UnaryOp::QuantizeF16 => self.quantize_f16(a),
            UnaryOp::IsNan => self.is_nan(a),
            UnaryOp::IsInf => self.is_infinite(a),
            UnaryOp::CountOnes => self.count_ones(a),
            UnaryOp::LeadingZeros => self.leading_zeros(a),
            UnaryOp::TrailingZeros => self.trailing_zeros(a),
            UnaryOp::ReverseBits => self.reverse_bits(a),
            UnaryOp::FirstLeadingBit => self.first_leading_bit(a),
            UnaryOp::FirstTrailingBit => self.first_trailing_bit(a),
            _ => self.float_function(op, a),
        }
    }

    /// Lowers a function of two operands other than a comparison.
    pub(super) fn binary(&mut self, op: BinaryOp, a: Value, b: Value) -> Reg {
        match op {
            BinaryOp::Add => self.wrapping_op("add", a, b),
            BinaryOp::Sub => self.wrapping_op("sub", a, b),
            BinaryOp::Mul if self.ty(a).is_integer() => self.wrapping_op("mul.lo", a, b),
            BinaryOp::Mul => self.same_type_op("mul", a, b),
            BinaryOp::Div if self.ty(a).is_integer() => self.quotient(a, b),
            BinaryOp::Div => self.float_quotient(a, b),
            BinaryOp::Rem if self.ty(a).is_integer() => self.remainder(a, b),
            BinaryOp::Rem => self.float_remainder(a, b),
            BinaryOp::Min => self.min_max("min", a, b),
            BinaryOp::Max => self.min_max("max", a, b),
            BinaryOp::And => self.bitwise("and", a, b),
            BinaryOp::Or => self.bitwise("or", a, b),
            BinaryOp::Xor => self.bitwise("xor", a, b),
            BinaryOp::Shl => self.shift_left(a, b),
            BinaryOp::Shr => self.shift_right(a, b),
            BinaryOp::Dot4I8 => self.dot("dp4a.s32.s32", a, b),
            BinaryOp::Dot4U8 => self.dot("dp4a.u32.u32", a, b),
            _ => self.float_function_of_two(op, a, b),
        }
    }

    /// Lowers a fused multiply-add: `a * b + c`, rounded once.
    pub(super) fn fma(&mut self, ty: Type, a: Value, b: Value, c: Value) -> Reg {
        let operands = [self.value(a), self.value(b), self.value(c)];
        self.b.typed("fma.rn", ptx_type(ty), &operands)
    }

    /// Emits an instruction whose operands and result have one type.
    pub(super) fn same_type_op(&mut self, name: &str, a: Value, b: Value) -> Reg {
        let operands = [self.value(a), self.value(b)];
        self.b.typed(name, ptx_type(self.ty(a)), &operands)
    }

    /// As [`Lowering::same_type_op`], with wrapping integer arithmetic.
    fn wrapping_op(&mut self, name: &str, a: Value, b: Value) -> Reg {
        let operands = [self.value(a), self.value(b)];
        self.b.typed(name, wrapping_type(ptx_type(self.ty(a))), &operands)
    }

    fn lower_neg(&mut self, a: Value) -> Reg {
        let (ty, a) = (ptx_type(self.ty(a)), self.value(a));
        self.neg_operand(ty, a)
    }

    /// Negates; integers by a subtraction, since `neg` is signed only (see [`wrapping_type`]).
    pub(super) fn neg_operand(&mut self, ty: PtxType, a: Operand) -> Reg {
        match wrapping_type(ty) {
            integer @ (PtxType::U16 | PtxType::U32 | PtxType::U64) => {
                let zero = Operand::Imm { bits: 0, ty: integer };
                self.b.typed("sub", integer, &[zero, a])
            }
            float => self.b.typed("neg", float, &[a]),
        }
    }

    fn lower_abs(&mut self, a: Value) -> Reg {
        let ty = ptx_type(self.ty(a));
        let a = self.value(a);
        self.abs_operand(ty, a)
    }

    /// Returns the magnitude; that of the minimum integer is the minimum integer.
    fn abs_operand(&mut self, ty: PtxType, a: Operand) -> Reg {
        if ty == PtxType::F16 {
            self.b.require(6, 5);
        }
        if wrapping_type(ty) == ty {
            return self.b.typed("abs", ty, &[a]);
        }
        let negated = self.neg_operand(ty, a);
        self.b.typed("max", ty, &[negated.into(), a])
    }

    fn sign(&mut self, a: Value) -> Reg {
        if self.ty(a).is_float() { self.float_sign(a) } else { self.integer_sign(a) }
    }

    /// Lowers `sign` of an integer: clamps it to -1 ..= 1.
    fn integer_sign(&mut self, a: Value) -> Reg {
        let ty = ptx_type(self.ty(a));
        let low = self.b.typed("max", ty, &[self.value(a), minus_one(ty)]);
        self.b.typed("min", ty, &[low.into(), Operand::Imm { bits: 1, ty }])
    }

    /// Lowers `sign` of a float: 1 with its sign; zeros and NaN are unchanged.
    fn float_sign(&mut self, a: Value) -> Reg {
        let kir_type = self.ty(a);
        let ty = ptx_type(kir_type);
        let (bits, a) = (ty.to_bits(), self.reg(a).into());
        let sign = Operand::Imm { bits: 1 << (kir_type.bits() - 1), ty: bits };
        let sign = self.b.typed("and", bits, &[a, sign]);
        let one = Operand::Imm { bits: one(kir_type), ty: bits };
        let one = self.b.typed("or", bits, &[sign.into(), one]);
        let zero = self.typed_constant(kir_type, 0);
        let differs = self.b.compare("ne", ty, a, zero);
        self.b.select(ty, differs, one.into(), a)
    }

    /// Returns a constant of a type, by its bits, as an operand.
    pub(super) fn typed_constant(&mut self, ty: Type, bits: u64) -> Operand {
        self.constant(Const { ty, bits })
    }

    /// Returns the instruction and the operands of a minimum or maximum of `f32` that is NaN if an
    /// operand is: the select of `isnan(a) ? a : (isnan(b) ? b : max(a, b))`. The comparisons and
    /// the inner select are left to `ptxas`, which drops what nothing uses.
    pub(super) fn nan_extremum(
        &self,
        condition: Value,
        a: Value,
        otherwise: Value,
    ) -> Option<(&'static str, [Value; 2])> {
        let is_nan = |condition: Value, a: Value| {
            *self.kir.inst(condition) == Inst::Unary(UnaryOp::IsNan, a)
        };
        let Inst::Select(inner, b, extremum) = *self.kir.inst(otherwise) else { return None };
        let (name, operands) = match *self.kir.inst(extremum) {
            Inst::Binary(BinaryOp::Max, x, y) => ("max.NaN", [x, y]),
            Inst::Binary(BinaryOp::Min, x, y) => ("min.NaN", [x, y]),
            _ => return None,
        };
        let fits = self.ty(a) == Type::F32
            && self.b.target().has(80)
            && is_nan(condition, a)
            && is_nan(inner, b)
            && (operands == [a, b] || operands == [b, a]);
        fits.then_some((name, operands))
    }

    /// Lowers `min` or `max`; of a number and NaN, the result is the number.
    ///
    /// 16-bit integers are widened to 32 bits, because of a driver bug: for `clamp(0, min(~b, x),
    /// max(~b, x))` the compiler of driver 580 emits a packed instruction that returns -2 for b = 1
    /// and x = 0, where 0 is right.
    fn min_max(&mut self, name: &str, a: Value, b: Value) -> Reg {
        if let ty @ (Type::I16 | Type::U16) = self.ty(a) {
            let (from, to) =
                (ptx_type(ty), if ty == Type::I16 { PtxType::S32 } else { PtxType::U32 });
            let operands = [a, b].map(|value| {
                let operand = self.value(value);
                self.b.convert("", to, from, operand).into()
            });
            let result = self.b.typed(name, to, &operands);
            return self.b.convert("", from, to, result.into());
        }
        if self.ty(a) != Type::F16 || self.b.target().has(80) {
            return self.same_type_op(name, a, b);
        }
        let operands = [self.widen_float(a), self.widen_float(b)];
        let result = self.b.typed(name, PtxType::F32, &operands);
        self.narrow_float(Type::F16, result)
    }

    /// Widens a float to the type that its functions are computed in: f16 to f32.
    fn widen_float(&mut self, a: Value) -> Operand {
        let operand = self.value(a);
        match self.ty(a) {
            Type::F16 => self.b.convert("", PtxType::F32, PtxType::F16, operand).into(),
            _ => operand,
        }
    }

    /// Narrows a result that was computed with widened operands.
    fn narrow_float(&mut self, ty: Type, result: Reg) -> Reg {
        match ty {
            Type::F16 => self.b.convert("rn", PtxType::F16, PtxType::F32, result.into()),
            _ => result,
        }
    }

    /// Divides floats: f64 rounded to nearest, the others within 2 ULP of f32.
    fn float_quotient(&mut self, a: Value, b: Value) -> Reg {
        let operands = [self.widen_float(a), self.widen_float(b)];
        let result = match self.ty(a) {
            Type::F64 => self.rounded_quotient(PtxType::F64, operands),
            _ => self.b.typed("div.full", PtxType::F32, &operands),
        };
        self.narrow_float(self.ty(a), result)
    }

    /// Computes `x - y * trunc(x / y)`, each step rounded to nearest: an integral quotient must be
    /// exact, or the remainder is off by all of `y`.
    fn float_remainder(&mut self, a: Value, b: Value) -> Reg {
        let (x, y) = (self.widen_float(a), self.widen_float(b));
        let ty = if self.ty(a) == Type::F64 { PtxType::F64 } else { PtxType::F32 };
        let quotient = self.rounded_quotient(ty, [x, y]);
        let truncated = self.b.convert("rzi", ty, ty, quotient.into());
        let product = self.b.typed("mul.rn", ty, &[y, truncated.into()]);
        let result = self.b.typed("sub.rn", ty, &[x, product.into()]);
        self.narrow_float(self.ty(a), result)
    }

    /// Divides, rounded to nearest. Division by a power of two becomes a multiplication, an
    /// optimisation that ptxas does not make.
    fn rounded_quotient(&mut self, ty: PtxType, [x, y]: [Operand; 2]) -> Reg {
        match exact_reciprocal(y) {
            Some(reciprocal) => self.b.typed("mul.rn", ty, &[x, reciprocal]),
            None => self.b.typed("div.rn", ty, &[x, y]),
        }
    }

    /// Rounds an `f32` to the precision and range of `f16`.
    fn quantize_f16(&mut self, a: Value) -> Reg {
        let a = self.value(a);
        let as_f16 = self.b.convert("rn", PtxType::F16, PtxType::F32, a);
        self.b.convert("", PtxType::F32, PtxType::F16, as_f16.into())
    }

    fn is_nan(&mut self, a: Value) -> Reg {
        let ty = ptx_type(self.ty(a));
        let a = self.reg(a).into();
        self.b.compare("nan", ty, a, a)
    }

    fn is_infinite(&mut self, a: Value) -> Reg {
        let kir_type = self.ty(a);
        let magnitude = self.lower_abs(a).into();
        let infinity = self.typed_constant(kir_type, infinity(kir_type));
        self.b.compare("eq", ptx_type(kir_type), magnitude, infinity)
    }

    /// Returns the dot product of two vectors of four bytes.
    fn dot(&mut self, name: &str, a: Value, b: Value) -> Reg {
        let operands = [self.value(a), self.value(b), Operand::u32(0)];
        self.b.op(PtxType::U32, Opcode::new(name), &operands)
    }
}

/// Returns the bits of 1.0.
pub(super) const fn one(ty: Type) -> u64 {
    match ty {
        Type::F16 => 0x3c00,
        Type::F32 => 1f32.to_bits() as u64,
        _ => 1f64.to_bits(),
    }
}

/// Returns the bits of positive infinity.
const fn infinity(ty: Type) -> u64 {
    match ty {
        Type::F16 => 0x7c00,
        Type::F32 => f32::INFINITY.to_bits() as u64,
        _ => f64::INFINITY.to_bits(),
    }
}

/// Returns the reciprocal of a constant, if it is exact and normal: that of a power of two.
fn exact_reciprocal(x: Operand) -> Option<Operand> {
    match x {
        Operand::Imm { bits, ty: PtxType::F32 } => {
            let x = f32::from_bits(bits as u32);
            let is_power_of_two = bits.trailing_zeros() >= f32::MANTISSA_DIGITS - 1;
            (is_power_of_two && x.is_normal() && x.recip().is_normal())
                .then(|| Operand::f32(x.recip()))
        }
        Operand::Imm { bits, ty: PtxType::F64 } => {
            let x = f64::from_bits(bits);
            let is_power_of_two = bits.trailing_zeros() >= f64::MANTISSA_DIGITS - 1;
            (is_power_of_two && x.is_normal() && x.recip().is_normal())
                .then(|| Operand::f64(x.recip()))
        }
        _ => None,
    }
}

/// Returns the integer with all bits set.
pub(super) const fn minus_one(ty: PtxType) -> Operand {
    Operand::Imm { bits: u64::MAX >> (64 - ty.class().bits()), ty }
}

/// Returns the type for sums, differences and products that wrap, unsigned for integers: ptxas
/// assumes that signed ones do not overflow, and may compute with more bits.
pub(super) const fn wrapping_type(ty: PtxType) -> PtxType {
    match ty {
        PtxType::S16 => PtxType::U16,
        PtxType::S32 => PtxType::U32,
        PtxType::S64 => PtxType::U64,
        other => other,
    }
}

/// Returns the signed type of the same size for an unsigned type; other types are unchanged.
pub(super) const fn to_signed(ty: PtxType) -> PtxType {
    match ty {
        PtxType::U16 => PtxType::S16,
        PtxType::U32 => PtxType::S32,
        PtxType::U64 => PtxType::S64,
        other => other,
    }
}
