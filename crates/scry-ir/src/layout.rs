//! The memory layout of host-shareable types: sizes, strides and offsets in bytes.

use std::fmt;

/// The interpretation of a scalar's bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScalarKind {
    /// Two's complement integer.
    Sint,
    /// Unsigned integer.
    Uint,
    /// IEEE 754 binary float.
    Float,
    /// bfloat16: a binary float with the exponent of `f32` and 8 bits of precision. Only host types
    /// use it; WGSL has no such type.
    Bfloat,
}

/// A scalar type: its kind and its width in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Scalar {
    /// The interpretation of the bits.
    pub kind: ScalarKind,
    /// Bytes: 1, 2, 4 or 8.
    pub width: u8,
}

impl Scalar {
    /// 32-bit float.
    pub const F32: Self = Self { kind: ScalarKind::Float, width: 4 };
    /// 32-bit unsigned integer.
    pub const U32: Self = Self { kind: ScalarKind::Uint, width: 4 };
    /// 32-bit signed integer.
    pub const I32: Self = Self { kind: ScalarKind::Sint, width: 4 };
    /// 16-bit float.
    pub const F16: Self = Self { kind: ScalarKind::Float, width: 2 };
    /// bfloat16.
    pub const BF16: Self = Self { kind: ScalarKind::Bfloat, width: 2 };
    /// 64-bit float.
    pub const F64: Self = Self { kind: ScalarKind::Float, width: 8 };
    /// 8-bit unsigned integer.
    pub const U8: Self = Self { kind: ScalarKind::Uint, width: 1 };
    /// 8-bit signed integer.
    pub const I8: Self = Self { kind: ScalarKind::Sint, width: 1 };
    /// 16-bit unsigned integer.
    pub const U16: Self = Self { kind: ScalarKind::Uint, width: 2 };
    /// 16-bit signed integer.
    pub const I16: Self = Self { kind: ScalarKind::Sint, width: 2 };
    /// 64-bit unsigned integer.
    pub const U64: Self = Self { kind: ScalarKind::Uint, width: 8 };
    /// 64-bit signed integer.
    pub const I64: Self = Self { kind: ScalarKind::Sint, width: 8 };
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letters = match self.kind {
            ScalarKind::Sint => "i",
            ScalarKind::Uint => "u",
            ScalarKind::Float => "f",
            ScalarKind::Bfloat => "bf",
        };
        write!(f, "{letters}{}", u32::from(self.width) * 8)
    }
}

/// The layout of a host-shareable WGSL type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TypeLayout {
    /// A scalar.
    Scalar(Scalar),
    /// An atomic; laid out as its scalar.
    Atomic(Scalar),
    /// `vecN<scalar>`: N components, tightly packed.
    Vector {
        /// Number of components: 2, 3 or 4.
        len: u8,
        /// Type of each component.
        scalar: Scalar,
    },
    /// `matCxR<scalar>`, stored column after column.
    Matrix {
        /// Number of columns: 2, 3 or 4.
        columns: u8,
        /// Number of rows: 2, 3 or 4.
        rows: u8,
        /// Type of each component.
        scalar: Scalar,
        /// Bytes from one column to the next.
        stride: u32,
    },
    /// `array<element, len>`, or `array<element>` when `len` is `None`.
    Array {
        /// Layout of one element.
        element: Box<TypeLayout>,
        /// Number of elements; `None` for a runtime-sized array.
        len: Option<u32>,
        /// Bytes from one element to the next.
        stride: u32,
    },
    /// A structure.
    Struct {
        /// Name of the type in the source.
        name: String,
        /// Members in order of offset.
        members: Vec<Member>,
        /// Size in bytes, including trailing padding. A runtime-sized array at the end counts as
        /// one element if the structure is WGSL's, and as none if the kernel was built in KIR.
        size: u32,
    },
}

/// One member of a structure.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Member {
    /// Name in the source.
    pub name: String,
    /// Bytes from the start of the structure.
    pub offset: u32,
    /// Layout of the member.
    pub layout: TypeLayout,
}

impl TypeLayout {
    /// Returns the size in bytes of the fixed part: a runtime-sized array counts as zero, except in
    /// the size of a [`TypeLayout::Struct`].
    #[must_use]
    pub fn fixed_size(&self) -> u64 {
        match self {
            Self::Scalar(s) | Self::Atomic(s) => u64::from(s.width),
            Self::Vector { len, scalar } => u64::from(*len) * u64::from(scalar.width),
            Self::Matrix { columns, stride, .. } => u64::from(*columns) * u64::from(*stride),
            Self::Array { len, stride, .. } => u64::from(len.unwrap_or(0)) * u64::from(*stride),
            Self::Struct { size, .. } => u64::from(*size),
        }
    }

    /// Returns byte offset and stride of the runtime-sized array at the end of the type, if there
    /// is one.
    #[must_use]
    pub fn runtime_array(&self) -> Option<(u64, u64)> {
        match self {
            Self::Array { len: None, stride, .. } => Some((0, u64::from(*stride))),
            Self::Struct { members, .. } => {
                let last = members.last()?;
                let (offset, stride) = last.layout.runtime_array()?;
                Some((u64::from(last.offset) + offset, stride))
            }
            _ => None,
        }
    }

    /// Returns the minimum size in bytes of a binding of this type: the fixed part, and one element
    /// of a runtime-sized array.
    #[must_use]
    pub fn min_binding_size(&self) -> u64 {
        match self.runtime_array() {
            Some((offset, stride)) => self.fixed_size().max(offset + stride),
            None => self.fixed_size(),
        }
    }
}

impl fmt::Display for TypeLayout {
    /// Writes the type as WGSL spells it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scalar(s) => write!(f, "{s}"),
            Self::Atomic(s) => write!(f, "atomic<{s}>"),
            Self::Vector { len, scalar } => write!(f, "vec{len}<{scalar}>"),
            Self::Matrix { columns, rows, scalar, .. } => {
                write!(f, "mat{columns}x{rows}<{scalar}>")
            }
            Self::Array { element, len: Some(len), .. } => write!(f, "array<{element}, {len}>"),
            Self::Array { element, len: None, .. } => write!(f, "array<{element}>"),
            Self::Struct { name, .. } => f.write_str(name),
        }
    }
}
