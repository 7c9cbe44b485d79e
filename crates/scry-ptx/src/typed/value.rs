//! Typed values and variables, and arithmetic with them.

use std::marker::PhantomData;
use std::ops::{Add, BitAnd, BitOr, BitXor, Mul, Neg, Not, Shl, Shr, Sub};

use super::KernelBuilder;
use crate::asm::Opcode;
use crate::types::{Operand, PtxType, Reg};

/// An element type of registers: `bool`, `i32`, Rust's unsigned integers and floats up to 64 bits,
/// and the types below.
pub trait Element: Copy {
    /// Its type in instructions.
    const TYPE: PtxType;
}

/// 16-bit IEEE 754 float.
#[derive(Debug, Clone, Copy)]
pub struct F16;
/// bfloat16: the upper half of an f32.
#[derive(Debug, Clone, Copy)]
pub struct Bf16;
/// Two f16, the first in the low half.
#[derive(Debug, Clone, Copy)]
pub struct F16x2;
/// Two bfloat16, the first in the low half.
#[derive(Debug, Clone, Copy)]
pub struct Bf16x2;

macro_rules! elements {
    ($($element:ty: $ty:ident),* $(,)?) => {$(
        impl Element for $element {
            const TYPE: PtxType = PtxType::$ty;
        }
    )*};
}

elements! {
    bool: Pred, u8: U8, u16: U16, u32: U32, i32: S32, u64: U64, f32: F32, f64: F64, F16: F16,
    Bf16: Bf16, F16x2: F16x2, Bf16x2: Bf16x2,
}

/// Types with arithmetic.
pub trait Number: Element {}

/// Numbers that can be compared: all but packed floats, whose `setp` has two results.
pub trait Scalar: Number {}

/// Numbers that can be negated: signed integers and floats.
pub trait Signed: Number {}

/// Numbers that can be divided: integers and floats of at least 32 bits.
pub trait Divisible: Scalar {}

/// Integers, with bitwise operations.
pub trait Bits: Divisible {}

macro_rules! numbers {
    ($($number:ident: $($operations:ident)+),* $(,)?) => {$(
        $(impl $operations for $number {})+
    )*};
}

numbers! {
    u16: Number Scalar Divisible Bits,
    u32: Number Scalar Divisible Bits,
    u64: Number Scalar Divisible Bits,
    i32: Number Scalar Signed Divisible Bits,
    f32: Number Scalar Signed Divisible,
    f64: Number Scalar Signed Divisible,
    F16: Number Scalar Signed,
    Bf16: Number Scalar Signed,
    F16x2: Number Signed,
    Bf16x2: Number Signed,
}

/// An operand of type `T`: a value, or a Rust constant.
pub trait ToOperand<T: Element>: Copy {
    /// Returns it as an instruction operand.
    fn operand(self) -> Operand;
}

impl ToOperand<u16> for u16 {
    fn operand(self) -> Operand {
        Operand::Imm { bits: self.into(), ty: PtxType::U16 }
    }
}
impl ToOperand<u32> for u32 {
    fn operand(self) -> Operand {
        Operand::u32(self)
    }
}
impl ToOperand<i32> for i32 {
    fn operand(self) -> Operand {
        Operand::s32(self)
    }
}
impl ToOperand<u64> for u64 {
    fn operand(self) -> Operand {
        Operand::u64(self)
    }
}
impl ToOperand<f32> for f32 {
    fn operand(self) -> Operand {
        Operand::f32(self)
    }
}
impl ToOperand<f64> for f64 {
    fn operand(self) -> Operand {
        Operand::f64(self)
    }
}

/// A value of a kernel: the result of an instruction, a constant, or the register of a variable
/// ([`Var::get`]).
#[derive(Debug)]
pub struct Val<'k, T> {
    pub(super) k: &'k KernelBuilder,
    pub(super) operand: Operand,
    pub(super) element: PhantomData<T>,
}

impl<T> Clone for Val<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Val<'_, T> {}

impl<T: Element> ToOperand<T> for Val<'_, T> {
    fn operand(self) -> Operand {
        self.operand
    }
}

