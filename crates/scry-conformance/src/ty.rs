//! Scalar types of WGSL, and their values in memory.

use scry_gpu::{Features, f16};

/// A scalar type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ty {
    /// Signed integers of 16 bits.
    I16,
    /// Unsigned integers of 16 bits.
    U16,
    /// Signed integers of 32 bits.
    I32,
    /// Unsigned integers of 32 bits.
    U32,
    /// Signed integers of 64 bits.
    I64,
    /// Unsigned integers of 64 bits.
    U64,
    /// IEEE 754 half precision, 16 bits.
    F16,
    /// IEEE 754 single precision, 32 bits.
    F32,
    /// IEEE 754 double precision, 64 bits.
    F64,
}

pub const INTEGERS: [Ty; 6] = [Ty::I16, Ty::U16, Ty::I32, Ty::U32, Ty::I64, Ty::U64];
pub const FLOATS: [Ty; 3] = [Ty::F16, Ty::F32, Ty::F64];
pub const NUMBERS: [Ty; 9] =
    [Ty::I16, Ty::U16, Ty::I32, Ty::U32, Ty::I64, Ty::U64, Ty::F16, Ty::F32, Ty::F64];

impl Ty {
    pub(crate) fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    pub(crate) fn bits(self) -> u32 {
        match self {
            Self::I16 | Self::U16 | Self::F16 => 16,
            Self::I32 | Self::U32 | Self::F32 => 32,
            Self::I64 | Self::U64 | Self::F64 => 64,
        }
    }

    pub(crate) fn is_float(self) -> bool {
        FLOATS.contains(&self)
    }

    pub(crate) fn is_signed(self) -> bool {
        matches!(self, Self::I16 | Self::I32 | Self::I64)
    }

    pub(crate) fn feature(self) -> Features {
        match self {
            Self::I16 | Self::U16 => Features::I16,
            Self::I64 | Self::U64 => Features::I64,
            Self::F16 => Features::F16,
            Self::F64 => Features::F64,
            _ => Features::empty(),
        }
    }

    /// Converts the bits of an integer of this type to its value.
    pub(crate) fn integer(self, bits: u64) -> i128 {
        let unused = 64 - self.bits();
        let top = bits << unused;
        if self.is_signed() { i128::from(top as i64 >> unused) } else { i128::from(top >> unused) }
    }

    /// Returns the bits of an integer, wrapped to this type.
    pub(crate) fn wrap(self, value: i128) -> u64 {
        value as u64 & u64::MAX >> (64 - self.bits())
    }

    /// Converts the bits of a float of this type to its value, exactly.
    pub(crate) fn float(self, bits: u64) -> f64 {
        match self {
            Self::F16 => f16::from_bits(bits as u16).to_f64(),
            Self::F32 => f32::from_bits(bits as u32).into(),
            _ => f64::from_bits(bits),
        }
    }

    /// Returns the bits of the float that is nearest to a value. For f16 the value may be rounded
    /// to f32 first, so very close to the middle of two f16 values it may be the other one.
    pub(crate) fn nearest(self, value: f64) -> u64 {
        match self {
            Self::F16 => f16::from_f64(value).to_bits().into(),
            Self::F32 => (value as f32).to_bits().into(),
            _ => value.to_bits(),
        }
    }

    /// Returns the bits of the number `value`, an integer, in this type.
    pub(crate) fn integer_bits(self, value: u32) -> u64 {
        if self.is_float() { self.nearest(value.into()) } else { self.wrap(value.into()) }
    }

    /// Returns the distance between neighbouring floats of this type at a number.
    pub(crate) fn ulp(self, value: f64) -> f64 {
        let (fraction_bits, min_exponent) = match self {
            Self::F16 => (10, -14),
            Self::F32 => (23, -126),
            _ => (52, -1022),
        };
        let exponent = (value.abs().log2().floor() as i32).max(min_exponent);
        2f64.powi(exponent) * 2f64.powi(-fraction_bits)
    }
}

/// Returns the `enable` directives that types require.
pub fn directives(types: &[Ty]) -> String {
    let mut text = String::new();
    if types.contains(&Ty::F16) {
        text += "enable f16;";
    }
    if types.iter().any(|ty| matches!(ty, Ty::I16 | Ty::U16)) {
        text += "enable wgpu_int16;";
    }
    text
}

/// Packs the bits of values as they are in a buffer, padded with 1 bits to whole words.
pub fn pack(ty: Ty, values: &[u64]) -> Vec<u32> {
    let size = ty.bits() as usize / 8;
    let mut bytes: Vec<u8> =
        values.iter().flat_map(|value| value.to_le_bytes().into_iter().take(size)).collect();
    bytes.resize(bytes.len().next_multiple_of(4), 0xff);
    let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
    bytes.chunks(4).map(word).collect()
}

/// Returns the bits of the first `len` values of a type in a buffer.
pub fn unpack(ty: Ty, words: &[u32], len: usize) -> Vec<u64> {
    let size = ty.bits() as usize / 8;
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let value =
        |bytes: &[u8]| bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
    bytes.chunks(size).take(len).map(value).collect()
}
