//! Element types of tensors.

use std::fmt;

use scry_gpu::kir::Type;
use scry_kernels::BlockFormat;

/// The element type of a tensor, a run-time value. The [crate documentation](crate#element-types)
/// has the rules for mixed types. [`scry_gpu::DType`], the type of buffers, has 64-bit and 8-bit
/// types, but no `bool` and no quantised ones.
///
/// ```
/// use scry_tensor::DType;
///
/// assert_eq!((DType::F16.name(), DType::F16.is_float()), ("f16", true));
/// assert_eq!(DType::Q4_1.to_string(), "q4_1");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DType {
    /// IEEE 754 single precision.
    F32,
    /// IEEE 754 half precision; computed in `f32`.
    F16,
    /// The upper half of an `f32`; computed in `f32`.
    BF16,
    /// Signed integers of 32 bits. Overflow wraps.
    I32,
    /// Unsigned integers of 32 bits. Overflow wraps.
    U32,
    /// True or false, one byte.
    Bool,
    /// Quantised weights in blocks of 32: 4 bits and a scale.
    Q4_0,
    /// Quantised weights in blocks of 32: 4 bits, a scale and a minimum.
    Q4_1,
    /// Quantised weights in blocks of 32: 8 bits and a scale.
    Q8_0,
    /// Quantised weights in blocks of 256: 4 bits, with scales and minimums of parts.
    Q4K,
    /// Quantised weights in blocks of 256: 5 bits, with scales and minimums of parts.
    Q5K,
    /// Quantised weights in blocks of 256: 6 bits, with scales of parts.
    Q6K,
}

/// Types of floats.
pub(crate) const FLOATS: &[DType] = &[DType::F32, DType::F16, DType::BF16];
/// Types of integers.
pub(crate) const INTEGERS: &[DType] = &[DType::I32, DType::U32];
/// Types with a sign.
pub(crate) const SIGNED: &[DType] = &[DType::F32, DType::F16, DType::BF16, DType::I32];
/// Types of numbers.
pub(crate) const NUMBERS: &[DType] = &[DType::F32, DType::F16, DType::BF16, DType::I32, DType::U32];
/// Types whose elements are accessed one by one: all but those of quantised weights.
pub(crate) const ELEMENTS: &[DType] =
    &[DType::F32, DType::F16, DType::BF16, DType::I32, DType::U32, DType::Bool];
/// The type of bools.
pub(crate) const BOOL: &[DType] = &[DType::Bool];

impl DType {
    /// Returns the name in lower case: `f32`, `bool`, `q4_k`.
    ///
    /// ```
    /// assert_eq!(scry_tensor::DType::Q4K.name(), "q4_k");
    /// ```
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::BF16 => "bf16",
            Self::I32 => "i32",
            Self::U32 => "u32",
            Self::Bool => "bool",
            Self::Q4_0 => "q4_0",
            Self::Q4_1 => "q4_1",
            Self::Q8_0 => "q8_0",
            Self::Q4K => "q4_k",
            Self::Q5K => "q5_k",
            Self::Q6K => "q6_k",
        }
    }

    /// Returns whether elements are floats: `f32`, `f16` or `bf16`.
    ///
    /// ```
    /// assert!(!scry_tensor::DType::I32.is_float());
    /// ```
    #[must_use]
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F16 | Self::BF16)
    }

    /// Returns whether elements are quantised weights, which are stored in blocks.
    ///
    /// ```
    /// assert!(scry_tensor::DType::Q8_0.is_quantized());
    /// ```
    #[must_use]
    pub const fn is_quantized(self) -> bool {
        self.block_format().is_some()
    }

    /// Returns the format of the blocks of quantised weights; `None` for other types.
    pub(crate) const fn block_format(self) -> Option<BlockFormat> {
        Some(match self {
            Self::Q4_0 => BlockFormat::Q4_0,
            Self::Q4_1 => BlockFormat::Q4_1,
            Self::Q8_0 => BlockFormat::Q8_0,
            Self::Q4K => BlockFormat::Q4K,
            Self::Q5K => BlockFormat::Q5K,
            Self::Q6K => BlockFormat::Q6K,
            _ => return None,
        })
    }

    /// Returns the size of an element in bytes; 1 for quantised weights, which have no elements.
    pub(crate) const fn size(self) -> usize {
        match self {
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::F16 | Self::BF16 => 2,
            _ => 1,
        }
    }

    /// Returns the type that kernels compute with.
    pub(crate) const fn computed(self) -> Type {
        match self {
            Self::I32 => Type::I32,
            Self::U32 => Type::U32,
            Self::Bool => Type::Bool,
            _ => Type::F32,
        }
    }

    /// Returns the type of a buffer with such elements, for the kernel library; `None` for bools.
    pub(crate) const fn of_buffer(self) -> Option<scry_gpu::DType> {
        Some(match self {
            Self::F32 => scry_gpu::DType::F32,
            Self::F16 => scry_gpu::DType::F16,
            Self::BF16 => scry_gpu::DType::BF16,
            Self::I32 => scry_gpu::DType::I32,
            Self::U32 => scry_gpu::DType::U32,
            _ => return None,
        })
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
