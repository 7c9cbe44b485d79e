//! Element types as run-time values.

use std::fmt;
use std::str::FromStr;

use scry_ir::{Scalar, ScalarKind};

use crate::api::element::{Element, ElementLayout};

/// The type of a scalar element as a value, for tensors, files and command lines, where it is only
/// known at run time. See [`UntypedBuffer`](crate::UntypedBuffer). The crate scry-tensor has a type
/// of the same name, with `bool` and quantised types, and without 64-bit ones.
///
/// ```
/// use scry_gpu::DType;
///
/// let dtype: DType = "bf16".parse()?;
/// assert_eq!((dtype, dtype.size(), dtype.name()), (DType::BF16, 2, "bf16"));
/// assert_eq!(DType::of::<f32>(), Some(DType::F32));
/// # Ok::<(), scry_gpu::ParseDTypeError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DType {
    /// Unsigned integers of 8 bits.
    U8,
    /// Signed integers of 8 bits.
    I8,
    /// Unsigned integers of 16 bits.
    U16,
    /// Signed integers of 16 bits.
    I16,
    /// IEEE 754 half precision, 16 bits.
    F16,
    /// bfloat16: the upper half of an `f32`.
    BF16,
    /// Unsigned integers of 32 bits.
    U32,
    /// Signed integers of 32 bits.
    I32,
    /// IEEE 754 single precision, 32 bits.
    F32,
    /// Unsigned integers of 64 bits.
    U64,
    /// Signed integers of 64 bits.
    I64,
    /// IEEE 754 double precision, 64 bits.
    F64,
}

impl DType {
    /// All types, sorted by size.
    ///
    /// ```
    /// use scry_gpu::DType;
    /// assert!(DType::ALL.iter().all(|dtype| dtype.name().parse() == Ok(*dtype)));
    /// ```
    pub const ALL: [Self; 12] = [
        Self::U8,
        Self::I8,
        Self::U16,
        Self::I16,
        Self::F16,
        Self::BF16,
        Self::U32,
        Self::I32,
        Self::F32,
        Self::U64,
        Self::I64,
        Self::F64,
    ];

    /// Returns the type of a scalar element; `None` for arrays, structures and opaque types.
    ///
    /// ```
    /// use scry_gpu::{DType, f16};
    /// assert_eq!(DType::of::<f16>(), Some(DType::F16));
    /// assert_eq!(DType::of::<[f32; 4]>(), None);
    /// ```
    #[must_use]
    pub fn of<T: Element>() -> Option<Self> {
        Self::of_layout(&T::LAYOUT)
    }

    pub(crate) fn of_layout(layout: &ElementLayout) -> Option<Self> {
        let ElementLayout::Scalar(scalar) = layout else { return None };
        Self::ALL.into_iter().find(|dtype| dtype.scalar() == *scalar)
    }

    /// Returns the size of an element in bytes: 1, 2, 4 or 8.
    ///
    /// ```
    /// use scry_gpu::DType;
    /// assert_eq!(DType::F64.size(), 8);
    /// ```
    #[must_use]
    pub const fn size(self) -> usize {
        self.scalar().width as usize
    }

    /// Returns the name of the Rust type, which is also that of the WGSL type if there is one.
    ///
    /// ```
    /// use scry_gpu::DType;
    /// assert_eq!(DType::I16.name(), "i16");
    /// ```
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::U8 => "u8",
            Self::I8 => "i8",
            Self::U16 => "u16",
            Self::I16 => "i16",
            Self::F16 => "f16",
            Self::BF16 => "bf16",
            Self::U32 => "u32",
            Self::I32 => "i32",
            Self::F32 => "f32",
            Self::U64 => "u64",
            Self::I64 => "i64",
            Self::F64 => "f64",
        }
    }

    /// Returns the kind and width of the scalar, as in the layouts of kernels.
    ///
    /// ```
    /// use scry_gpu::{DType, Scalar};
    /// assert_eq!(DType::F32.scalar(), Scalar::F32);
    /// ```
    #[must_use]
    pub const fn scalar(self) -> Scalar {
        use ScalarKind::{Bfloat, Float, Sint, Uint};
        let (kind, width) = match self {
            Self::U8 => (Uint, 1),
            Self::I8 => (Sint, 1),
            Self::U16 => (Uint, 2),
            Self::I16 => (Sint, 2),
            Self::F16 => (Float, 2),
            Self::BF16 => (Bfloat, 2),
            Self::U32 => (Uint, 4),
            Self::I32 => (Sint, 4),
            Self::F32 => (Float, 4),
            Self::U64 => (Uint, 8),
            Self::I64 => (Sint, 8),
            Self::F64 => (Float, 8),
        };
        Scalar { kind, width }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for DType {
    type Err = ParseDTypeError;

    /// Parses a name such as `f32`; upper case, as safetensors files have it, is accepted too.
    fn from_str(name: &str) -> Result<Self, ParseDTypeError> {
        let found = Self::ALL.into_iter().find(|dtype| dtype.name().eq_ignore_ascii_case(name));
        found.ok_or_else(|| ParseDTypeError { name: name.to_owned() })
    }
}

/// Error for a string that is not the name of a [`DType`].
///
/// ```
/// use scry_gpu::DType;
/// let error = "float".parse::<DType>().unwrap_err();
/// assert!(error.to_string().starts_with("`float` is not an element type"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{name}` is not an element type; help: use one of {}",
    DType::ALL.map(DType::name).join(", ")
)]
pub struct ParseDTypeError {
    name: String,
}

