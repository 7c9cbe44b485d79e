//! Types, handles and constants of the kernel IR.

use std::fmt;

use super::MatrixType;

/// The type of a value: a scalar or a cooperative matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Type {
    /// True or false; one byte in memory.
    Bool,
    /// 16-bit two's complement integer.
    I16,
    /// 16-bit unsigned integer.
    U16,
    /// 32-bit two's complement integer.
    I32,
    /// 32-bit unsigned integer.
    U32,
    /// 64-bit two's complement integer.
    I64,
    /// 64-bit unsigned integer.
    U64,
    /// IEEE 754 half precision.
    F16,
    /// IEEE 754 single precision.
    F32,
    /// IEEE 754 double precision.
    F64,
    /// A cooperative matrix.
    Matrix(MatrixType),
}

impl Type {
    /// Every scalar type.
    pub const ALL: [Self; 10] = [
        Self::Bool,
        Self::I16,
        Self::U16,
        Self::I32,
        Self::U32,
        Self::I64,
        Self::U64,
        Self::F16,
        Self::F32,
        Self::F64,
    ];

    /// Size in memory in bytes; of a matrix, that of all its elements.
    #[must_use]
    pub const fn size(self) -> u32 {
        match self {
            Self::Bool => 1,
            Self::I16 | Self::U16 | Self::F16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
            Self::Matrix(matrix) => matrix.bytes(),
        }
    }

    /// Width in bits; 1 for `Bool`.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            Self::Bool => 1,
            _ => self.size() * 8,
        }
    }

    /// Whether values are binary floats.
    #[must_use]
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::F32 | Self::F64)
    }

    /// Whether values are integers, signed or unsigned.
    #[must_use]
    pub const fn is_integer(self) -> bool {
        self.is_signed() || matches!(self, Self::U16 | Self::U32 | Self::U64)
    }

    /// Whether values are signed integers.
    #[must_use]
    pub const fn is_signed(self) -> bool {
        matches!(self, Self::I16 | Self::I32 | Self::I64)
    }

    /// Returns the type of a cooperative matrix; `None` for a scalar.
    #[must_use]
    pub const fn matrix(self) -> Option<MatrixType> {
        match self {
            Self::Matrix(matrix) => Some(matrix),
            _ => None,
        }
    }

    /// The unsigned integer type of the same size; the type itself for `Bool` and matrices.
    #[must_use]
    pub const fn to_unsigned(self) -> Self {
        match self {
            Self::Bool => Self::Bool,
            Self::I16 | Self::U16 | Self::F16 => Self::U16,
            Self::I32 | Self::U32 | Self::F32 => Self::U32,
            Self::I64 | Self::U64 | Self::F64 => Self::U64,
            Self::Matrix(_) => self,
        }
    }

    /// The name, as printed.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::I16 => "i16",
            Self::U16 => "u16",
            Self::I32 => "i32",
            Self::U32 => "u32",
            Self::I64 => "i64",
            Self::U64 => "u64",
            Self::F16 => "f16",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::Matrix(matrix) => matrix.name(),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A value that is computed once wherever its definition is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value(pub u32);

/// A mutable variable of each invocation: a virtual register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Var(pub u32);

/// The name of a loop or scope, by which [`Stmt::Break`](super::Stmt::Break) exits it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label(pub u32);

impl Value {
    /// Position in [`Kir::values`](super::Kir::values).
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl Var {
    /// Position in [`Kir::vars`](super::Kir::vars).
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl Label {
    /// The label of the whole kernel: exiting it terminates the invocation.
    pub const KERNEL: Self = Self(0);
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}", self.0)
    }
}

impl fmt::Display for Var {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}", self.0)
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "L{}", self.0)
    }
}

/// A scalar constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Const {
    /// The type.
    pub ty: Type,
    /// The bits of the value, zero-extended to 64.
    pub bits: u64,
}

impl Const {
    /// The zero, or false, of a type.
    #[must_use]
    pub const fn zero(ty: Type) -> Self {
        Self { ty, bits: 0 }
    }

    /// A `bool`.
    #[must_use]
    pub const fn bool(value: bool) -> Self {
        Self { ty: Type::Bool, bits: value as u64 }
    }

    /// A `u32`.
    #[must_use]
    pub const fn u32(value: u32) -> Self {
        Self { ty: Type::U32, bits: value as u64 }
    }

    /// An `i32`.
    #[must_use]
    pub const fn i32(value: i32) -> Self {
        Self { ty: Type::I32, bits: value as u32 as u64 }
    }

    /// An `f32`.
    #[must_use]
    pub const fn f32(value: f32) -> Self {
        Self { ty: Type::F32, bits: value.to_bits() as u64 }
    }

    /// An `f64`.
    #[must_use]
    pub const fn f64(value: f64) -> Self {
        Self { ty: Type::F64, bits: value.to_bits() }
    }

    /// An integer of type `ty`, truncated to its width.
    #[must_use]
    pub const fn int(ty: Type, value: i64) -> Self {
        let mask = u64::MAX >> (64 - ty.bits());
        Self { ty, bits: value as u64 & mask }
    }

    /// The value of an integer, sign-extended if its type is signed. A `U64` above `i64::MAX`
    /// wraps.
    #[must_use]
    pub const fn as_i64(self) -> i64 {
        let unused = 64u32.saturating_sub(self.ty.bits());
        if self.ty.is_signed() {
            ((self.bits << unused) as i64) >> unused
        } else {
            self.bits as i64
        }
    }
}
