//! Computes the results of PTX instructions, according to the PTX ISA manual.
//!
//! This is the only definition of PTX arithmetic for tests: the suite `execute` of scry-ptx and the
//! unit tests of its translation use it. It shares no code with the translation. Undefined
//! behaviour is an error; approximations return the nearest result.

use half::f16;

/// The type that an instruction names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// A predicate.
    Pred,
    /// Untyped bits: their number.
    Bits(u32),
    /// An unsigned integer of this many bits.
    Unsigned(u32),
    /// A signed integer of this many bits.
    Signed(u32),
    /// A float of this many bits.
    Float(u32),
}

impl Type {
    /// Parses the name of a type, such as `u32`.
    pub fn parse(name: &str) -> Option<Self> {
        if name == "pred" {
            return Some(Self::Pred);
        }
        let (kind, bits) = name.split_at_checked(1)?;
        let bits = bits.parse().ok().filter(|bits| matches!(bits, 8 | 16 | 32 | 64))?;
        match kind {
            "b" => Some(Self::Bits(bits)),
            "u" => Some(Self::Unsigned(bits)),
            "s" => Some(Self::Signed(bits)),
            "f" if bits > 8 => Some(Self::Float(bits)),
            _ => None,
        }
    }

    /// Returns the number of bits of a value.
    pub fn bits(self) -> u32 {
        match self {
            Self::Pred => 1,
            Self::Bits(n) | Self::Unsigned(n) | Self::Signed(n) | Self::Float(n) => n,
        }
    }

    fn is_float(self) -> bool {
        matches!(self, Self::Float(_))
    }

    fn is_integer(self) -> bool {
        matches!(self, Self::Signed(_) | Self::Unsigned(_))
    }

    /// Interprets bits as an integer.
    fn int(self, bits: u64) -> i128 {
        let unused = 64 - self.bits();
        match self {
            Self::Signed(_) => i128::from(((bits << unused) as i64) >> unused),
            _ => i128::from((bits << unused) >> unused),
        }
    }

    /// Interprets bits as a float; `f64` represents every float type exactly.
    fn float(self, bits: u64) -> f64 {
        match self {
            Self::Float(16) => f16::from_bits(bits as u16).to_f64(),
            Self::Float(32) => f64::from(f32::from_bits(bits as u32)),
            _ => f64::from_bits(bits),
        }
    }

    /// Returns the bits of the nearest float of this type. Sums, products, quotients and square
    /// roots of 16- and 32-bit floats may be computed as `f64` first: it has enough bits for the
    /// second rounding to be correct.
    fn round(self, value: f64) -> u64 {
        match self {
            Self::Float(16) => nearest_f16(value).to_bits().into(),
            Self::Float(32) => (value as f32).to_bits().into(),
            _ => value.to_bits(),
        }
    }
}

/// Returns the nearest `f16`. `f16::from_f64` rounds to `f32` first, and thus twice.
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

/// An instruction that computes one result from up to three operands.
#[derive(Debug, Clone, Copy)]
pub struct Alu {
    op: Op,
    /// The type of the operands, except for shift amounts, predicates and the addend of `mad.wide`.
    /// Also that of the result, except for comparisons, conversions, counts and positions of bits,
    /// and `mad.wide`.
    ty: Type,
}

#[derive(Debug, Clone, Copy)]
enum Op {
    Move,
    Select,
    And,
    Or,
    Xor,
    Not,
    ShiftLeft,
    ShiftRight,
    FunnelLeft,
    FunnelRight,
    /// Selects bytes of two words.
    Permute,
    CountOnes,
    LeadingZeros,
    Reverse,
    /// Position of the highest bit that differs from the sign bit, or for unsigned types is one.
    FindBit,
    /// The left shift that moves that bit to the highest position.
    FindShift,
    Dot,
    Compare(Comparison, Combine),
    Convert(Type, Rounding),
    Integer(fn(i128, i128, i128) -> i128),
    /// A multiply-add whose factors have half the bits of the addend and of the result.
    MadWide,
    MulHigh,
    Div,
    Rem,
    /// A function of the operands as `f64`.
    Float(fn(f64, f64, f64) -> f64),
    Fma,
    Neg,
    Abs,
    CopySign,
    /// A function of one operand; subnormal operands and results become zero.
    Flushed(fn(f64) -> f64),
}

