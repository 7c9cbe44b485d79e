//! The element types of arrays.

use std::fmt;

use half::f16;
use scry_ir::{Scalar, ScalarKind};

/// The element type of an array: the types of WGSL buffers, and further ones of .npy files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dtype {
    F16,
    F32,
    F64,
    I32,
    U32,
    I64,
    U64,
    Bool,
    I8,
    U8,
    I16,
    U16,
}

/// The element types of bindings.
const BUFFER_TYPES: [Dtype; 9] = [
    Dtype::F16,
    Dtype::F32,
    Dtype::F64,
    Dtype::I16,
    Dtype::U16,
    Dtype::I32,
    Dtype::U32,
    Dtype::I64,
    Dtype::U64,
];

/// The element types of files only: `scry run` widens them to the binding's type.
const FILE_ONLY_TYPES: [Dtype; 3] = [Dtype::Bool, Dtype::I8, Dtype::U8];

/// A value of any element type: the intermediate of a conversion.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// An integer or a bool.
    Int(i128),
    /// A float, represented exactly.
    Float(f64),
}

/// The Rust type of an element type.
pub trait Value: bytemuck::Pod {
    /// Generates a value: floats uniformly from [0, 1), integers uniformly from their whole range.
    fn random(rng: &mut fastrand::Rng) -> Self;

    /// Returns the value as a [`Number`].
    fn number(self) -> Number;

    /// Converts a number like NumPy's `astype`: floats are truncated to integers, and rounded to
    /// the nearest float. `None` if the value is out of range.
    fn from_number(number: Number) -> Option<Self>;

    /// Returns the shortest decimal that parses back to the same value.
    fn text(self) -> String;
}

/// A generic operation on the Rust type of an element type.
pub trait Visitor {
    /// The result.
    type Output;
    /// Executes the operation.
    fn visit<T: Value>(self) -> Self::Output;
}

