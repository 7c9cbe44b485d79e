//! Distances between scalars of one type.

use half::{bf16, f16};
use scry_ir::{Scalar, ScalarKind};

/// The distance of unequal integers, and of a NaN and a number, for which ULPs are undefined.
pub const UNDEFINED_ULPS: u64 = u64::MAX;

/// Returns the distance of two scalars, given their bytes: for floats the number of floats between
/// them plus one, for integers 0 or [`UNDEFINED_ULPS`].
///
/// The two zeros are equal, and so are all NaNs. Infinity follows the largest finite number.
pub(super) fn distance(scalar: Scalar, a: &[u8], b: &[u8]) -> u64 {
    if a == b {
        return 0;
    }
    if !matches!(scalar.kind, ScalarKind::Float | ScalarKind::Bfloat) {
        return UNDEFINED_ULPS;
    }
    match (is_nan(scalar, a), is_nan(scalar, b)) {
        (true, true) => 0,
        (false, false) => position(a).abs_diff(position(b)),
        _ => UNDEFINED_ULPS,
    }
}

/// Returns the absolute difference of two finite floats, given their bytes, and the magnitude of
/// the first; `None` for other scalars, infinities and NaNs.
pub(super) fn difference(scalar: Scalar, a: &[u8], b: &[u8]) -> Option<(f64, f64)> {
    if !matches!(scalar.kind, ScalarKind::Float | ScalarKind::Bfloat) {
        return None;
    }
    let (a, b) = (to_f64(scalar, a), to_f64(scalar, b));
    (a.is_finite() && b.is_finite()).then(|| ((a - b).abs(), a.abs()))
}

/// Returns the position of a float in the order of its type; zero has position 0.
fn position(bytes: &[u8]) -> i64 {
    let bits = unsigned(bytes);
    let sign = 1u64 << (8 * bytes.len() - 1);
    let magnitude = i64::try_from(bits & !sign).expect("the sign is the topmost bit");
    if bits & sign == 0 { magnitude } else { -magnitude }
}

fn is_nan(scalar: Scalar, bytes: &[u8]) -> bool {
    to_f64(scalar, bytes).is_nan()
}

fn unsigned(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |bits, byte| (bits << 8) | u64::from(*byte))
}

fn signed(bytes: &[u8]) -> i64 {
    let unused = 64 - 8 * bytes.len();
    (unsigned(bytes) << unused).cast_signed() >> unused
}

fn to_f64(scalar: Scalar, bytes: &[u8]) -> f64 {
    let bits = unsigned(bytes);
    match (scalar.kind, bytes.len()) {
        (ScalarKind::Bfloat, _) => bf16::from_bits(bits as u16).into(),
        (_, 2) => f16::from_bits(bits as u16).into(),
        (_, 4) => f32::from_bits(bits as u32).into(),
        _ => f64::from_bits(bits),
    }
}

/// Formats a scalar, with enough digits to distinguish unequal values.
pub(super) fn format_scalar(scalar: Scalar, bytes: &[u8]) -> String {
    match scalar.kind {
        ScalarKind::Sint => signed(bytes).to_string(),
        ScalarKind::Uint => unsigned(bytes).to_string(),
        ScalarKind::Float if bytes.len() == 4 => {
            format!("{:?}", f32::from_bits(unsigned(bytes) as u32))
        }
        ScalarKind::Float | ScalarKind::Bfloat => format!("{:?}", to_f64(scalar, bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f32_distance(a: f32, b: f32) -> u64 {
        distance(Scalar::F32, &a.to_le_bytes(), &b.to_le_bytes())
    }

    #[test]
    fn float_distances_are_counted() {
        assert_eq!(f32_distance(1.0, 1.0), 0);
        assert_eq!(f32_distance(1.0, 1.0 + f32::EPSILON), 1);
        assert_eq!(f32_distance(-1.0, -1.0 - 2.0 * f32::EPSILON), 2);
        assert_eq!(f32_distance(0.0, -0.0), 0);
        let min_subnormal = f32::from_bits(1);
        assert_eq!(f32_distance(min_subnormal, -min_subnormal), 2);
        assert_eq!(f32_distance(f32::MAX, f32::INFINITY), 1);
    }

    #[test]
    fn nans_equal_only_nans() {
        assert_eq!(f32_distance(f32::NAN, f32::from_bits(0xffc0_0001)), 0);
        assert_eq!(f32_distance(f32::NAN, 1.0), UNDEFINED_ULPS);
        let f16_scalar = Scalar { kind: ScalarKind::Float, width: 2 };
        let (nan, one) = (f16::NAN.to_le_bytes(), f16::ONE.to_le_bytes());
        assert_eq!(distance(f16_scalar, &nan, &one), UNDEFINED_ULPS);
        assert_eq!(distance(f16_scalar, &one, &f16::from_f32(1.0 + 1.0 / 1024.0).to_le_bytes()), 1);
    }

    #[test]
    fn f64_distances_cross_zero() {
        let f64_scalar = Scalar { kind: ScalarKind::Float, width: 8 };
        let (low, high) = (f64::NEG_INFINITY.to_le_bytes(), f64::INFINITY.to_le_bytes());
        assert_eq!(distance(f64_scalar, &low, &high), 2 * f64::INFINITY.to_bits());
    }

    #[test]
    fn only_finite_floats_have_a_difference() {
        let difference_of =
            |a: f32, b: f32| difference(Scalar::F32, &a.to_le_bytes(), &b.to_le_bytes());
        assert_eq!(difference_of(-2.0, 1.0), Some((3.0, 2.0)));
        assert_eq!(difference_of(f32::MAX, f32::INFINITY), None);
        assert_eq!(difference_of(f32::NAN, 1.0), None);
        assert_eq!(difference(Scalar::I32, &[1, 0, 0, 0], &[2, 0, 0, 0]), None);
    }

    #[test]
    fn integers_are_equal_or_not() {
        assert_eq!(distance(Scalar::I32, &[1, 0, 0, 0], &[2, 0, 0, 0]), UNDEFINED_ULPS);
        assert_eq!(format_scalar(Scalar::I32, &[0xff; 4]), "-1");
        assert_eq!(format_scalar(Scalar::U32, &[0xff; 4]), "4294967295");
    }
}