/// The orders of its operands for which a comparison is true.
#[derive(Debug, Clone, Copy, Default)]
struct Comparison {
    less: bool,
    equal: bool,
    greater: bool,
    /// One of the operands is NaN.
    unordered: bool,
}

/// How a comparison is combined with a predicate.
#[derive(Debug, Clone, Copy)]
enum Combine {
    Alone,
    And,
    Or,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rounding {
    /// None is needed: integers are truncated or extended, floats widened.
    Exact,
    Nearest,
    /// To an integer: towards zero, down, up, to the nearest with ties to even.
    Zero,
    Down,
    Up,
    NearestInteger,
}

impl Alu {
    /// Parses an opcode, split at its dots; `None` if it is not supported.
    pub fn parse(parts: &[&str]) -> Option<Self> {
        let [name, qualifiers @ .., last] = parts else { return None };
        let ty = Type::parse(last)?;
        let op = match *name {
            "mov" | "selp" | "and" | "or" | "xor" | "not" | "shl" | "shr" | "shf" | "prmt"
            | "popc" | "clz" | "brev" | "bfind" => bits(name, qualifiers, ty)?,
            "cvta" => (*parts == ["cvta", "to", "global", "u64"]).then_some(Op::Move)?,
            "dp4a" => (qualifiers == [*last] && ty.bits() == 32).then_some(Op::Dot)?,
            "setp" => compare(qualifiers, ty)?,
            "cvt" => return conversion(qualifiers, ty),
            _ if ty.is_float() => float(name, qualifiers, ty)?,
            _ if ty.is_integer() => integer(name, qualifiers)?,
            _ => return None,
        };
        Some(Self { op, ty })
    }

    /// Computes the result from the bits of the operands. It may have bits beyond the width of its
    /// register, which the caller drops.
    pub fn compute(self, x: [u64; 3]) -> Result<u64, &'static str> {
        let ty = self.ty;
        let i = |nth: usize| ty.int(x[nth]);
        let f = |nth: usize| ty.float(x[nth]);
        let sign = 1 << (ty.bits() - 1);
        Ok(match self.op {
            Op::Move => x[0],
            Op::Select => x[usize::from(x[2] & 1 == 0)],
            Op::And => x[0] & x[1],
            Op::Or => x[0] | x[1],
            Op::Xor => x[0] ^ x[1],
            Op::Not => !x[0],
            // Shifts by the width or more shift out all bits.
            Op::ShiftLeft => ((i(0) as u128) << (x[1] as u32).min(ty.bits())) as u64,
            Op::ShiftRight => (i(0) >> (x[1] as u32).min(ty.bits())) as u64,
            Op::FunnelLeft => ((x[1] << 32 | x[0] & 0xffff_ffff) << (x[2] & 31)) >> 32,
            Op::FunnelRight => (x[1] << 32 | x[0] & 0xffff_ffff) >> (x[2] & 31),
            Op::Permute => permute(x[1] << 32 | x[0] & 0xffff_ffff, x[2]),
            Op::CountOnes => (i(0) as u64).count_ones().into(),
            Op::LeadingZeros => u64::from((i(0) as u64).leading_zeros() + ty.bits() - 64),
            Op::Reverse => (i(0) as u64).reverse_bits() >> (64 - ty.bits()),
            Op::FindBit => highest_bit(i(0)) as u64,
            Op::FindShift => match highest_bit(i(0)) {
                -1 => u64::MAX,
                highest_bit => (i64::from(ty.bits()) - 1 - highest_bit) as u64,
            },
            Op::Dot => dot(ty, x[0], x[1]).wrapping_add(x[2]),
            Op::Compare(comparison, combine) => {
                let holds = u64::from(comparison.holds(ty, x[0], x[1]));
                match combine {
                    Combine::Alone => holds,
                    Combine::And => holds & x[2],
                    Combine::Or => holds | x[2],
                }
            }
            Op::Convert(to, rounding) => convert(ty, to, rounding, x[0]),
            Op::Integer(function) => function(i(0), i(1), i(2)) as u64,
            Op::MadWide => (i(0) * i(1)).wrapping_add(i128::from(x[2])) as u64,
            Op::MulHigh if matches!(ty, Type::Signed(_)) => ((i(0) * i(1)) >> ty.bits()) as u64,
            Op::MulHigh => ((i(0) as u128 * i(1) as u128) >> ty.bits()) as u64,
            Op::Div => divide(ty, i(0), i(1), i128::checked_div)?,
            Op::Rem => divide(ty, i(0), i(1), i128::checked_rem)?,
            Op::Float(function) => ty.round(function(f(0), f(1), f(2))),
            Op::Fma if ty == Type::Float(32) => {
                let [a, b, c] = x.map(|x| f32::from_bits(x as u32));
                a.mul_add(b, c).to_bits().into()
            }
            Op::Fma => ty.round(f(0).mul_add(f(1), f(2))),
            Op::Neg => x[0] ^ sign,
            Op::Abs => x[0] & !sign,
            Op::CopySign => x[0] & sign | x[1] & !sign,
            Op::Flushed(function) => flush(ty.round(function(ty.float(flush(x[0]))))),
        })
    }
}

