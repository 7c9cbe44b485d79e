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

    /// Returns the bits of the float that is nearest to a value, ties to even.
    pub(crate) fn nearest(self, value: f64) -> u64 {
        match self {
            Self::F16 => nearest_f16(value).to_bits().into(),
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

/// Returns the nearest f16, ties to even. `f16::from_f64` may round through f32, and then returns
/// another one for some numbers close to the middle of two f16.
pub fn nearest_f16(value: f64) -> f16 {
    let single = value as f32;
    if value.is_nan() || f64::from(single) == value {
        return f16::from_f32(single);
    }
    // Round to odd: the last bit of the f32 records that the value is between it and its
    // neighbour, so that the f32 is not the middle of two f16.
    let is_rounded_up = f64::from(single).abs() > value.abs();
    let truncated = single.to_bits() - u32::from(is_rounded_up);
    f16::from_f32(f32::from_bits(truncated | 1))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f16_is_rounded_once() {
        let (half, little) = (2f64.powi(-11), 2f64.powi(-50));
        let nearest = |value: f64| {
            let bits = Ty::F16.nearest(value);
            assert_eq!(Ty::F16.nearest(-value), bits | 0x8000, "{value:e}");
            Ty::F16.float(bits)
        };
        let up = 1.0 + 2.0 * half;
        assert_eq!(nearest(1.0 + half), 1.0, "ties to even");
        assert_eq!(nearest(1.0 + half + little), up);
        assert_eq!(nearest(1.0 + half - little), 1.0);
        assert_eq!(nearest(up + half - little), up);
        assert_eq!(nearest(up + half), up + 2.0 * half, "ties to even");
        assert_eq!(nearest(65520.0 - little.sqrt()), 65504.0);
        assert_eq!(nearest(65520.0), f64::INFINITY);
        assert_eq!(nearest(1e300), f64::INFINITY);
        assert_eq!(nearest(2f64.powi(-25) * (1.0 + little)), 2f64.powi(-24));
        assert_eq!(nearest(2f64.powi(-25)), 0.0, "ties to even");
        assert_eq!(nearest(1e-300), 0.0);
        assert!(nearest_f16(f64::NAN).is_nan());
    }

    #[test]
    fn each_f16_is_its_nearest() {
        for bits in 0..=u16::MAX {
            let value = f16::from_bits(bits);
            assert!(value.is_nan() || nearest_f16(value.to_f64()) == value, "{bits:#x}");
        }
    }
}
