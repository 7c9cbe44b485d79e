//! Evaluates instructions on scalars by their definitions. Constant folding in the passes is tested
//! against it, and so shares no code with it.

use half::f16;

use crate::kir::{BinaryOp, Const, Inst, Kir, Type, UnaryOp, Value};

/// Returns the result of an instruction that depends on its operands only.
///
/// # Panics
///
/// If the operands have types that the instruction does not accept.
pub(in crate::kir) fn instruction(kir: &Kir, value: Value, get: impl Fn(Value) -> Const) -> Const {
    match *kir.inst(value) {
        Inst::Const(constant) => constant,
        Inst::Unary(op, a) => unary(op, get(a)),
        Inst::Binary(op, a, b) => binary(op, get(a), get(b)),
        Inst::Fma(a, b, c) => fma(get(a), get(b), get(c)),
        Inst::Select(condition, if_true, if_false) => {
            let (condition, if_true, if_false) = (get(condition), get(if_true), get(if_false));
            assert_eq!((condition.ty, if_true.ty), (Type::Bool, if_false.ty), "select");
            if condition.bits != 0 { if_true } else { if_false }
        }
        Inst::Convert(a) => convert(get(a), kir.ty(value)),
        Inst::Bitcast(a) => {
            let ty = kir.ty(value);
            assert_eq!(get(a).ty.size(), ty.size(), "bitcast");
            Const { ty, bits: get(a).bits }
        }
        ref other => panic!("{other:?} depends on more than constants"),
    }
}

/// Returns the value of a float.
pub(in crate::kir) fn real(x: Const) -> f64 {
    match x.ty {
        Type::F16 => f16::from_bits(x.bits as u16).to_f64(),
        Type::F32 => f32::from_bits(x.bits as u32).into(),
        Type::F64 => f64::from_bits(x.bits),
        other => panic!("a {other} is not a float"),
    }
}

/// Rounds to the nearest float of a type; any NaN becomes the canonical quiet NaN. A sum, product,
/// quotient or root of narrower floats that was computed in `f64` is still rounded correctly: `f64`
/// is precise enough for double rounding to be harmless.
pub(super) fn float(ty: Type, x: f64) -> Const {
    let bits = match ty {
        Type::F16 if x.is_nan() => 0x7e00,
        Type::F32 if x.is_nan() => 0x7fc0_0000,
        Type::F64 if x.is_nan() => 0x7ff8_0000_0000_0000,
        Type::F16 => nearest_f16(x).to_bits().into(),
        Type::F32 => (x as f32).to_bits().into(),
        Type::F64 => x.to_bits(),
        other => panic!("a {other} is not a float"),
    };
    Const { ty, bits }
}

/// Rounds to the nearest `f16`, once: `f16::from_f64` may round to `f32` first.
fn nearest_f16(x: f64) -> f16 {
    // The exponent of the unit in the last place; that of subnormal numbers is the lowest.
    let exponent = (frexp(x).1 - 11).max(-24);
    let unit = 2f64.powi(exponent);
    f16::from_f64((x / unit).round_ties_even() * unit)
}

fn integer(x: Const) -> i128 {
    assert!(x.ty.is_integer(), "a {} is not an integer", x.ty);
    if x.ty.is_signed() { x.as_i64().into() } else { x.bits.into() }
}

fn wrap(ty: Type, x: i128) -> Const {
    Const::int(ty, x as i64)
}

pub(super) fn unary(op: UnaryOp, a: Const) -> Const {
    match a.ty {
        Type::Bool => {
            assert_eq!(op, UnaryOp::Not, "of a bool");
            Const::bool(a.bits == 0)
        }
        ty if ty.is_float() => float_unary(op, ty, real(a)),
        ty => wrap(ty, integer_unary(op, a)),
    }
}

fn float_unary(op: UnaryOp, ty: Type, x: f64) -> Const {
    let y = match op {
        UnaryOp::IsNan => return Const::bool(x.is_nan()),
        UnaryOp::IsInf => return Const::bool(x.is_infinite()),
        UnaryOp::FrexpExponent => return Const::i32(frexp(x).1),
        UnaryOp::FrexpFraction => frexp(x).0,
        UnaryOp::QuantizeF16 => nearest_f16(x).to_f64(),
        UnaryOp::Neg => -x,
        UnaryOp::Abs => x.abs(),
        UnaryOp::Sign if x == 0.0 => x,
        UnaryOp::Sign => x.signum(),
        UnaryOp::Floor => x.floor(),
        UnaryOp::Ceil => x.ceil(),
        UnaryOp::Round => x.round_ties_even(),
        UnaryOp::Trunc => x.trunc(),
        UnaryOp::Fract => x - x.floor(),
        UnaryOp::Sqrt => x.sqrt(),
        UnaryOp::InverseSqrt => x.sqrt().recip(),
        _ => transcendental(op, x),
    };
    float(ty, y)
}