impl<'k, T: Element> Val<'k, T> {
    /// Returns the builder of the kernel that it belongs to.
    #[must_use]
    pub fn builder(self) -> &'k KernelBuilder {
        self.k
    }

    /// Returns its register; a constant is copied to a new one.
    #[must_use]
    pub fn reg(self) -> Reg {
        self.k.edit(|body| body.in_register(self.operand))
    }

    /// Reinterprets the bits as another type of the same size.
    #[must_use]
    pub fn cast<U: Element>(self) -> Val<'k, U> {
        self.k.wrap(self.reg())
    }

    /// Converts to another type; `rounding` is empty or a modifier such as `rn`, `rzi`.
    #[must_use]
    pub fn convert<U: Element>(self, rounding: &str) -> Val<'k, U> {
        let result = self.k.edit(|body| body.convert(rounding, U::TYPE, T::TYPE, self.operand));
        self.k.wrap(result)
    }

    /// Emits `name.type self`, and returns the result.
    #[must_use]
    pub fn unary(self, name: &str) -> Self {
        self.k.op(Opcode::typed(name, T::TYPE), &[self.operand])
    }

    /// Emits `name.type self, other`, and returns the result.
    #[must_use]
    pub fn binary(self, name: &str, other: impl ToOperand<T>) -> Self {
        self.k.op(Opcode::typed(name, T::TYPE), &[self.operand, other.operand()])
    }

    pub(super) fn bitwise(self, name: &str, other: Operand) -> Self {
        self.k.op(Opcode::typed(name, T::TYPE.to_bits()), &[self.operand, other])
    }

    fn compare(self, comparison: &str, other: impl ToOperand<T>) -> Val<'k, bool> {
        let (a, b) = (self.operand, other.operand());
        let result = self.k.edit(|body| body.compare(comparison, T::TYPE, a, b));
        self.k.wrap(result)
    }
}

/// Comparisons.
///
/// ```compile_fail,E0599
/// # use scry_ptx::{Target, typed};
/// typed::kernel("k", Target::SM_80, [32, 1, 1], |k| {
///     let pair = k.scalar_param::<typed::F16x2>("pair");
///     let _ = pair.lt(pair);
/// });
/// ```
impl<'k, T: Scalar> Val<'k, T> {
    /// Returns whether it is less.
    #[must_use]
    pub fn lt(self, other: impl ToOperand<T>) -> Val<'k, bool> {
        self.compare("lt", other)
    }

    /// Returns whether it is less or equal.
    #[must_use]
    pub fn le(self, other: impl ToOperand<T>) -> Val<'k, bool> {
        self.compare("le", other)
    }

    /// Returns whether it is greater.
    #[must_use]
    pub fn gt(self, other: impl ToOperand<T>) -> Val<'k, bool> {
        self.compare("gt", other)
    }

    /// Returns whether it is greater or equal.
    #[must_use]
    pub fn ge(self, other: impl ToOperand<T>) -> Val<'k, bool> {
        self.compare("ge", other)
    }

    /// Returns whether both are equal.
    #[must_use]
    pub fn eq(self, other: impl ToOperand<T>) -> Val<'k, bool> {
        self.compare("eq", other)
    }

    /// Returns whether they differ; true if a float is NaN.
    #[must_use]
    pub fn ne(self, other: impl ToOperand<T>) -> Val<'k, bool> {
        let is_float =
            matches!(T::TYPE, PtxType::F16 | PtxType::Bf16 | PtxType::F32 | PtxType::F64);
        self.compare(if is_float { "neu" } else { "ne" }, other)
    }
}

/// Other operations of all numbers.
impl<T: Number> Val<'_, T> {
    /// Returns the minimum; of a float and NaN, the float.
    #[must_use]
    pub fn min(self, other: impl ToOperand<T>) -> Self {
        self.binary("min", other)
    }

    /// Returns the maximum; of a float and NaN, the float.
    #[must_use]
    pub fn max(self, other: impl ToOperand<T>) -> Self {
        self.binary("max", other)
    }

    /// Returns `self * factor + addend`: rounded once for floats (FMA), the low bits for integers.
    #[must_use]
    pub fn mul_add(self, factor: impl ToOperand<T>, addend: impl ToOperand<T>) -> Self {
        let name = match T::TYPE {
            PtxType::U16 | PtxType::U32 | PtxType::S32 | PtxType::U64 => "mad.lo",
            _ => "fma.rn",
        };
        let operands = [self.operand, factor.operand(), addend.operand()];
        self.k.op(Opcode::typed(name, T::TYPE), &operands)
    }
}

impl<'k> Val<'k, bool> {
    /// Selects one of two values: the first where this bool is true.
    #[must_use]
    pub fn select<T: Element>(
        self,
        if_true: impl ToOperand<T>,
        if_false: impl ToOperand<T>,
    ) -> Val<'k, T> {
        let (pred, if_true, if_false) = (self.reg(), if_true.operand(), if_false.operand());
        let result = self.k.edit(|body| body.select(T::TYPE, pred, if_true, if_false));
        self.k.wrap(result)
    }
}

/// Functions that the hardware approximates. Subnormal operands and results are flushed to zero
/// (`.ftz`).
impl Val<'_, f32> {
    /// Returns 2 to the power of this number, within 2 ULP.
    #[must_use]
    pub fn exp2(self) -> Self {
        self.unary("ex2.approx.ftz")
    }

    /// Returns the logarithm to base 2.
    #[must_use]
    pub fn log2(self) -> Self {
        self.unary("lg2.approx.ftz")
    }

    /// Returns the reciprocal, within 1 ULP.
    #[must_use]
    pub fn recip(self) -> Self {
        self.unary("rcp.approx.ftz")
    }

    /// Returns the reciprocal of the square root.
    #[must_use]
    pub fn rsqrt(self) -> Self {
        self.unary("rsqrt.approx.ftz")
    }
}