/// The element type of a buffer, as a value.
#[derive(Debug, Clone, Copy)]
#[doc(hidden)]
pub struct ElementType {
    pub layout: ElementLayout,
    /// Bytes of an element.
    pub size: u64,
    /// Alignment of an element in bytes.
    pub align: u64,
    /// Name of the Rust type.
    pub name: &'static str,
}

impl ElementType {
    /// Returns the type of a typed buffer's elements.
    pub(crate) fn of<T: Element>() -> Self {
        Self {
            layout: T::LAYOUT,
            size: size_of::<T>() as u64,
            align: align_of::<T>() as u64,
            name: std::any::type_name::<T>(),
        }
    }

    /// Returns whether the types are the same. Opaque types are compared by name.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let has_same_layout = self.layout == other.layout && self.size == other.size;
        has_same_layout
            && (!matches!(self.layout, ElementLayout::Opaque) || self.name == other.name)
    }
}

impl From<Option<DType>> for ElementType {
    /// Converts `None` to untyped bytes, which fit every type.
    fn from(dtype: Option<DType>) -> Self {
        match dtype {
            Some(dtype) => {
                let (layout, size) = (ElementLayout::Scalar(dtype.scalar()), dtype.size() as u64);
                Self { layout, size, align: size, name: dtype.name() }
            }
            None => Self { layout: ElementLayout::Opaque, size: 1, align: 1, name: "raw bytes" },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_agrees<T: Element>(dtype: DType) {
        let (static_type, dynamic_type) = (ElementType::of::<T>(), ElementType::from(Some(dtype)));
        assert_eq!(DType::of::<T>(), Some(dtype));
        assert!(static_type.is_same(&dynamic_type), "{static_type:?} {dynamic_type:?}");
        assert_eq!((static_type.align, dtype.size()), (dynamic_type.align, size_of::<T>()));
        assert_eq!(dtype.to_string(), dtype.scalar().to_string());
    }

    #[test]
    fn types_agree_with_elements() {
        assert_agrees::<u8>(DType::U8);
        assert_agrees::<i8>(DType::I8);
        assert_agrees::<u16>(DType::U16);
        assert_agrees::<i16>(DType::I16);
        assert_agrees::<half::f16>(DType::F16);
        assert_agrees::<half::bf16>(DType::BF16);
        assert_agrees::<u32>(DType::U32);
        assert_agrees::<i32>(DType::I32);
        assert_agrees::<f32>(DType::F32);
        assert_agrees::<u64>(DType::U64);
        assert_agrees::<i64>(DType::I64);
        assert_agrees::<f64>(DType::F64);
        assert!(!ElementType::of::<f32>().is_same(&ElementType::of::<u32>()));
        assert!(!ElementType::from(None).is_same(&ElementType::of::<u8>()));
    }

    #[test]
    fn names_are_parsed_in_either_case() {
        assert_eq!("BF16".parse(), Ok(DType::BF16));
        assert_eq!(
            "float32".parse::<DType>().unwrap_err().to_string(),
            "`float32` is not an element type; help: use one of u8, i8, u16, i16, f16, bf16, u32, \
             i32, f32, u64, i64, f64"
        );
        assert!("".parse::<DType>().is_err());
        assert_eq!(format!("{:>5}|{:<5}|", DType::F32, DType::U8), "  f32|u8   |");
    }
}