impl Comparison {
    fn parse(name: &str) -> Option<Self> {
        let none = Self::default();
        let (name, unordered) = match name {
            "num" => return Some(Self { less: true, equal: true, greater: true, ..none }),
            "nan" => return Some(Self { unordered: true, ..none }),
            _ => name.strip_suffix('u').map_or((name, false), |name| (name, true)),
        };
        let (less, equal, greater) = match name {
            "eq" => (false, true, false),
            "ne" => (true, false, true),
            "lt" => (true, false, false),
            "le" => (true, true, false),
            "gt" => (false, false, true),
            "ge" => (false, true, true),
            _ => return None,
        };
        Some(Self { less, equal, greater, unordered })
    }

    fn holds(self, ty: Type, a: u64, b: u64) -> bool {
        let order = match ty {
            Type::Float(_) => ty.float(a).partial_cmp(&ty.float(b)),
            _ => Some(ty.int(a).cmp(&ty.int(b))),
        };
        match order {
            None => self.unordered,
            Some(order) if order.is_lt() => self.less,
            Some(order) if order.is_gt() => self.greater,
            Some(_) => self.equal,
        }
    }
}

fn bits(name: &str, qualifiers: &[&str], ty: Type) -> Option<Op> {
    Some(match (name, qualifiers) {
        ("mov", []) => Op::Move,
        ("selp", []) => Op::Select,
        ("and", []) => Op::And,
        ("or", []) => Op::Or,
        ("xor", []) => Op::Xor,
        ("not", []) => Op::Not,
        ("shl", []) => Op::ShiftLeft,
        ("shr", []) => Op::ShiftRight,
        ("shf", ["l", "wrap"]) if ty == Type::Bits(32) => Op::FunnelLeft,
        ("shf", ["r", "wrap"]) if ty == Type::Bits(32) => Op::FunnelRight,
        ("prmt", []) if ty == Type::Bits(32) => Op::Permute,
        ("popc", []) => Op::CountOnes,
        ("clz", []) => Op::LeadingZeros,
        ("brev", []) => Op::Reverse,
        ("bfind", []) => Op::FindBit,
        ("bfind", ["shiftamt"]) => Op::FindShift,
        _ => return None,
    })
}

/// Returns the bytes of a 64-bit word that four digits select; with the highest bit of a digit, the
/// sign of the byte in all its bits.
fn permute(bytes: u64, digits: u64) -> u64 {
    let byte = |nth: usize| {
        let digit = digits >> (4 * nth) & 15;
        let byte = bytes.to_le_bytes()[(digit & 7) as usize];
        if digit < 8 { byte } else { ((byte as i8) >> 7) as u8 }
    };
    u32::from_le_bytes(std::array::from_fn(byte)).into()
}

/// Returns the position of the highest bit that differs from the sign bit, which is zero for
/// unsigned types; -1 if there is none.
fn highest_bit(x: i128) -> i64 {
    63 - i64::from((if x < 0 { !x } else { x } as u64).leading_zeros())
}

/// Returns the dot product of the four bytes of each word, as `dp4a` without the addend.
fn dot(ty: Type, a: u64, b: u64) -> u64 {
    let byte = |word: u64, nth: usize| match ty {
        Type::Signed(_) => i64::from(word.to_le_bytes()[nth] as i8),
        _ => i64::from(word.to_le_bytes()[nth]),
    };
    (0..4).map(|nth| byte(a, nth) * byte(b, nth)).sum::<i64>() as u64
}

