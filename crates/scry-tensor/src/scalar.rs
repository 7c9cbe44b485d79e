//! Rust scalars as operands. They are weak: they adopt the element type of the tensor.

use crate::dtype::DType;
use crate::error::{Call, ErrorKind, Result};

/// A number or bool of the program, as an operand. It adopts the element type of the tensor that
/// it is used with; integers fit every type that can represent them, floats only floats.
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
    half::f16 => Float;
    half::bf16 => Float;
}

impl Scalar {
    /// Returns the bits of the value in the type that kernels compute with for elements of `dtype`.
    pub(crate) fn bits(self, call: Call, dtype: DType) -> Result<u32> {
        let too_large = |value: i64| {
            call.error(
                ErrorKind::Value,
                format!("the scalar {value} is out of range for {dtype}"),
                "use a scalar in range, or convert the tensor with `.cast()`",
            )
        };
        match (self, dtype) {
            (Self::Int(value), DType::I32) => {
                i32::try_from(value).map(|value| value as u32).map_err(|_| too_large(value))
            }
            (Self::Int(value), DType::U32) => u32::try_from(value).map_err(|_| too_large(value)),
            (Self::Int(value), _) if dtype.is_float() => Ok((value as f32).to_bits()),
            (Self::Float(value), _) if dtype.is_float() => Ok((value as f32).to_bits()),
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

    /// Returns the element type that suits the scalar on its own.
    fn natural(self) -> DType {
        match self {
            Self::Bool(_) => DType::Bool,
            Self::Int(_) => DType::I32,
            Self::Float(_) => DType::F32,
        }
    }
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
