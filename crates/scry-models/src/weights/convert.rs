//! Conversions of elements from files to the types of tensors.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use scry_tensor::DType;

use super::stored_type::StoredType;

/// A conversion of elements.
#[derive(Clone, Copy)]
pub(super) struct Conversion {
    from: &'static str,
    to: DType,
}

/// A value that the result cannot represent.
pub(super) struct OutOfRange {
    /// Position in the piece.
    pub(super) position: usize,
    pub(super) value: String,
}

impl Conversion {
    /// Returns the conversion from a stored type; `None` if there is none.
    pub(super) fn new(from: StoredType, to: DType) -> Option<Self> {
        let from = from.name();
        let is_possible = match from {
            "f32" | "f64" | "f16" | "bf16" => to.is_float(),
            "i8" | "i16" | "i32" | "i64" | "u8" | "u16" | "u32" | "u64" => {
                matches!(to, DType::I32 | DType::U32)
            }
            "bool" => to == DType::Bool,
            _ => false,
        };
        is_possible.then_some(Self { from, to })
    }

    /// Returns whether the bytes remain the same.
    pub(super) fn is_identity(self) -> bool {
        self.from == self.to.name() && self.to != DType::Bool
    }

    /// Returns the bytes of the converted elements. Floats are rounded once, to nearest, ties to
    /// even; finite ones must remain finite.
    pub(super) fn apply(self, bytes: &[u8]) -> Result<Vec<u8>, OutOfRange> {
        match self.from {
            "f32" => self.floats(&elements(bytes, f32::from_le_bytes)),
            "f64" => self.doubles(&elements(bytes, f64::from_le_bytes)),
            "f16" => {
                let values = elements(bytes, |it| f16::from_bits(u16::from_le_bytes(it)));
                self.floats(&values.to_f32_vec())
            }
            "bf16" => {
                let values = elements(bytes, |it| bf16::from_bits(u16::from_le_bytes(it)));
                self.floats(&values.to_f32_vec())
            }
            "i8" => self.integers(bytes, i8::from_le_bytes),
            "i16" => self.integers(bytes, i16::from_le_bytes),
            "i32" => self.integers(bytes, i32::from_le_bytes),
            "i64" => self.integers(bytes, i64::from_le_bytes),
            "u16" => self.integers(bytes, u16::from_le_bytes),
            "u32" => self.integers(bytes, u32::from_le_bytes),
            "u64" => self.integers(bytes, u64::from_le_bytes),
            _ => self.integers(bytes, u8::from_le_bytes),
        }
    }

    fn floats(self, values: &[f32]) -> Result<Vec<u8>, OutOfRange> {
        match self.to {
            DType::F16 => {
                let mut rounded = vec![f16::ZERO; values.len()];
                rounded.convert_from_f32_slice(values);
                check_finite(values, f32::is_finite, &rounded, f16::is_finite)?;
                Ok(bytemuck::cast_slice(&rounded).to_vec())
            }
            DType::BF16 => {
                let mut rounded = vec![bf16::ZERO; values.len()];
                rounded.convert_from_f32_slice(values);
                check_finite(values, f32::is_finite, &rounded, bf16::is_finite)?;
                Ok(bytemuck::cast_slice(&rounded).to_vec())
            }
            _ => Ok(bytemuck::cast_slice(values).to_vec()),
        }
    }

    fn doubles(self, values: &[f64]) -> Result<Vec<u8>, OutOfRange> {
        match self.to {
            DType::F16 => {
                let rounded: Vec<f16> =
                    values.iter().map(|it| f16::from_f32(to_odd(*it))).collect();
                check_finite(values, f64::is_finite, &rounded, f16::is_finite)?;
                Ok(bytemuck::cast_slice(&rounded).to_vec())
            }
            DType::BF16 => {
                let rounded: Vec<bf16> =
                    values.iter().map(|it| bf16::from_f32(to_odd(*it))).collect();
                check_finite(values, f64::is_finite, &rounded, bf16::is_finite)?;
                Ok(bytemuck::cast_slice(&rounded).to_vec())
            }
            _ => {
                let rounded: Vec<f32> = values.iter().map(|it| *it as f32).collect();
                check_finite(values, f64::is_finite, &rounded, f32::is_finite)?;
                Ok(bytemuck::cast_slice(&rounded).to_vec())
            }
        }
    }

    /// Converts integers to words, and bools to bytes.
    fn integers<T, const N: usize>(
        self,
        bytes: &[u8],
        read: impl Fn([u8; N]) -> T,
    ) -> Result<Vec<u8>, OutOfRange>
    where
        i128: From<T>,
    {
        let mut out = Vec::with_capacity(bytes.len() / N * 4);
        for (position, element) in elements(bytes, read).into_iter().enumerate() {
            let value = i128::from(element);
            let is_in_range = match self.to {
                DType::Bool => (0..=1).contains(&value),
                DType::U32 => u32::try_from(value).is_ok(),
                _ => i32::try_from(value).is_ok(),
            };
            if !is_in_range {
                return Err(OutOfRange { position, value: value.to_string() });
            }
            match self.to {
                DType::Bool => out.push(value as u8),
                _ => out.extend((value as u32).to_le_bytes()),
            }
        }
        Ok(out)
    }
}

/// Rounds to `f32` such that another rounding, to fewer bits, has the result of a single one: of an
/// inexact value, the neighbour whose last bit is 1.
fn to_odd(value: f64) -> f32 {
    let nearest = value as f32;
    if f64::from(nearest) == value || value.is_nan() {
        return nearest;
    }
    let is_beyond = f64::from(nearest).abs() > value.abs();
    f32::from_bits((nearest.to_bits() - u32::from(is_beyond)) | 1)
}

/// Returns the elements of bytes.
fn elements<T, const N: usize>(bytes: &[u8], read: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes.as_chunks().0.iter().map(|it| read(*it)).collect()
}

/// Checks that finite values are still finite after they were rounded.
fn check_finite<T: Copy + std::fmt::Debug, R: Copy>(
    values: &[T],
    is_finite: impl Fn(T) -> bool,
    rounded: &[R],
    is_rounded_finite: impl Fn(R) -> bool,
) -> Result<(), OutOfRange> {
    let is_lost = |(value, rounded): (&T, &R)| is_finite(*value) && !is_rounded_finite(*rounded);
    match values.iter().zip(rounded).position(is_lost) {
        None => Ok(()),
        Some(position) => Err(OutOfRange { position, value: format!("{:?}", values[position]) }),
    }
}