fn compare(qualifiers: &[&str], ty: Type) -> Option<Op> {
    let (name, combine) = match qualifiers {
        [name] => (name, Combine::Alone),
        [name, "and"] => (name, Combine::And),
        [name, "or"] => (name, Combine::Or),
        _ => return None,
    };
    let comparison = Comparison::parse(name)?;
    (ty.is_float() || !comparison.unordered).then_some(Op::Compare(comparison, combine))
}

fn integer(name: &str, qualifiers: &[&str]) -> Option<Op> {
    Some(match (name, qualifiers) {
        ("add", []) => Op::Integer(|a, b, _| a.wrapping_add(b)),
        ("sub", []) => Op::Integer(|a, b, _| a.wrapping_sub(b)),
        ("mul", ["lo"]) => Op::Integer(|a, b, _| a.wrapping_mul(b)),
        ("mul", ["hi"]) => Op::MulHigh,
        ("neg", []) => Op::Integer(|a, _, _| a.wrapping_neg()),
        ("abs", []) => Op::Integer(|a, _, _| a.wrapping_abs()),
        ("min", []) => Op::Integer(|a, b, _| a.min(b)),
        ("max", []) => Op::Integer(|a, b, _| a.max(b)),
        ("mad", ["lo"]) => Op::Integer(|a, b, c| a.wrapping_mul(b).wrapping_add(c)),
        ("mad", ["wide"]) => Op::MadWide,
        ("div", []) => Op::Div,
        ("rem", []) => Op::Rem,
        _ => return None,
    })
}

/// Returns a quotient or remainder, where the manual defines it.
fn divide(
    ty: Type,
    a: i128,
    b: i128,
    divide: fn(i128, i128) -> Option<i128>,
) -> Result<u64, &'static str> {
    if matches!(ty, Type::Signed(_)) && b == -1 && a == -1 << (ty.bits() - 1) {
        return Err("a division of the minimum integer by -1 is undefined");
    }
    divide(a, b).map(|result| result as u64).ok_or("a division by zero is undefined")
}

fn float(name: &str, qualifiers: &[&str], ty: Type) -> Option<Op> {
    Some(match (name, qualifiers, ty.bits()) {
        ("add", [] | ["rn"], _) => Op::Float(|a, b, _| a + b),
        ("sub", [] | ["rn"], _) => Op::Float(|a, b, _| a - b),
        ("mul", [] | ["rn"], _) => Op::Float(|a, b, _| a * b),
        ("fma", ["rn"], _) => Op::Fma,
        ("div", ["full"], 32) | ("div", ["rn"], 32 | 64) => Op::Float(|a, b, _| a / b),
        // Like Rust's, they return the number if the other operand is NaN.
        ("min", [], _) => Op::Float(|a, b, _| a.min(b)),
        ("max", [], _) => Op::Float(|a, b, _| a.max(b)),
        ("neg", [], _) => Op::Neg,
        ("abs", [], _) => Op::Abs,
        ("copysign", [], 32 | 64) => Op::CopySign,
        ("rcp", ["rn"], 64) => Op::Float(|a, _, _| a.recip()),
        ("rcp", ["approx", "ftz"], 32) => Op::Flushed(f64::recip),
        ("sqrt", ["rn"], 64) | ("sqrt", ["approx"], 32) => Op::Float(|a, _, _| a.sqrt()),
        ("sqrt", ["approx", "ftz"], 32) => Op::Flushed(f64::sqrt),
        ("rsqrt", ["approx"], 32) => Op::Float(|a, _, _| a.sqrt().recip()),
        ("ex2", ["approx"], 32) => Op::Float(|a, _, _| a.exp2()),
        ("ex2", ["approx", "ftz"], 32) => Op::Flushed(f64::exp2),
        ("lg2", ["approx"], 32) => Op::Float(|a, _, _| a.log2()),
        _ => return None,
    })
}

/// Replaces a subnormal `f32` by zero of the same sign.
fn flush(bits: u64) -> u64 {
    if f32::from_bits(bits as u32).is_subnormal() { bits & 0x8000_0000 } else { bits }
}

