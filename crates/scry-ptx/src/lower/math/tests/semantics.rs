//! The semantics of each instruction, according to the PTX ISA manual.

use half::f16;

/// The end of the manual's error bound at which approximations are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Push {
    Down,
    Not,
    Up,
}

pub const PUSHES: [Push; 3] = [Push::Down, Push::Not, Push::Up];

/// An instruction: from the bits of its operands to those of its result.
pub type Step = fn([u64; 3], Push) -> u64;

fn single(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

fn double(bits: u64) -> f64 {
    f64::from_bits(bits)
}

fn of_single(x: f32) -> u64 {
    x.to_bits().into()
}

/// The `f32` furthest from an exact value in one direction that is within an error; the nearest if
/// there is none.
fn approximate(exact: f64, error: f64, push: Push) -> u64 {
    let nearest = exact as f32;
    if exact == 0.0 || !nearest.is_finite() || push == Push::Not {
        return of_single(nearest);
    }
    let (end, back): (f64, fn(f32) -> f32) = match push {
        Push::Up => (exact + error, f32::next_down),
        _ => (exact - error, f32::next_up),
    };
    let is_within = |x: f32| (f64::from(x) - exact).abs() <= error;
    let candidates = [end as f32, back(end as f32), nearest];
    of_single(candidates.into_iter().find(|x| is_within(*x)).unwrap_or(nearest))
}

/// A unit in the last place of an `f32`.
pub fn ulp(exact: f64) -> f64 {
    let exponent = (exact.abs().to_bits() >> 52) as i32 - 1023;
    2f64.powi(exponent.max(-126) - 23)
}

fn within_ulps(exact: f64, count: f64, push: Push) -> u64 {
    approximate(exact, count * ulp(exact), push)
}

/// Within 2^-23.
fn sqrt(bits: u64, push: Push) -> u64 {
    let exact = f64::from(single(bits)).sqrt();
    approximate(exact, exact * 2f64.powi(-23), push)
}

/// Subnormal numbers become zero, and keep their sign.
fn flush(bits: u64) -> u64 {
    if single(bits).is_subnormal() { bits & 0x8000_0000 } else { bits }
}

/// 2^-22 between a half and 2, else 2 ULP.
fn log2(x: f64, push: Push) -> u64 {
    let exact = x.log2();
    let error = if (0.5..=2.0).contains(&x) { 2f64.powi(-22) } else { 2.0 * ulp(exact) };
    approximate(exact, error, push)
}

/// Converts the bits of an `f16`.
pub fn of_half(bits: u64) -> f64 {
    f16::from_bits(bits as u16).to_f64()
}

/// The bits of the nearest `f16`, ties to even.
pub fn to_half(x: f64) -> u64 {
    f16::from_f64(x).to_bits().into()
}

pub fn step(name: &str) -> Option<Step> {
    let (operation, ty) = name.rsplit_once('.')?;
    match ty {
        _ if operation.starts_with("cvt") => conversion(name),
        "f32" => on_single(operation),
        "f64" => on_double(operation),
        "s32" => on_words(operation),
        "s64" => on_long_words(operation),
        _ => on_bits(operation, ty),
    }
}

fn on_single(operation: &str) -> Option<Step> {
    Some(match operation {
        "add.rn" => |[a, b, _], _| of_single(single(a) + single(b)),
        "sub.rn" => |[a, b, _], _| of_single(single(a) - single(b)),
        "mul.rn" => |[a, b, _], _| of_single(single(a) * single(b)),
        "fma.rn" => |[a, b, c], _| of_single(single(a).mul_add(single(b), single(c))),
        "neg" => |[a, ..], _| of_single(-single(a)),
        "abs" => |[a, ..], _| of_single(single(a).abs()),
        "copysign" => |[a, b, _], _| of_single(single(b).copysign(single(a))),
        "min" => |[a, b, _], _| of_single(single(a).min(single(b))),
        "max" => |[a, b, _], _| of_single(single(a).max(single(b))),
        "rcp.approx.ftz" => {
            |[a, ..], push| flush(within_ulps(1.0 / f64::from(single(flush(a))), 1.0, push))
        }
        "div.full" => {
            |[a, b, _], push| within_ulps(f64::from(single(a)) / f64::from(single(b)), 2.0, push)
        }
        "sqrt.approx" => |[a, ..], push| sqrt(a, push),
        "sqrt.approx.ftz" => |[a, ..], push| sqrt(flush(a), push),
        "rsqrt.approx" => |[a, ..], push| within_ulps(1.0 / f64::from(single(a)).sqrt(), 2.0, push),
        "ex2.approx" => |[a, ..], push| within_ulps(f64::from(single(a)).exp2(), 2.0, push),
        "ex2.approx.ftz" => {
            |[a, ..], push| flush(within_ulps(f64::from(single(flush(a))).exp2(), 2.0, push))
        }
        "lg2.approx" => |[a, ..], push| log2(single(a).into(), push),
        "setp.lt" => |[a, b, _], _| (single(a) < single(b)).into(),
        "setp.gt" => |[a, b, _], _| (single(a) > single(b)).into(),
        "setp.eq" => |[a, b, _], _| (single(a) == single(b)).into(),
        "setp.ne" => |[a, b, _], _| (single(a) < single(b) || single(a) > single(b)).into(),
        "setp.neu" => |[a, b, _], _| (single(a) != single(b)).into(),
        "setp.num" => |[a, b, _], _| (!single(a).is_nan() && !single(b).is_nan()).into(),
        _ => return None,
    })
}

fn on_double(operation: &str) -> Option<Step> {
    Some(match operation {
        "add.rn" => |[a, b, _], _| (double(a) + double(b)).to_bits(),
        "sub.rn" => |[a, b, _], _| (double(a) - double(b)).to_bits(),
        "mul.rn" => |[a, b, _], _| (double(a) * double(b)).to_bits(),
        "fma.rn" => |[a, b, c], _| double(a).mul_add(double(b), double(c)).to_bits(),
        "neg" => |[a, ..], _| (-double(a)).to_bits(),
        "abs" => |[a, ..], _| double(a).abs().to_bits(),
        "copysign" => |[a, b, _], _| double(b).copysign(double(a)).to_bits(),
        "min" => |[a, b, _], _| double(a).min(double(b)).to_bits(),
        "max" => |[a, b, _], _| double(a).max(double(b)).to_bits(),
        "rcp.rn" => |[a, ..], _| (1.0 / double(a)).to_bits(),
        "div.rn" => |[a, b, _], _| (double(a) / double(b)).to_bits(),
        "sqrt.rn" => |[a, ..], _| double(a).sqrt().to_bits(),
        "setp.lt" => |[a, b, _], _| (double(a) < double(b)).into(),
        "setp.gt" => |[a, b, _], _| (double(a) > double(b)).into(),
        "setp.eq" => |[a, b, _], _| (double(a) == double(b)).into(),
        "setp.ne" => |[a, b, _], _| (double(a) < double(b) || double(a) > double(b)).into(),
        "setp.neu" => |[a, b, _], _| (double(a) != double(b)).into(),
        "setp.num" => |[a, b, _], _| (!double(a).is_nan() && !double(b).is_nan()).into(),
        _ => return None,
    })
}

fn on_words(operation: &str) -> Option<Step> {
    Some(match operation {
        "add" => |[a, b, _], _| (a as u32).wrapping_add(b as u32).into(),
        "sub" => |[a, b, _], _| (a as u32).wrapping_sub(b as u32).into(),
        "min" => |[a, b, _], _| ((a as i32).min(b as i32) as u32).into(),
        "max" => |[a, b, _], _| ((a as i32).max(b as i32) as u32).into(),
        "shr" => |[a, b, _], _| ((a as i32 >> b.min(31)) as u32).into(),
        "setp.lt" => |[a, b, _], _| ((a as i32) < b as i32).into(),
        "setp.gt" => |[a, b, _], _| (a as i32 > b as i32).into(),
        _ => return None,
    })
}

fn on_long_words(operation: &str) -> Option<Step> {
    Some(match operation {
        "add" => |[a, b, _], _| a.wrapping_add(b),
        "sub" => |[a, b, _], _| a.wrapping_sub(b),
        "shr" => |[a, b, _], _| (a as i64 >> b.min(63)) as u64,
        "setp.lt" => |[a, b, _], _| ((a as i64) < b as i64).into(),
        _ => return None,
    })
}

fn on_bits(operation: &str, ty: &str) -> Option<Step> {
    Some(match (operation, ty) {
        ("mov", _) => |[a, ..], _| a,
        ("selp", _) => |[a, b, holds], _| if holds == 1 { a } else { b },
        ("and", _) => |[a, b, _], _| a & b,
        ("or", _) => |[a, b, _], _| a | b,
        ("xor", _) => |[a, b, _], _| a ^ b,
        ("shl", "b32") => |[a, b, _], _| (a << b.min(32)) as u32 as u64,
        ("shl", "b64") => |[a, b, _], _| if b > 63 { 0 } else { a << b },
        _ => return None,
    })
}

fn conversion(name: &str) -> Option<Step> {
    Some(match name {
        "cvt.f32.f16" => |[a, ..], _| of_single(of_half(a) as f32),
        "cvt.f64.f16" => |[a, ..], _| of_half(a).to_bits(),
        "cvt.rn.f16.f32" => |[a, ..], _| to_half(single(a).into()),
        "cvt.rn.f16.f64" => |[a, ..], _| to_half(double(a)),
        "cvt.f64.f32" => |[a, ..], _| f64::from(single(a)).to_bits(),
        "cvt.rn.f32.f64" => |[a, ..], _| of_single(double(a) as f32),
        "cvt.rn.f32.s32" => |[a, ..], _| of_single(a as i32 as f32),
        "cvt.rn.f64.s64" => |[a, ..], _| (a as i64 as f64).to_bits(),
        "cvt.u32.u64" => |[a, ..], _| a as u32 as u64,
        "cvt.s64.s32" => |[a, ..], _| a as i32 as i64 as u64,
        "cvt.rmi.f16.f16" => |[a, ..], _| to_half(of_half(a).floor()),
        "cvt.rpi.f16.f16" => |[a, ..], _| to_half(of_half(a).ceil()),
        "cvt.rni.f16.f16" => |[a, ..], _| to_half(of_half(a).round_ties_even()),
        "cvt.rzi.f16.f16" => |[a, ..], _| to_half(of_half(a).trunc()),
        "cvt.rmi.f32.f32" => |[a, ..], _| of_single(single(a).floor()),
        "cvt.rpi.f32.f32" => |[a, ..], _| of_single(single(a).ceil()),
        "cvt.rni.f32.f32" => |[a, ..], _| of_single(single(a).round_ties_even()),
        "cvt.rzi.f32.f32" => |[a, ..], _| of_single(single(a).trunc()),
        "cvt.rmi.f64.f64" => |[a, ..], _| double(a).floor().to_bits(),
        "cvt.rpi.f64.f64" => |[a, ..], _| double(a).ceil().to_bits(),
        "cvt.rni.f64.f64" => |[a, ..], _| double(a).round_ties_even().to_bits(),
        "cvt.rzi.f64.f64" => |[a, ..], _| double(a).trunc().to_bits(),
        _ => return None,
    })
}