/// Returns the fraction, whose absolute value is in [0.5, 1), and the exponent of a number; of
/// zeros, infinities and NaN, the number itself and 0.
fn frexp(x: f64) -> (f64, i32) {
    if x == 0.0 || !x.is_finite() {
        return (x, 0);
    }
    // Subnormal numbers are scaled to normal ones first.
    let (x, scale) = if x.is_subnormal() { (x * 2f64.powi(54), 54) } else { (x, 0) };
    let exponent = (x.to_bits() >> 52 & 0x7ff) as i32 - 1022;
    (f64::from_bits(x.to_bits() & !(0x7ff << 52) | 1022 << 52), exponent - scale)
}

fn transcendental(op: UnaryOp, x: f64) -> f64 {
    match op {
        UnaryOp::Exp => x.exp(),
        UnaryOp::Exp2 => x.exp2(),
        UnaryOp::Log => x.ln(),
        UnaryOp::Log2 => x.log2(),
        UnaryOp::Sin => x.sin(),
        UnaryOp::Cos => x.cos(),
        UnaryOp::Tan => x.tan(),
        UnaryOp::Asin => x.asin(),
        UnaryOp::Acos => x.acos(),
        UnaryOp::Atan => x.atan(),
        UnaryOp::Sinh => x.sinh(),
        UnaryOp::Cosh => x.cosh(),
        UnaryOp::Tanh => x.tanh(),
        UnaryOp::Asinh => x.asinh(),
        UnaryOp::Acosh => x.acosh(),
        UnaryOp::Atanh => x.atanh(),
        other => panic!("{other:?} is not a function of floats"),
    }
}

fn integer_unary(op: UnaryOp, a: Const) -> i128 {
    let (x, width) = (integer(a), a.ty.bits());
    let leading_zeros = |bits: u64| bits.leading_zeros() - (64 - width);
    match op {
        UnaryOp::Neg => -x,
        UnaryOp::Not => !x,
        UnaryOp::Abs => x.abs(),
        UnaryOp::Sign => x.signum(),
        UnaryOp::CountOnes => a.bits.count_ones().into(),
        UnaryOp::LeadingZeros => leading_zeros(a.bits).into(),
        UnaryOp::TrailingZeros => a.bits.trailing_zeros().min(width).into(),
        UnaryOp::ReverseBits => (a.bits.reverse_bits() >> (64 - width)).into(),
        UnaryOp::FirstTrailingBit if x == 0 => -1,
        UnaryOp::FirstTrailingBit => a.bits.trailing_zeros().into(),
        UnaryOp::FirstLeadingBit => {
            let differing = wrap(a.ty, if x < 0 { !x } else { x });
            i128::from(width) - 1 - i128::from(leading_zeros(differing.bits))
        }
        other => panic!("{other:?} is not a function of integers"),
    }
}

pub(super) fn binary(op: BinaryOp, a: Const, b: Const) -> Const {
    match op {
        BinaryOp::Shl | BinaryOp::Shr => return shift(op, a, b),
        BinaryOp::Ldexp => return ldexp(a, b),
        _ => assert_eq!(a.ty, b.ty, "{op:?}"),
    }
    match op {
        BinaryOp::Dot4I8 => Const::i32(dot_of_bytes(a, b, |byte| i32::from(byte as i8))),
        BinaryOp::Dot4U8 => Const::u32(dot_of_bytes(a, b, i32::from) as u32),
        _ if op.is_comparison() => Const::bool(compare(op, a, b)),
        _ if a.ty == Type::Bool => Const { ty: Type::Bool, bits: bitwise(op, a.bits, b.bits) },
        _ if a.ty.is_float() => float(a.ty, float_binary(op, a.ty, real(a), real(b))),
        _ => integer_binary(op, a, b),
    }
}

fn shift(op: BinaryOp, a: Const, by: Const) -> Const {
    assert_eq!(by.ty, Type::U32, "{op:?}");
    let by = by.bits as u32 % a.ty.bits();
    let x = integer(a);
    wrap(a.ty, if op == BinaryOp::Shl { x << by } else { x >> by })
}

fn ldexp(a: Const, exponent: Const) -> Const {
    assert_eq!(exponent.ty, Type::I32, "ldexp");
    // Beyond these bounds every result is zero or infinite: finite numbers other than zero are
    // between 2^-1074 and 2^1024.
    let mut exponent = exponent.as_i64().clamp(-2100, 2100) as i32;
    let mut x = real(a);
    // Each factor is a normal number. No result is rounded twice: if a product before the last one
    // is subnormal, and so may be rounded, the last one is zero: its factor is at most 2^-53.
    while exponent > 1023 {
        x *= 2f64.powi(1023);
        exponent -= 1023;
    }
    while exponent < -1022 {
        x *= 2f64.powi(53 - 1022);
        exponent += 1022 - 53;
    }
    float(a.ty, x * 2f64.powi(exponent))
}