/// Parses `cvt`, whose qualifiers are the rounding and the type of the result.
fn conversion(qualifiers: &[&str], from: Type) -> Option<Alu> {
    let (to, rounding) = qualifiers.split_last()?;
    let to = Type::parse(to)?;
    let rounding = match rounding {
        [] => Rounding::Exact,
        ["rn"] => Rounding::Nearest,
        ["rzi"] => Rounding::Zero,
        ["rmi"] => Rounding::Down,
        ["rpi"] => Rounding::Up,
        ["rni"] => Rounding::NearestInteger,
        _ => return None,
    };
    let is_known = match (from.is_float(), to.is_float(), rounding) {
        (false, false, Rounding::Exact) => from.is_integer() && to.is_integer(),
        (false, true, Rounding::Nearest) => from.is_integer() && to.bits() > 16,
        (true, true, Rounding::Exact) => to.bits() > from.bits(),
        (true, true, Rounding::Nearest) => to.bits() < from.bits(),
        (true, true, _) => to == from,
        (true, false, Rounding::Zero | Rounding::NearestInteger) => {
            to.is_integer() && to.bits() > 16
        }
        _ => false,
    };
    is_known.then_some(Alu { op: Op::Convert(to, rounding), ty: from })
}

fn convert(from: Type, to: Type, rounding: Rounding, x: u64) -> u64 {
    match (from.is_float(), to.is_float()) {
        (false, false) => from.int(x) as u64,
        (false, true) if to.bits() == 32 => (from.int(x) as f32).to_bits().into(),
        (false, true) => (from.int(x) as f64).to_bits(),
        (true, true) => to.round(round_to_integer(rounding, from.float(x))),
        (true, false) => float_to_int_sat(from, to, round_to_integer(rounding, from.float(x))),
    }
}

fn round_to_integer(rounding: Rounding, x: f64) -> f64 {
    match rounding {
        Rounding::Exact | Rounding::Nearest => x,
        Rounding::Zero => x.trunc(),
        Rounding::Down => x.floor(),
        Rounding::Up => x.ceil(),
        Rounding::NearestInteger => x.round_ties_even(),
    }
}

/// Converts a float to an integer, and clamps that to the range of a type. NaN becomes 0 if
/// neither type has 64 bits, else the integer of which only the highest bit is set.
fn float_to_int_sat(from: Type, to: Type, value: f64) -> u64 {
    let width = to.bits();
    if value.is_nan() {
        return if from.bits() == 64 || width == 64 { 1 << (width - 1) } else { 0 };
    }
    let (low, high) = match to {
        Type::Signed(_) => (-(1i128 << (width - 1)), (1i128 << (width - 1)) - 1),
        _ => (0, (1i128 << width) - 1),
    };
    (value as i128).clamp(low, high) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permutations_select_bytes_and_signs() {
        let prmt = Alu::parse(&["prmt", "b32"]).unwrap();
        let compute = |digits| prmt.compute([0x8344_5566, 0x0011_2277, digits]);
        assert_eq!(compute(0x7410), Ok(0x0077_5566));
        assert_eq!(compute(0x32fb), Ok(0x8344_00ff));
    }

    #[test]
    fn integers_are_rounded_to_even() {
        let round = Alu::parse(&["cvt", "rni", "s32", "f32"]).unwrap();
        let compute = |value: f32| round.compute([value.to_bits().into(), 0, 0]);
        assert_eq!([compute(2.5), compute(3.5)], [Ok(2), Ok(4)]);
        assert_eq!([compute(1e10), compute(f32::NAN)], [Ok(0x7fff_ffff), Ok(0)]);
    }

    #[test]
    fn f16s_are_rounded_once() {
        let fma = Alu::parse(&["fma", "rn", "f16"]).unwrap();
        // The sum is 2^-33 below the middle of the result and its upper neighbour.
        assert_eq!(fma.compute([0x2401, 0x27fe, 0x3c01]), Ok(0x3c01));
        let above_middle = 1.0 + 2f64.powi(-11) + 2f64.powi(-40);
        assert_eq!(nearest_f16(above_middle).to_bits(), 0x3c01);
        assert_eq!(nearest_f16(-above_middle).to_bits(), 0xbc01);
        assert_eq!(nearest_f16(1e300), f16::INFINITY);
        assert!(nearest_f16(f64::NAN).is_nan());
    }
}
