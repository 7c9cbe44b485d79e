//! Literals of constants.

use crate::kir::{Const, Type};

/// Returns the literal of a constant; `None` for NaN and infinities, for which WGSL has none, and
/// for subnormal numbers, which a compiler may flush to zero.
pub(super) fn literal(constant: Const, native_f16: bool) -> Option<String> {
    let bits = constant.bits;
    match constant.ty {
        Type::Bool => Some((bits != 0).to_string()),
        Type::I32 if constant.as_i64() == i64::from(i32::MIN) => Some(format!("i32({})", i32::MIN)),
        Type::I32 | Type::I16 => Some(format!("{}i", constant.as_i64())),
        Type::F32 => float(f32::from_bits(bits as u32), f32::MIN_POSITIVE, "f"),
        Type::F16 if native_f16 => float(f16_to_f32(bits), MIN_NORMAL_F16, "h"),
        _ => Some(format!("{bits}u")),
    }
}

/// The smallest positive normal `f16`, 2^-14.
const MIN_NORMAL_F16: f32 = 6.103_515_6e-5;

fn float(value: f32, min_normal: f32, suffix: &str) -> Option<String> {
    if value.abs() == f32::MAX {
        // The shortest decimal that Rust prints is larger, which WGSL rejects.
        let sign = if value < 0.0 { "-" } else { "" };
        return Some(format!("{sign}0x1.fffffep+127{suffix}"));
    }
    let has_literal = value == 0.0 || (value.is_finite() && value.abs() >= min_normal);
    has_literal.then(|| format!("{value:?}{suffix}"))
}

/// Returns the number that the bits of an `f16` represent, if it is normal or zero; NaN otherwise.
fn f16_to_f32(bits: u64) -> f32 {
    let sign = if bits >> 15 & 1 == 0 { 1.0 } else { -1.0 };
    let (exponent, fraction) = ((bits >> 10 & 31) as i32, (bits & 1023) as f32);
    sign * match (exponent, bits & 1023) {
        (0, 0) => 0.0,
        (0 | 31, _) => f32::NAN,
        _ => (1024.0 + fraction) * 2f32.powi(exponent - 25),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_have_typed_literals() {
        let text = |constant| literal(constant, true);
        let half = |bits| Const { ty: Type::F16, bits };
        let found = |text: &str| Some(text.to_owned());
        assert_eq!(text(Const::bool(true)), found("true"));
        assert_eq!(text(Const::u32(u32::MAX)), found("4294967295u"));
        assert_eq!(text(Const::i32(-5)), found("-5i"));
        assert_eq!(text(Const::i32(i32::MIN)), found("i32(-2147483648)"));
        assert_eq!(text(Const::f32(1.0)), found("1.0f"));
        assert_eq!(text(Const::f32(-0.0)), found("-0.0f"));
        assert_eq!(text(Const::f32(f32::MAX)), found("0x1.fffffep+127f"));
        assert_eq!(text(half(0x3c00)), found("1.0h"));
        assert_eq!(text(half(0xfbff)), found("-65504.0h"));
        assert_eq!(literal(half(0x3c00), false), found("15360u"), "the bits");
    }

    #[test]
    fn special_floats_have_no_literals() {
        for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e-40] {
            assert_eq!(literal(Const::f32(value), true), None, "{value}");
        }
        for bits in [0x7c00, 0x7e00, 0x0001] {
            assert_eq!(literal(Const { ty: Type::F16, bits }, true), None, "{bits:#x}");
        }
    }
}