fn dot_of_bytes(a: Const, b: Const, to_i32: fn(u8) -> i32) -> i32 {
    assert_eq!(a.ty, Type::U32, "dot product of bytes");
    let [a, b] = [a, b].map(|x| (x.bits as u32).to_le_bytes());
    a.into_iter().zip(b).map(|(x, y)| to_i32(x) * to_i32(y)).sum()
}

fn compare(op: BinaryOp, a: Const, b: Const) -> bool {
    let order = match a.ty {
        Type::Bool => {
            assert!(matches!(op, BinaryOp::Eq | BinaryOp::Ne), "{op:?} of bools");
            a.bits.partial_cmp(&b.bits)
        }
        ty if ty.is_float() => real(a).partial_cmp(&real(b)),
        _ => integer(a).partial_cmp(&integer(b)),
    };
    match op {
        BinaryOp::Eq => order.is_some_and(|order| order.is_eq()),
        BinaryOp::Ne => order.is_none_or(|order| order.is_ne()),
        BinaryOp::Lt => order.is_some_and(|order| order.is_lt()),
        BinaryOp::Le => order.is_some_and(|order| order.is_le()),
        BinaryOp::Gt => order.is_some_and(|order| order.is_gt()),
        _ => order.is_some_and(|order| order.is_ge()),
    }
}

fn bitwise(op: BinaryOp, x: u64, y: u64) -> u64 {
    match op {
        BinaryOp::And => x & y,
        BinaryOp::Or => x | y,
        BinaryOp::Xor => x ^ y,
        other => panic!("{other:?} is not an operation on bits"),
    }
}

fn float_binary(op: BinaryOp, ty: Type, x: f64, y: f64) -> f64 {
    let rounded = |x| real(float(ty, x));
    match op {
        BinaryOp::Add => x + y,
        BinaryOp::Sub => x - y,
        BinaryOp::Mul => x * y,
        BinaryOp::Div => x / y,
        BinaryOp::Rem => x - rounded(y * rounded(x / y).trunc()),
        BinaryOp::Min => x.min(y),
        BinaryOp::Max => x.max(y),
        BinaryOp::Pow => x.powf(y),
        BinaryOp::Atan2 => x.atan2(y),
        other => panic!("{other:?} is not an operation on floats"),
    }
}

fn integer_binary(op: BinaryOp, a: Const, b: Const) -> Const {
    let (x, y) = (integer(a), integer(b));
    let result = match op {
        BinaryOp::Add => x + y,
        BinaryOp::Sub => x - y,
        BinaryOp::Mul => x.wrapping_mul(y),
        BinaryOp::Div if y == 0 => x,
        BinaryOp::Div => x / y,
        BinaryOp::Rem if y == 0 => 0,
        BinaryOp::Rem => x % y,
        BinaryOp::Min => x.min(y),
        BinaryOp::Max => x.max(y),
        _ => return Const { ty: a.ty, bits: bitwise(op, a.bits, b.bits) },
    };
    wrap(a.ty, result)
}

fn fma(a: Const, b: Const, c: Const) -> Const {
    assert_eq!((a.ty, b.ty), (b.ty, c.ty), "fma");
    match a.ty {
        Type::F32 => {
            let [a, b, c] = [a, b, c].map(|x| f32::from_bits(x.bits as u32));
            // `mul_add` rounds once, to f32. The conversion to f64 is exact.
            float(Type::F32, a.mul_add(b, c).into())
        }
        ty => float(ty, real(a).mul_add(real(b), real(c))),
    }
}

fn convert(a: Const, to: Type) -> Const {
    if a.ty == Type::Bool {
        return if to.is_float() { float(to, a.bits as f64) } else { wrap(to, a.bits.into()) };
    }
    match (a.ty.is_float(), to.is_float()) {
        (true, true) => float(to, real(a)),
        (true, false) if to == Type::Bool => Const::bool(real(a) != 0.0),
        (true, false) => float_to_integer(a, to),
        (false, true) if to == Type::F32 => Const::f32(integer(a) as f32),
        (false, true) => float(to, integer(a) as f64),
        (false, false) if to == Type::Bool => Const::bool(integer(a) != 0),
        (false, false) => wrap(to, integer(a)),
    }
}

/// Truncates, and saturates to the values that both types can represent.
fn float_to_integer(a: Const, to: Type) -> Const {
    let value_bits = if to.is_signed() { to.bits() - 1 } else { to.bits() };
    let max = (1i128 << value_bits) - 1;
    let min = if to.is_signed() { -1 - max } else { 0 };
    let [min, max] = [min, max].map(|bound| round_towards_zero(a.ty, bound));
    let x = real(a);
    wrap(to, if x.is_nan() { 0 } else { (x as i128).clamp(min, max) })
}

/// Rounds an integer towards zero to a float of a type.
fn round_towards_zero(ty: Type, x: i128) -> i128 {
    let nearest = float(ty, x as f64);
    let rounded_up = real(nearest).is_infinite() || (real(nearest) as i128).abs() > x.abs();
    let bits = if rounded_up { nearest.bits - 1 } else { nearest.bits };
    real(Const { ty, bits }) as i128
}
