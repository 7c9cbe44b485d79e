//! A model of each instruction, according to the PTX ISA manual.

use half::f16;

/// The errors of approximate instructions: the manual's bound in one direction, or none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bias {
    Down,
    Nearest,
    Up,
}

pub const BIASES: [Bias; 3] = [Bias::Down, Bias::Nearest, Bias::Up];

/// An instruction, as a function from the bits of its operands to those of its result.
pub type Operation = fn([u64; 3], Bias) -> u64;

fn to_f32(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

fn to_f64(bits: u64) -> f64 {
    f64::from_bits(bits)
}

fn f32_bits(x: f32) -> u64 {
    x.to_bits().into()
}

/// Returns the `f32` that deviates most from an exact value in the direction of `bias`, within an
/// error; the nearest `f32` if there is none.
fn approximate(exact: f64, error: f64, bias: Bias) -> u64 {
    let nearest = exact as f32;
    if exact == 0.0 || !nearest.is_finite() || bias == Bias::Nearest {
        return f32_bits(nearest);
    }
    let (biased, towards_exact): (f64, fn(f32) -> f32) = match bias {
        Bias::Up => (exact + error, f32::next_down),
        _ => (exact - error, f32::next_up),
    };
    let is_within = |x: f32| (f64::from(x) - exact).abs() <= error;
    let candidates = [biased as f32, towards_exact(biased as f32), nearest];
    f32_bits(candidates.into_iter().find(|x| is_within(*x)).unwrap_or(nearest))
}

/// Returns the distance of neighbouring `f32` at a number.
pub fn ulp(exact: f64) -> f64 {
    let exponent = (exact.abs().to_bits() >> 52) as i32 - 1023;
    2f64.powi(exponent.max(-126) - 23)
}

fn within_ulps(exact: f64, count: f64, bias: Bias) -> u64 {
    approximate(exact, count * ulp(exact), bias)
}

/// The square root, within 2^-23.
fn sqrt(bits: u64, bias: Bias) -> u64 {
    let exact = f64::from(to_f32(bits)).sqrt();
    approximate(exact, exact * 2f64.powi(-23), bias)
}

/// Replaces a subnormal `f32` by zero of the same sign (`.ftz`).
fn flush(bits: u64) -> u64 {
    if to_f32(bits).is_subnormal() { bits & 0x8000_0000 } else { bits }
}

/// The logarithm to base 2: within 2^-22 for arguments in [0.5, 2], else 2 ULP.
fn log2(x: f64, bias: Bias) -> u64 {
    let exact = x.log2();
    let error = if (0.5..=2.0).contains(&x) { 2f64.powi(-22) } else { 2.0 * ulp(exact) };
    approximate(exact, error, bias)
}

/// Converts the bits of an `f16` to `f64`.
pub fn f16_to_f64(bits: u64) -> f64 {
    f16::from_bits(bits as u16).to_f64()
}

/// Returns the bits of the nearest `f16`, ties to even.
pub fn f16_bits(x: f64) -> u64 {
    f16::from_f64(x).to_bits().into()
}

/// Returns the model of an opcode; `None` if there is none.
pub fn operation(name: &str) -> Option<Operation> {
    let (base, ty) = name.rsplit_once('.')?;
    match ty {
        _ if base.starts_with("cvt") => convert_operation(name),
        "f32" => f32_operation(base),
        "f64" => f64_operation(base),
        "s32" => s32_operation(base),
        "s64" => s64_operation(base),
        _ => bits_operation(base, ty),
    }
}

fn f32_operation(base: &str) -> Option<Operation> {
    Some(match base {
        "add.rn" => |[a, b, _], _| f32_bits(to_f32(a) + to_f32(b)),
        "sub.rn" => |[a, b, _], _| f32_bits(to_f32(a) - to_f32(b)),
        "mul.rn" => |[a, b, _], _| f32_bits(to_f32(a) * to_f32(b)),
        "fma.rn" => |[a, b, c], _| f32_bits(to_f32(a).mul_add(to_f32(b), to_f32(c))),
        "neg" => |[a, ..], _| f32_bits(-to_f32(a)),
        "abs" => |[a, ..], _| f32_bits(to_f32(a).abs()),
        "copysign" => |[a, b, _], _| f32_bits(to_f32(b).copysign(to_f32(a))),
        "min" => |[a, b, _], _| f32_bits(to_f32(a).min(to_f32(b))),
        "max" => |[a, b, _], _| f32_bits(to_f32(a).max(to_f32(b))),
        "rcp.approx.ftz" => {
            |[a, ..], bias| flush(within_ulps(1.0 / f64::from(to_f32(flush(a))), 1.0, bias))
        }
        "div.full" => {
            |[a, b, _], bias| within_ulps(f64::from(to_f32(a)) / f64::from(to_f32(b)), 2.0, bias)
        }
        "sqrt.approx" => |[a, ..], bias| sqrt(a, bias),
        "sqrt.approx.ftz" => |[a, ..], bias| sqrt(flush(a), bias),
        "rsqrt.approx" => |[a, ..], bias| within_ulps(1.0 / f64::from(to_f32(a)).sqrt(), 2.0, bias),
        "ex2.approx" => |[a, ..], bias| within_ulps(f64::from(to_f32(a)).exp2(), 2.0, bias),
        "ex2.approx.ftz" => {
            |[a, ..], bias| flush(within_ulps(f64::from(to_f32(flush(a))).exp2(), 2.0, bias))
        }
        "lg2.approx" => |[a, ..], bias| log2(to_f32(a).into(), bias),
        "setp.lt" => |[a, b, _], _| (to_f32(a) < to_f32(b)).into(),
        "setp.gt" => |[a, b, _], _| (to_f32(a) > to_f32(b)).into(),
        "setp.eq" => |[a, b, _], _| (to_f32(a) == to_f32(b)).into(),
        "setp.ne" => |[a, b, _], _| (to_f32(a) < to_f32(b) || to_f32(a) > to_f32(b)).into(),
        "setp.neu" => |[a, b, _], _| (to_f32(a) != to_f32(b)).into(),
        "setp.num" => |[a, b, _], _| (!to_f32(a).is_nan() && !to_f32(b).is_nan()).into(),
        _ => return None,
    })
}

fn f64_operation(base: &str) -> Option<Operation> {
    Some(match base {
        "add.rn" => |[a, b, _], _| (to_f64(a) + to_f64(b)).to_bits(),
        "sub.rn" => |[a, b, _], _| (to_f64(a) - to_f64(b)).to_bits(),
        "mul.rn" => |[a, b, _], _| (to_f64(a) * to_f64(b)).to_bits(),
        "fma.rn" => |[a, b, c], _| to_f64(a).mul_add(to_f64(b), to_f64(c)).to_bits(),
        "neg" => |[a, ..], _| (-to_f64(a)).to_bits(),
        "abs" => |[a, ..], _| to_f64(a).abs().to_bits(),
        "copysign" => |[a, b, _], _| to_f64(b).copysign(to_f64(a)).to_bits(),
        "min" => |[a, b, _], _| to_f64(a).min(to_f64(b)).to_bits(),
        "max" => |[a, b, _], _| to_f64(a).max(to_f64(b)).to_bits(),
        "rcp.rn" => |[a, ..], _| (1.0 / to_f64(a)).to_bits(),
        "div.rn" => |[a, b, _], _| (to_f64(a) / to_f64(b)).to_bits(),
        "sqrt.rn" => |[a, ..], _| to_f64(a).sqrt().to_bits(),
        "setp.lt" => |[a, b, _], _| (to_f64(a) < to_f64(b)).into(),
        "setp.gt" => |[a, b, _], _| (to_f64(a) > to_f64(b)).into(),
        "setp.eq" => |[a, b, _], _| (to_f64(a) == to_f64(b)).into(),
        "setp.ne" => |[a, b, _], _| (to_f64(a) < to_f64(b) || to_f64(a) > to_f64(b)).into(),
        "setp.neu" => |[a, b, _], _| (to_f64(a) != to_f64(b)).into(),
        "setp.num" => |[a, b, _], _| (!to_f64(a).is_nan() && !to_f64(b).is_nan()).into(),
        _ => return None,
    })
}

fn s32_operation(base: &str) -> Option<Operation> {
    Some(match base {
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

fn s64_operation(base: &str) -> Option<Operation> {
    Some(match base {
        "add" => |[a, b, _], _| a.wrapping_add(b),
        "sub" => |[a, b, _], _| a.wrapping_sub(b),
        "shr" => |[a, b, _], _| (a as i64 >> b.min(63)) as u64,
        "setp.lt" => |[a, b, _], _| ((a as i64) < b as i64).into(),
        _ => return None,
    })
}

fn bits_operation(base: &str, ty: &str) -> Option<Operation> {
    Some(match (base, ty) {
        ("mov", _) => |[a, ..], _| a,
        ("selp", _) => |[a, b, condition], _| if condition == 1 { a } else { b },
        ("and", _) => |[a, b, _], _| a & b,
        ("or", _) => |[a, b, _], _| a | b,
        ("xor", _) => |[a, b, _], _| a ^ b,
        ("shl", "b32") => |[a, b, _], _| (a << b.min(32)) as u32 as u64,
        ("shl", "b64") => |[a, b, _], _| if b > 63 { 0 } else { a << b },
        _ => return None,
    })
}

fn convert_operation(name: &str) -> Option<Operation> {
    Some(match name {
        "cvt.f32.f16" => |[a, ..], _| f32_bits(f16_to_f64(a) as f32),
        "cvt.f64.f16" => |[a, ..], _| f16_to_f64(a).to_bits(),
        "cvt.rn.f16.f32" => |[a, ..], _| f16_bits(to_f32(a).into()),
        "cvt.rn.f16.f64" => |[a, ..], _| f16_bits(to_f64(a)),
        "cvt.f64.f32" => |[a, ..], _| f64::from(to_f32(a)).to_bits(),
        "cvt.rn.f32.f64" => |[a, ..], _| f32_bits(to_f64(a) as f32),
        "cvt.rn.f32.s32" => |[a, ..], _| f32_bits(a as i32 as f32),
        "cvt.rn.f64.s64" => |[a, ..], _| (a as i64 as f64).to_bits(),
        "cvt.u32.u64" => |[a, ..], _| a as u32 as u64,
        "cvt.s64.s32" => |[a, ..], _| a as i32 as i64 as u64,
        "cvt.rmi.f16.f16" => |[a, ..], _| f16_bits(f16_to_f64(a).floor()),
        "cvt.rpi.f16.f16" => |[a, ..], _| f16_bits(f16_to_f64(a).ceil()),
        "cvt.rni.f16.f16" => |[a, ..], _| f16_bits(f16_to_f64(a).round_ties_even()),
        "cvt.rzi.f16.f16" => |[a, ..], _| f16_bits(f16_to_f64(a).trunc()),
        "cvt.rmi.f32.f32" => |[a, ..], _| f32_bits(to_f32(a).floor()),
        "cvt.rpi.f32.f32" => |[a, ..], _| f32_bits(to_f32(a).ceil()),
        "cvt.rni.f32.f32" => |[a, ..], _| f32_bits(to_f32(a).round_ties_even()),
        "cvt.rzi.f32.f32" => |[a, ..], _| f32_bits(to_f32(a).trunc()),
        "cvt.rmi.f64.f64" => |[a, ..], _| to_f64(a).floor().to_bits(),
        "cvt.rpi.f64.f64" => |[a, ..], _| to_f64(a).ceil().to_bits(),
        "cvt.rni.f64.f64" => |[a, ..], _| to_f64(a).round_ties_even().to_bits(),
        "cvt.rzi.f64.f64" => |[a, ..], _| to_f64(a).trunc().to_bits(),
        _ => return None,
    })
}
