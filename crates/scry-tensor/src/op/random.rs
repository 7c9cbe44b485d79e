//! Random numbers as functions of a seed and the position of the element: the numbers of the
//! kernel library, by the counter-based generator Philox 4×32-10 of Salmon, Moraes, Dror and Shaw.

use scry_gpu::kir::{BinaryOp, Type, UnaryOp};

use crate::dtype::DType;
use crate::expr::{Expression, Id, Map};

/// The distribution of random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Distribution {
    /// All bits of integers.
    Bits,
    /// From 0, inclusive, to 1, exclusive.
    Uniform,
    /// With mean 0 and variance 1.
    Normal,
}

/// Random numbers. If the seed is not known, the operands are its lower and upper 32 bits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Random {
    pub(crate) distribution: Distribution,
    pub(crate) dtype: DType,
    pub(crate) seed: Option<u64>,
}

impl Random {
    pub(crate) fn map(&self) -> (Map, Vec<u32>) {
        let mut e = Expression::default();
        let (key, arguments) = match self.seed {
            Some(seed) => {
                let key = [e.argument(DType::U32), e.argument(DType::U32)];
                (key, vec![seed as u32, (seed >> 32) as u32])
            }
            None => ([e.operand(DType::U32), e.operand(DType::U32)], Vec::new()),
        };
        let position = e.position();
        let block = shifted(&mut e, BinaryOp::Shr, position, 2);
        let words = philox(&mut e, block, key);
        let result = match self.distribution {
            Distribution::Bits => {
                let word = nth_word(&mut e, position, words);
                e.bitcast(self.dtype.computed(), word)
            }
            Distribution::Uniform => {
                let word = nth_word(&mut e, position, words);
                uniform(&mut e, self.dtype, word)
            }
            Distribution::Normal => normal(&mut e, position, words),
        };
        (e.finish(result, self.dtype), arguments)
    }
}

fn shifted(e: &mut Expression, op: BinaryOp, a: Id, by: u32) -> Id {
    let by = e.bits(by);
    e.binary(op, a, by)
}

/// Returns whether a bit is set.
fn has_bit(e: &mut Expression, a: Id, bit: u32) -> Id {
    let bit = e.bits(bit);
    let masked = e.binary(BinaryOp::And, a, bit);
    let zero = e.bits(0);
    e.binary(BinaryOp::Ne, masked, zero)
}

/// Returns the word of a block for a position.
fn nth_word(e: &mut Expression, position: Id, words: [Id; 4]) -> Id {
    let (is_odd, is_upper) = (has_bit(e, position, 1), has_bit(e, position, 2));
    let lower = e.select(is_odd, words[1], words[0]);
    let upper = e.select(is_odd, words[3], words[2]);
    e.select(is_upper, upper, lower)
}

/// Returns both halves of the 64 bits of a product: the upper one by parts of 16 bits.
fn product(e: &mut Expression, factor: u32, x: Id) -> [Id; 2] {
    let (constant, mask) = (e.bits(factor), e.bits(0xffff));
    let [low, high] = [e.bits(factor & 0xffff), e.bits(factor >> 16)];
    let (x_low, x_high) = (e.binary(BinaryOp::And, x, mask), shifted(e, BinaryOp::Shr, x, 16));
    let mut times = |a: Id, b: Id| e.binary(BinaryOp::Mul, a, b);
    let (lows, mixed, other, highs) =
        (times(low, x_low), times(high, x_low), times(low, x_high), times(high, x_high));
    let wrapped = times(constant, x);
    let carry = shifted(e, BinaryOp::Shr, lows, 16);
    let first = e.binary(BinaryOp::Add, mixed, carry);
    let rest = e.binary(BinaryOp::And, first, mask);
    let second = e.binary(BinaryOp::Add, other, rest);
    let first = shifted(e, BinaryOp::Shr, first, 16);
    let second = shifted(e, BinaryOp::Shr, second, 16);
    let upper = e.binary(BinaryOp::Add, highs, first);
    [wrapped, e.binary(BinaryOp::Add, upper, second)]
}