/// Converts two `f32` to 16-bit floats and packs them into one register, `low` in the low half. `P`
/// is [`F16x2`] or [`Bf16x2`].
#[must_use]
pub fn pack<'k, P: Element>(low: Val<'k, f32>, high: Val<'k, f32>) -> Val<'k, P> {
    let opcode = Opcode::new("cvt.rn").ty(P::TYPE).ty(PtxType::F32);
    low.k.op(opcode, &[high.operand, low.operand])
}

impl<'k, T: Number, R: ToOperand<T>> Add<R> for Val<'k, T> {
    type Output = Self;
    fn add(self, other: R) -> Self {
        self.binary("add", other)
    }
}

impl<'k, T: Number, R: ToOperand<T>> Sub<R> for Val<'k, T> {
    type Output = Self;
    fn sub(self, other: R) -> Self {
        self.binary("sub", other)
    }
}

impl<'k, T: Number, R: ToOperand<T>> Mul<R> for Val<'k, T> {
    type Output = Self;
    fn mul(self, other: R) -> Self {
        let name = match T::TYPE {
            PtxType::U16 | PtxType::U32 | PtxType::S32 | PtxType::U64 => "mul.lo",
            _ => "mul",
        };
        self.binary(name, other)
    }
}

impl<'k, T: Bits, R: ToOperand<T>> BitAnd<R> for Val<'k, T> {
    type Output = Self;
    fn bitand(self, other: R) -> Self {
        self.bitwise("and", other.operand())
    }
}

impl<'k, T: Bits, R: ToOperand<T>> BitOr<R> for Val<'k, T> {
    type Output = Self;
    fn bitor(self, other: R) -> Self {
        self.bitwise("or", other.operand())
    }
}

impl<'k, T: Bits, R: ToOperand<T>> BitXor<R> for Val<'k, T> {
    type Output = Self;
    fn bitxor(self, other: R) -> Self {
        self.bitwise("xor", other.operand())
    }
}

impl<'k, T: Bits, R: ToOperand<u32>> Shl<R> for Val<'k, T> {
    type Output = Self;
    fn shl(self, by: R) -> Self {
        self.bitwise("shl", by.operand())
    }
}

/// Arithmetic for signed integers, else logical.
impl<'k, T: Bits, R: ToOperand<u32>> Shr<R> for Val<'k, T> {
    type Output = Self;
    fn shr(self, by: R) -> Self {
        self.k.op(Opcode::typed("shr", T::TYPE), &[self.operand, by.operand()])
    }
}

/// Not for unsigned integers: PTX has no such `neg`.
///
/// ```compile_fail,E0277
/// # use scry_ptx::{Target, typed};
/// typed::kernel("k", Target::SM_80, [32, 1, 1], |k| {
///     let _ = -k.scalar_param::<u32>("number");
/// });
/// ```
impl<T: Signed> Neg for Val<'_, T> {
    type Output = Self;
    fn neg(self) -> Self {
        self.unary("neg")
    }
}

impl BitAnd for Val<'_, bool> {
    type Output = Self;
    fn bitand(self, other: Self) -> Self {
        self.bitwise("and", other.operand)
    }
}

impl BitOr for Val<'_, bool> {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        self.bitwise("or", other.operand)
    }
}

impl Not for Val<'_, bool> {
    type Output = Self;
    fn not(self) -> Self {
        self.k.op(Opcode::new("not.pred"), &[self.operand])
    }
}

/// A variable of each thread, in a register.
#[derive(Debug)]
pub struct Var<'k, T> {
    pub(super) k: &'k KernelBuilder,
    pub(super) reg: Reg,
    pub(super) element: PhantomData<T>,
}

impl<T> Clone for Var<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Var<'_, T> {}

impl<'k, T: Element> Var<'k, T> {
    /// Returns the variable's register as a value. Later assignments change it: use [`Val::copied`]
    /// to keep the current value.
    #[must_use]
    pub fn get(self) -> Val<'k, T> {
        self.k.wrap(self.reg)
    }

    /// Assigns a value.
    pub fn set(self, value: impl ToOperand<T>) {
        self.k.edit(|body| body.assign(self.reg, value.operand()));
    }

    /// Returns the register.
    #[must_use]
    pub fn reg(self) -> Reg {
        self.reg
    }
}

impl<T: Element> Val<'_, T> {
    /// Copies the current value to a new register.
    #[must_use]
    pub fn copied(self) -> Self {
        let result = self.k.edit(|body| body.copy(T::TYPE, self.operand));
        self.k.wrap(result)
    }
}
