//! Types, registers and operands.

/// The operand type of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PtxType {
    /// Predicate (bool).
    Pred,
    /// 8 bits, in memory only.
    B8,
    /// 8-bit unsigned integer, in memory only.
    U8,
    /// 16 bits.
    B16,
    /// 16-bit unsigned integer.
    U16,
    /// 16-bit signed integer.
    S16,
    /// 16-bit IEEE 754 float.
    F16,
    /// bfloat16: the upper half of an f32.
    Bf16,
    /// 32 bits.
    B32,
    /// 32-bit unsigned integer.
    U32,
    /// 32-bit signed integer.
    S32,
    /// Two f16, the first in the low half.
    F16x2,
    /// Two bfloat16, the first in the low half.
    Bf16x2,
    /// 32-bit IEEE 754 float.
    F32,
    /// 64 bits.
    B64,
    /// 64-bit unsigned integer.
    U64,
    /// 64-bit signed integer.
    S64,
    /// 64-bit IEEE 754 float.
    F64,
}

impl PtxType {
    /// Returns the name in instructions, without the dot.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pred => "pred",
            Self::B8 => "b8",
            Self::U8 => "u8",
            Self::B16 => "b16",
            Self::U16 => "u16",
            Self::S16 => "s16",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::B32 => "b32",
            Self::U32 => "u32",
            Self::S32 => "s32",
            Self::F16x2 => "f16x2",
            Self::Bf16x2 => "bf16x2",
            Self::F32 => "f32",
            Self::B64 => "b64",
            Self::U64 => "u64",
            Self::S64 => "s64",
            Self::F64 => "f64",
        }
    }

    /// Returns the class of registers for such values; 8-bit values use 16-bit registers.
    #[must_use]
    pub const fn class(self) -> RegisterClass {
        match self {
            Self::Pred => RegisterClass::Pred,
            Self::B8 | Self::U8 | Self::B16 | Self::U16 | Self::S16 | Self::F16 | Self::Bf16 => {
                RegisterClass::B16
            }
            Self::B32 | Self::U32 | Self::S32 | Self::F16x2 | Self::Bf16x2 | Self::F32 => {
                RegisterClass::B32
            }
            Self::B64 | Self::U64 | Self::S64 | Self::F64 => RegisterClass::B64,
        }
    }

    /// Returns the size in bytes in memory; 1 for bools.
    #[must_use]
    pub const fn size(self) -> u32 {
        match self {
            Self::Pred | Self::B8 | Self::U8 => 1,
            _ => self.class().bits() / 8,
        }
    }

    /// Returns the untyped (`.b`) type of the same size; `pred` has none, and is unchanged.
    #[must_use]
    pub const fn to_bits(self) -> Self {
        match self {
            Self::B8 | Self::U8 => Self::B8,
            _ => self.class().ty(),
        }
    }
}

/// A class of registers. Registers are untyped; instructions determine the type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RegisterClass {
    /// A bool.
    Pred,
    /// 16 bits.
    B16,
    /// 32 bits.
    B32,
    /// 64 bits.
    B64,
}

impl RegisterClass {
    /// Every class.
    pub const ALL: [Self; 4] = [Self::Pred, Self::B16, Self::B32, Self::B64];

    /// Returns the prefix of register names.
    #[must_use]
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Pred => "%p",
            Self::B16 => "%h",
            Self::B32 => "%r",
            Self::B64 => "%d",
        }
    }

    /// Returns the type that registers are declared with.
    #[must_use]
    pub const fn ty(self) -> PtxType {
        match self {
            Self::Pred => PtxType::Pred,
            Self::B16 => PtxType::B16,
            Self::B32 => PtxType::B32,
            Self::B64 => PtxType::B64,
        }
    }

    /// Returns the number of bits of a register; 1 for bools.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            Self::Pred => 1,
            Self::B16 => 16,
            Self::B32 => 32,
            Self::B64 => 64,
        }
    }
}

/// A virtual register, allocated by [`Body::reg`](crate::Body::reg).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Reg {
    pub(crate) class: RegisterClass,
    pub(crate) index: u32,
}

impl Reg {
    /// Returns its class.
    #[must_use]
    pub const fn class(self) -> RegisterClass {
        self.class
    }
}

/// An operand: a register or an immediate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operand {
    /// A register.
    Reg(Reg),
    /// An immediate, by its bits. PTX has no immediates of 16-bit floats: `mov.b16` copies their
    /// bits to a register.
    Imm {
        /// The bits of the value, from bit 0 on.
        bits: u64,
        /// The type that determines its text.
        ty: PtxType,
    },
}

impl Operand {
    /// Creates a `u32` immediate.
    #[must_use]
    pub const fn u32(value: u32) -> Self {
        Self::Imm { bits: value as u64, ty: PtxType::U32 }
    }

    /// Creates an `i32` immediate.
    #[must_use]
    pub const fn s32(value: i32) -> Self {
        Self::Imm { bits: value as u32 as u64, ty: PtxType::S32 }
    }

    /// Creates a `u64` immediate.
    #[must_use]
    pub const fn u64(value: u64) -> Self {
        Self::Imm { bits: value, ty: PtxType::U64 }
    }

    /// Creates an `f32` immediate.
    #[must_use]
    pub const fn f32(value: f32) -> Self {
        Self::Imm { bits: value.to_bits() as u64, ty: PtxType::F32 }
    }

    /// Creates an `f64` immediate.
    #[must_use]
    pub const fn f64(value: f64) -> Self {
        Self::Imm { bits: value.to_bits(), ty: PtxType::F64 }
    }
}

impl From<Reg> for Operand {
    fn from(reg: Reg) -> Self {
        Self::Reg(reg)
    }
}

/// A state space: PTX's term for address space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StateSpace {
    /// Device memory.
    Global,
    /// Shared memory of a block.
    Shared,
    /// Private memory of a thread.
    Local,
    /// The kernel's parameters.
    Param,
}

impl StateSpace {
    /// Returns the name in instructions, without the dot.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::Shared => "shared",
            Self::Local => "local",
            Self::Param => "param",
        }
    }
}
