//! The element types of arrays.

use std::fmt;

use half::f16;
use scry_ir::{Scalar, ScalarKind};

/// The type of an array's elements: what WGSL kernels and .npy files have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dtype {
    F16,
    F32,
    F64,
    I32,
    U32,
    I64,
    U64,
}

/// Every element type.
const ALL: [Dtype; 7] =
    [Dtype::F16, Dtype::F32, Dtype::F64, Dtype::I32, Dtype::U32, Dtype::I64, Dtype::U64];

/// A Rust type that is the elements of arrays.
pub trait Value: bytemuck::Pod + fmt::Display {
    /// Draws a value: floats uniformly from [0, 1), integers uniformly from their whole range.
    fn random(random: &mut fastrand::Rng) -> Self;
}

/// Something to do for the Rust type that an element type stands for.
pub trait Visitor {
    /// What comes out.
    type Output;
    /// Does it.
    fn visit<T: Value>(self) -> Self::Output;
}

impl Dtype {
    /// The name, as WGSL spells the type.
    pub fn name(self) -> &'static str {
        match self {
            Self::F16 => "f16",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::I32 => "i32",
            Self::U32 => "u32",
            Self::I64 => "i64",
            Self::U64 => "u64",
        }
    }

    /// The type of that name.
    pub fn named(name: &str) -> Option<Self> {
        ALL.into_iter().find(|dtype| dtype.name() == name)
    }

    /// All names, for messages.
    pub fn names() -> String {
        ALL.map(Self::name).join(", ")
    }

    /// The name that NumPy gives the type, such as `float32`.
    pub fn numpy_name(self) -> &'static str {
        match self {
            Self::F16 => "float16",
            Self::F32 => "float32",
            Self::F64 => "float64",
            Self::I32 => "int32",
            Self::U32 => "uint32",
            Self::I64 => "int64",
            Self::U64 => "uint64",
        }
    }

    /// Kind letter and size of the type in a .npy header, such as `f4`.
    pub fn npy_code(self) -> &'static str {
        match self {
            Self::F16 => "f2",
            Self::F32 => "f4",
            Self::F64 => "f8",
            Self::I32 => "i4",
            Self::U32 => "u4",
            Self::I64 => "i8",
            Self::U64 => "u8",
        }
    }

    /// The type with that code in a .npy header.
    pub fn from_npy_code(code: &str) -> Option<Self> {
        ALL.into_iter().find(|dtype| dtype.npy_code() == code)
    }

    /// Bytes of one value.
    pub fn size(self) -> usize {
        match self {
            Self::F16 => 2,
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::F64 | Self::I64 | Self::U64 => 8,
        }
    }

    /// The type of a kernel's scalars, unless it is one that arrays do not have.
    pub fn of_scalar(scalar: Scalar) -> Option<Self> {
        Some(match (scalar.kind, scalar.width) {
            (ScalarKind::Float, 2) => Self::F16,
            (ScalarKind::Float, 4) => Self::F32,
            (ScalarKind::Float, 8) => Self::F64,
            (ScalarKind::Sint, 4) => Self::I32,
            (ScalarKind::Uint, 4) => Self::U32,
            (ScalarKind::Sint, 8) => Self::I64,
            (ScalarKind::Uint, 8) => Self::U64,
            _ => return None,
        })
    }

    /// Does something for the Rust type.
    pub fn visit<V: Visitor>(self, visitor: V) -> V::Output {
        match self {
            Self::F16 => visitor.visit::<f16>(),
            Self::F32 => visitor.visit::<f32>(),
            Self::F64 => visitor.visit::<f64>(),
            Self::I32 => visitor.visit::<i32>(),
            Self::U32 => visitor.visit::<u32>(),
            Self::I64 => visitor.visit::<i64>(),
            Self::U64 => visitor.visit::<u64>(),
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Value for f16 {
    fn random(random: &mut fastrand::Rng) -> Self {
        // A multiple of 2^-11 is exact: rounding an f32 might give 1.
        Self::from_f32(random.u16(0..2048).into()) / Self::from_f32(2048.0)
    }
}

impl Value for f32 {
    fn random(random: &mut fastrand::Rng) -> Self {
        random.f32()
    }
}

impl Value for f64 {
    fn random(random: &mut fastrand::Rng) -> Self {
        random.f64()
    }
}

impl Value for i32 {
    fn random(random: &mut fastrand::Rng) -> Self {
        random.i32(..)
    }
}

impl Value for u32 {
    fn random(random: &mut fastrand::Rng) -> Self {
        random.u32(..)
    }
}

impl Value for i64 {
    fn random(random: &mut fastrand::Rng) -> Self {
        random.i64(..)
    }
}

impl Value for u64 {
    fn random(random: &mut fastrand::Rng) -> Self {
        random.u64(..)
    }
}