/// Returns the four words of a counter, of which only the first word is not 0.
fn philox(e: &mut Expression, counter: Id, key: [Id; 2]) -> [Id; 4] {
    let zero = e.bits(0);
    let (mut state, mut key) = ([counter, zero, zero, zero], key);
    let steps = [e.bits(0x9e37_79b9), e.bits(0xbb67_ae85)];
    for _ in 0..10 {
        let [low, high] = product(e, 0xd251_1f53, state[0]);
        let [other_low, other_high] = product(e, 0xcd9e_8d57, state[2]);
        let first = e.binary(BinaryOp::Xor, other_high, state[1]);
        let second = e.binary(BinaryOp::Xor, high, state[3]);
        state = [
            e.binary(BinaryOp::Xor, first, key[0]),
            other_low,
            e.binary(BinaryOp::Xor, second, key[1]),
            low,
        ];
        key = [0, 1].map(|n| e.binary(BinaryOp::Add, key[n], steps[n]));
    }
    state
}

/// Returns as many of the upper bits as the type has, as a fraction.
fn uniform(e: &mut Expression, dtype: DType, word: Id) -> Id {
    let bits = match dtype {
        DType::F16 => 11,
        DType::BF16 => 8,
        _ => 24,
    };
    let upper = shifted(e, BinaryOp::Shr, word, 32 - bits);
    let number = e.convert(Type::F32, upper);
    let unit = e.f32(0.5f32.powi(bits as i32));
    e.binary(BinaryOp::Mul, number, unit)
}

/// Returns a normally distributed number by the method of Box and Muller.
fn normal(e: &mut Expression, position: Id, words: [Id; 4]) -> Id {
    let (is_odd, is_upper) = (has_bit(e, position, 1), has_bit(e, position, 2));
    let first = e.select(is_upper, words[2], words[0]);
    let second = e.select(is_upper, words[3], words[1]);
    let signed = e.bitcast(Type::I32, second);
    let fraction = e.convert(Type::F32, signed);
    let scale = e.f32(std::f32::consts::TAU / 4_294_967_296.0);
    let angle = e.binary(BinaryOp::Mul, fraction, scale);
    let (cos, sin) = (e.unary(UnaryOp::Cos, angle), e.unary(UnaryOp::Sin, angle));
    let direction = e.select(is_odd, sin, cos);
    let radius = radius(e, first);
    e.binary(BinaryOp::Mul, radius, direction)
}

/// Returns `sqrt(-2 ln u)` for `u = (word + 1/2) / 2^32`.
fn radius(e: &mut Expression, word: Id) -> Id {
    let (half, unit) = (e.f32(0.5), e.f32(1.0 / 4_294_967_296.0));
    let number = e.convert(Type::F32, word);
    let u = e.binary(BinaryOp::Add, number, half);
    let u = e.binary(BinaryOp::Mul, u, unit);
    let log = e.unary(UnaryOp::Log, u);
    let log = e.unary(UnaryOp::Neg, log);
    // Close to 1, u has lost the bits that matter: -ln(1 - d) = d + d²/2 + d³/3 + …
    let ones = e.bits(u32::MAX);
    let rest = e.binary(BinaryOp::Sub, ones, word);
    let d = e.convert(Type::F32, rest);
    let d = e.binary(BinaryOp::Add, d, half);
    let d = e.binary(BinaryOp::Mul, d, unit);
    let series = e.series(d, [1.0, 0.5, 1.0 / 3.0, 0.25, 1.0 / 5.0, 1.0 / 6.0]);
    let limit = e.f32(1.0 / 16.0);
    let is_close = e.binary(BinaryOp::Lt, d, limit);
    let exponent = e.select(is_close, series, log);
    let doubled = e.binary(BinaryOp::Add, exponent, exponent);
    e.unary(UnaryOp::Sqrt, doubled)
}
