//! Rust scalars as operands. They are weak: they adopt the element type of the tensor.

use half::{bf16, f16};

use crate::dtype::DType;
use crate::error::{Call, ErrorKind, Result};

/// A number or bool of the program, as an operand. It adopts the type in which the elements of the
/// tensor are computed: `f32` for 16-bit floats. Integers fit integers in range, and floats, to
/// which they are rounded; floats fit only floats. A number that would become infinite is an error.
///
/// ```
/// use scry_tensor::Scalar;
///
/// assert_eq!(Scalar::from(2), Scalar::Int(2));
/// assert_eq!(Scalar::from(0.5f32), Scalar::Float(0.5));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scalar {
    /// A bool.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
}

macro_rules! from {
    ($($ty:ty => $variant:ident;)*) => {
        $(impl From<$ty> for Scalar {
            fn from(value: $ty) -> Self {
                Self::$variant(value.into())
            }
        })*
    };
}

from! {
    bool => Bool;
    i32 => Int;
    i64 => Int;
    u32 => Int;
    f32 => Float;
    f64 => Float;
    f16 => Float;
    bf16 => Float;
}

impl Scalar {
    /// Returns the bits of the value in the type that kernels compute with for elements of `dtype`.
    pub(crate) fn bits(self, call: Call, dtype: DType) -> Result<u32> {
        let too_large = || {
            call.error(
                ErrorKind::Value,
                format!("the scalar {self} is out of range for {dtype}"),
                "use a scalar in range, or convert the tensor with `.cast()`",
            )
        };
        match (self, dtype) {
            (Self::Int(value), DType::I32) => {
                i32::try_from(value).map(|value| value as u32).map_err(|_| too_large())
            }
            (Self::Int(value), DType::U32) => u32::try_from(value).map_err(|_| too_large()),
            (Self::Int(_) | Self::Float(_), _) if dtype.is_float() => {
                let value = self.to_f64();
                let is_infinite = match dtype {
                    DType::F16 => to_f16(value).is_infinite(),
                    DType::BF16 => to_bf16(value).is_infinite(),
                    _ => (value as f32).is_infinite(),
                };
                if is_infinite && value.is_finite() {
                    return Err(too_large());
                }
                Ok((value as f32).to_bits())
            }
            (Self::Bool(value), DType::Bool) => Ok(value.into()),
            _ => Err(call.error(
                ErrorKind::DType,
                format!("the scalar {self} does not fit elements of {dtype}"),
                format!(
                    "convert the tensor, such as with `.cast(DType::{:?})`, or the scalar",
                    self.natural()
                ),
            )),
        }
    }

    /// Returns the number; 1 for `true`.
    pub(crate) fn to_f64(self) -> f64 {
        match self {
            Self::Bool(value) => u8::from(value).into(),
            Self::Int(value) => value as f64,
            Self::Float(value) => value,
        }
    }

    /// Returns the element type that suits the scalar on its own.
    fn natural(self) -> DType {
        match self {
            Self::Bool(_) => DType::Bool,
            Self::Int(_) => DType::I32,
            Self::Float(_) => DType::F32,
        }
    }
}

/// Rounds to the nearest, ties to even. (`f16::from_f64` may round twice.)
pub(crate) fn to_f16(value: f64) -> f16 {
    f16::from_f32(to_odd(value))
}

/// Rounds to the nearest, ties to even. (`bf16::from_f64` drops the low bits.)
pub(crate) fn to_bf16(value: f64) -> bf16 {
    bf16::from_f32(to_odd(value))
}

/// Rounds towards zero, and sets the last bit if the result is inexact: rounding it again, to fewer
/// bits, is as if the value were rounded once.
fn to_odd(value: f64) -> f32 {
    let nearest = value as f32;
    if f64::from(nearest) == value || value.is_nan() {
        return nearest;
    }
    let is_larger = f64::from(nearest).abs() > value.abs();
    f32::from_bits((nearest.to_bits() - u32::from(is_larger)) | 1)
}

impl std::fmt::Display for Scalar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bool(value) => write!(f, "{value}"),
            Self::Int(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value:?}"),
        }
    }
}