impl Dtype {
    /// Returns the name, as WGSL spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::F16 => "f16",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::I32 => "i32",
            Self::U32 => "u32",
            Self::I64 => "i64",
            Self::U64 => "u64",
            Self::Bool => "bool",
            Self::I8 => "i8",
            Self::U8 => "u8",
            Self::I16 => "i16",
            Self::U16 => "u16",
        }
    }

    fn all() -> impl Iterator<Item = Self> {
        BUFFER_TYPES.into_iter().chain(FILE_ONLY_TYPES)
    }

    /// Returns the type with a name, as WGSL or NumPy spells it.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::all().find(|dtype| dtype.name() == name || dtype.numpy_name() == name)
    }

    /// Returns the element type with a name, if buffers support it.
    pub fn buffer_type_from_name(name: &str) -> Option<Self> {
        Self::from_name(name).filter(|dtype| BUFFER_TYPES.contains(dtype))
    }

    /// Returns the names of the element types of buffers, for messages.
    pub fn buffer_names() -> String {
        BUFFER_TYPES.map(Self::name).join(", ")
    }

    /// Returns all names, for messages.
    pub fn names() -> String {
        Self::all().map(Self::name).collect::<Vec<_>>().join(", ")
    }

    /// Returns NumPy's name of the type, such as `float32`.
    pub fn numpy_name(self) -> &'static str {
        match self {
            Self::F16 => "float16",
            Self::F32 => "float32",
            Self::F64 => "float64",
            Self::I32 => "int32",
            Self::U32 => "uint32",
            Self::I64 => "int64",
            Self::U64 => "uint64",
            Self::Bool => "bool",
            Self::I8 => "int8",
            Self::U8 => "uint8",
            Self::I16 => "int16",
            Self::U16 => "uint16",
        }
    }

    /// Returns the code of the type in a .npy header, such as `<f4`.
    pub fn npy_code(self) -> String {
        let order = if self.size() == 1 { '|' } else { '<' };
        let kind = match self.signedness() {
            _ if self == Self::Bool => 'b',
            None => 'f',
            Some(true) => 'i',
            Some(false) => 'u',
        };
        format!("{order}{kind}{}", self.size())
    }

    /// Returns the type of a code in a .npy header, without the byte order, such as `f4`.
    pub fn from_npy_code(code: &str) -> Option<Self> {
        Self::all().find(|dtype| &dtype.npy_code()[1..] == code)
    }

    /// Returns the size of one value in bytes.
    pub fn size(self) -> usize {
        match self {
            Self::Bool | Self::I8 | Self::U8 => 1,
            Self::F16 | Self::I16 | Self::U16 => 2,
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::F64 | Self::I64 | Self::U64 => 8,
        }
    }

    /// Returns whether it is a float type.
    pub fn is_float(self) -> bool {
        self.signedness().is_none()
    }

    /// Returns the signedness of an integer type; `None` for floats.
    fn signedness(self) -> Option<bool> {
        match self {
            Self::F16 | Self::F32 | Self::F64 => None,
            Self::I8 | Self::I16 | Self::I32 | Self::I64 => Some(true),
            Self::Bool | Self::U8 | Self::U16 | Self::U32 | Self::U64 => Some(false),
        }
    }

    /// Returns the number of bits of an integer's magnitude, or of a float's significand.
    fn significant_bits(self) -> usize {
        match (self, self.signedness()) {
            (Self::Bool, _) => 1,
            (Self::F16, _) => 11,
            (Self::F32, _) => 24,
            (Self::F64, _) => 53,
            (_, Some(true)) => 8 * self.size() - 1,
            _ => 8 * self.size(),
        }
    }

    /// Returns whether the other type represents all values of this type: u8 widens to u32 and to
    /// f32, but i32 does not widen to f32.
    pub fn widens_to(self, other: Self) -> bool {
        if self == other {
            return true;
        }
        let has_enough_bits =
            self.significant_bits() <= other.significant_bits() && other != Self::Bool;
        match (self.signedness(), other.signedness()) {
            (_, None) | (Some(false), Some(_)) | (Some(true), Some(true)) => has_enough_bits,
            (None, Some(_)) | (Some(true), Some(false)) => false,
        }
    }

    /// Returns the type of a binding's scalars; `None` for types that no binding has, such as bool.
    pub fn of_scalar(scalar: Scalar) -> Option<Self> {
        Some(match (scalar.kind, scalar.width) {
            (ScalarKind::Float, 2) => Self::F16,
            (ScalarKind::Float, 4) => Self::F32,
            (ScalarKind::Float, 8) => Self::F64,
            (ScalarKind::Sint, 2) => Self::I16,
            (ScalarKind::Uint, 2) => Self::U16,
            (ScalarKind::Sint, 4) => Self::I32,
            (ScalarKind::Uint, 4) => Self::U32,
            (ScalarKind::Sint, 8) => Self::I64,
            (ScalarKind::Uint, 8) => Self::U64,
            _ => return None,
        })
    }

    /// Calls a visitor with the Rust type.
    pub fn visit<V: Visitor>(self, visitor: V) -> V::Output {
        match self {
            Self::F16 => visitor.visit::<f16>(),
            Self::F32 => visitor.visit::<f32>(),
            Self::F64 => visitor.visit::<f64>(),
            Self::I32 => visitor.visit::<i32>(),
            Self::U32 => visitor.visit::<u32>(),
            Self::I64 => visitor.visit::<i64>(),
            Self::U64 => visitor.visit::<u64>(),
            Self::Bool => visitor.visit::<Bool>(),
            Self::I8 => visitor.visit::<i8>(),
            Self::U8 => visitor.visit::<u8>(),
            Self::I16 => visitor.visit::<i16>(),
            Self::U16 => visitor.visit::<u16>(),
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Rounds an f64 that was converted from a WGSL float type to the shortest decimal of that type:
/// 0.1 instead of 0.10000000149011612 for f32. Other types are unchanged.
pub fn shortest_decimal(value: f64, wgsl: &str) -> f64 {
    let text = match wgsl {
        "f16" => f16::from_f64(value).text(),
        "f32" => (value as f32).text(),
        _ => return value,
    };
    text.parse().unwrap_or(value)
}

/// A bool as NumPy stores it: a byte, true unless it is 0.
#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct Bool(u8);

impl Value for Bool {
    fn random(rng: &mut fastrand::Rng) -> Self {
        Self(rng.u8(0..2))
    }

    fn number(self) -> Number {
        Number::Int((self.0 != 0).into())
    }

    fn from_number(number: Number) -> Option<Self> {
        Some(Self(u8::from(number != Number::Int(0) && number != Number::Float(0.0))))
    }

    fn text(self) -> String {
        (self.0 != 0).to_string()
    }
}

/// Truncates a number to an integer; `None` for NaN and infinities. Floats beyond the range of
/// `i128` saturate.
fn truncate(number: Number) -> Option<i128> {
    match number {
        Number::Int(value) => Some(value),
        Number::Float(value) => value.is_finite().then_some(value as i128),
    }
}

macro_rules! integers {
    ($($ty:ident)*) => {$(
        impl Value for $ty {
            fn random(rng: &mut fastrand::Rng) -> Self {
                rng.$ty(..)
            }

            fn number(self) -> Number {
                Number::Int(self.into())
            }

            fn from_number(number: Number) -> Option<Self> {
                Self::try_from(truncate(number)?).ok()
            }

            fn text(self) -> String {
                self.to_string()
            }
        }
    )*};
}

integers!(i8 u8 i16 u16 i32 u32 i64 u64);

/// Returns `value`, the float to which `number` was converted; `None` if a finite number has become
/// infinite.
fn unless_overflow<T: Into<f64> + Copy>(number: Number, value: T) -> Option<T> {
    let finite =
        matches!(number, Number::Int(_)) || matches!(number, Number::Float(f) if f.is_finite());
    (!finite || value.into().is_finite()).then_some(value)
}

/// Rounds to the nearest `f16`. `f16::from_f64` rounds to `f32` first, and thus twice.
fn nearest_f16(value: f64) -> f16 {
    let single = value as f32;
    let (bits, is_exact) = (single.to_bits(), f64::from(single) == value);
    // Rounded to odd: the second rounding is then correct.
    let odd = match !is_exact && bits & 1 == 0 {
        true if f64::from(single).abs() > value.abs() => bits - 1,
        true => bits + 1,
        false => bits,
    };
    f16::from_f32(f32::from_bits(odd))
}

impl Value for f16 {
    fn random(rng: &mut fastrand::Rng) -> Self {
        // A multiple of 2^-11 is exact. A random f32 could round up to 1.
        Self::from_f32(rng.u16(0..2048).into()) / Self::from_f32(2048.0)
    }

    fn number(self) -> Number {
        Number::Float(self.to_f64())
    }

    fn from_number(number: Number) -> Option<Self> {
        let value = match number {
            Number::Int(value) => nearest_f16(value as f64),
            Number::Float(value) => nearest_f16(value),
        };
        unless_overflow(number, value)
    }

    fn text(self) -> String {
        // Five significant digits always suffice; the fewest that round-trip are used.
        let wide = self.to_f32();
        let texts = (0..5).map(|digits| format!("{wide:.digits$e}"));
        let round_trips =
            |text: &String| text.parse().is_ok_and(|f: f32| Self::from_f32(f) == self);
        let shortest =
            texts.into_iter().find(round_trips).and_then(|text| text.parse::<f32>().ok());
        shortest.unwrap_or(wide).text()
    }
}

macro_rules! floats {
    ($($ty:ident)*) => {$(
        impl Value for $ty {
            fn random(rng: &mut fastrand::Rng) -> Self {
                rng.$ty()
            }

            fn number(self) -> Number {
                Number::Float(self.into())
            }

            fn from_number(number: Number) -> Option<Self> {
                let value = match number {
                    Number::Int(value) => value as Self,
                    Number::Float(value) => value as Self,
                };
                unless_overflow(number, value)
            }

            fn text(self) -> String {
                format!("{self:?}")
            }
        }
    )*};
}

floats!(f32 f64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_match_numpy() {
        let codes: Vec<String> = Dtype::all().map(Dtype::npy_code).collect();
        let wanted = "<f2 <f4 <f8 <i2 <u2 <i4 <u4 <i8 <u8 |b1 |i1 |u1";
        assert_eq!(codes.join(" "), wanted);
        for dtype in Dtype::all() {
            assert_eq!(Dtype::from_npy_code(&dtype.npy_code()[1..]), Some(dtype));
            assert_eq!(Dtype::from_name(dtype.numpy_name()), Some(dtype));
        }
        assert_eq!(Dtype::from_npy_code("c8"), None);
    }

    /// Checks the extreme values of each type.
    #[test]
    fn widening_keeps_every_value() {
        struct Extremes;
        impl Visitor for Extremes {
            type Output = Vec<Number>;
            fn visit<T: Value>(self) -> Vec<Number> {
                let powers = (0..64).flat_map(|bit| [1i128 << bit, (1i128 << bit) - 1]);
                let numbers = powers.flat_map(|power| [power, -power]).map(Number::Int);
                numbers.filter_map(T::from_number).map(T::number).collect()
            }
        }
        struct RoundTrip(Vec<Number>);
        impl Visitor for RoundTrip {
            type Output = bool;
            fn visit<T: Value>(self) -> bool {
                let real = |number| match number {
                    Number::Int(value) => value,
                    Number::Float(value) => value as i128,
                };
                let round_trips = |number: &Number| {
                    T::from_number(*number).map(|v| real(v.number())) == Some(real(*number))
                };
                self.0.iter().all(round_trips)
            }
        }
        for from in Dtype::all() {
            for to in Dtype::all() {
                let all_round_trip = to.visit(RoundTrip(from.visit(Extremes)));
                // Fractions may not survive, even if the integers among a float's values do.
                let fractions = from.is_float() && !to.is_float();
                let widens = all_round_trip && !fractions;
                assert_eq!(from.widens_to(to), widens, "{from} to {to}");
            }
        }
    }

    #[test]
    fn floats_print_the_shortest_decimal() {
        assert_eq!(0.1f32.text(), "0.1");
        assert_eq!(1.0f64.text(), "1.0");
        assert_eq!(1e-30f32.text(), "1e-30");
        assert_eq!(f16::from_f32(0.1).text(), "0.1");
        assert_eq!(f16::MAX.text(), "65500.0");
        assert_eq!(f16::NAN.text(), "NaN");
        assert_eq!(f16::NEG_INFINITY.text(), "-inf");
        for bits in 0..=u16::MAX {
            let value = f16::from_bits(bits);
            let text = value.text();
            let again = f16::from_f32(text.parse().unwrap());
            assert!(again == value || value.is_nan(), "{bits:#x} is {text}");
        }
    }

    #[test]
    fn f16s_are_rounded_once() {
        let above_middle = 1.0 + 2f64.powi(-11) + 2f64.powi(-40);
        let below_middle = 1.0 + 3.0 * 2f64.powi(-11) - 2f64.powi(-40);
        let upper = f16::from_f32(1.0 + 1.0 / 1024.0);
        for (value, nearest) in [
            (above_middle, upper),
            (below_middle, upper),
            (-above_middle, -upper),
            (65519.99, f16::MAX),
            (1e300, f16::INFINITY),
            (-f64::INFINITY, f16::NEG_INFINITY),
            (2f64.powi(-25) + 2f64.powi(-60), f16::from_bits(1)),
            (f64::MIN_POSITIVE, f16::ZERO),
        ] {
            assert_eq!(nearest_f16(value).to_bits(), nearest.to_bits(), "{value:e}");
        }
        assert!(nearest_f16(f64::NAN).is_nan());
    }

    #[test]
    fn shortest_decimals_follow_the_wgsl_type() {
        assert_eq!(shortest_decimal(0.1f32.into(), "f32"), 0.1);
        assert_eq!(shortest_decimal(f16::from_f32(0.1).into(), "f16"), 0.1);
        assert_eq!(shortest_decimal(1.0 / 3.0, "f64"), 1.0 / 3.0);
        assert_eq!(shortest_decimal(16_777_217.0, "u32"), 16_777_217.0);
    }

    #[test]
    fn out_of_range_numbers_are_rejected() {
        use Number::{Float, Int};
        assert_eq!(u8::from_number(Int(256)), None);
        assert_eq!(u8::from_number(Float(255.9)), Some(255));
        assert_eq!(u8::from_number(Float(-0.5)), Some(0));
        assert_eq!(u8::from_number(Float(-1.0)), None);
        assert_eq!(i32::from_number(Float(f64::NAN)), None);
        assert_eq!(u64::from_number(Float(1e300)), None);
        assert_eq!(f32::from_number(Float(1e300)), None);
        assert_eq!(f32::from_number(Float(f64::INFINITY)), Some(f32::INFINITY));
        assert_eq!(f32::from_number(Int(16_777_217)), Some(16_777_216.0));
        assert_eq!(f16::from_number(Int(70_000)), None);
    }
}
