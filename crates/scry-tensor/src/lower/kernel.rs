//! Builds the kernel of a map.
//!
//! Each invocation computes the elements of one word of the result, or of a few, and stores whole
//! words, so that no two invocations write the same word, whatever the size of an element. The
//! elements after the last one fill the word; they are computed at coordinates out of range, where
//! loads are clamped, and never read. So are words after the last one, which are not stored.

use scry_gpu::kir::{Access as Buffer, BinaryOp, Builder, Const, Type, Value};

use super::memory::{Conversions, decode, encode};
use super::steps::{Context, Parameters, stored};
use super::{Access, KernelKey, elements_per_word};
use crate::expr::Scalar;

/// Invocations of a workgroup: WebGPU's default limit.
pub(super) const WORKGROUP: u32 = 256;

/// Builds the kernel. Its buffers are the result, the operands except one that the result replaces,
/// and the parameters if they are in a buffer.
pub(crate) fn build(
    key: &KernelKey,
    parameters: usize,
    conversions: Conversions,
) -> scry_gpu::kir::Kir {
    let mut b = Builder::new("map", [WORKGROUP, 1, 1]);
    let output = b.named_buffer("result", Type::U32, Buffer::ReadWrite);
    let name = |position| format!("operand{position}");
    let buffers = key.map.operands.iter().enumerate();
    let buffers = buffers.map(|(n, dtype)| match key.in_place == Some(n as u32) {
        true => output,
        false => b.named_buffer(&name(n), stored(*dtype), Buffer::Read),
    });
    let buffers = buffers.collect();
    let parameters = Parameters::declare(&mut b, parameters, key.in_buffer);
    Lowering { key, b, output, buffers, parameters, conversions }.build()
}

/// An operand's parameters.
struct Operand {
    offset: Value,
    /// Empty unless the access is strided.
    strides: Vec<Value>,
}

/// All parameters, as values.
pub(super) struct Loaded {
    sizes: Vec<Value>,
    operands: Vec<Operand>,
    /// Stride and size of the axis that an operand is gathered along.
    gathered: Option<[Value; 2]>,
    arguments: Vec<Value>,
    /// Zero, if a step needs it.
    zero: Option<Value>,
}

/// A kernel of a map, or the part of a kernel that computes one, while it is built.
pub(super) struct Lowering<'k> {
    pub(super) key: &'k KernelKey,
    pub(super) b: Builder,
    pub(super) output: u32,
    pub(super) buffers: Vec<u32>,
    pub(super) parameters: Parameters,
    pub(super) conversions: Conversions,
}

impl Lowering<'_> {
    fn build(mut self) -> scry_gpu::kir::Kir {
        let first = self.b.global_id(0);
        let words = self.parameters.read(&mut self.b);
        let distance = (self.key.unroll > 1).then(|| self.parameters.read(&mut self.b));
        // Beyond the distance are the words of other invocations. A map that writes to its operand
        // would read what those have written.
        let end = distance.unwrap_or(words);
        let outside = self.b.binary(BinaryOp::Ge, first, end);
        self.b.if_then(outside, |b| b.break_to(scry_gpu::kir::Label::KERNEL));
        let loaded = self.load_parameters();
        let mut places = vec![first];
        for _ in 1..self.key.unroll {
            let last = places[places.len() - 1];
            places.extend(distance.map(|distance| self.b.binary(BinaryOp::Add, last, distance)));
        }
        let values: Vec<Value> = places.iter().map(|word| self.word(*word, &loaded)).collect();
        let output = self.output;
        for (nth, (word, value)) in places.into_iter().zip(values).enumerate() {
            let store = |b: &mut Builder| {
                let place = b.element(output, word);
                b.store(place, vec![value]);
            };
            if nth == 0 {
                store(&mut self.b);
                continue;
            }
            let is_inside = self.b.binary(BinaryOp::Lt, word, words);
            self.b.if_then(is_inside, store);
        }
        self.b.finish()
    }

    /// Computes a word of the result.
    pub(super) fn word(&mut self, word: Value, loaded: &Loaded) -> Value {
        let per_word = elements_per_word(self.key.map.output);
        let mut stored = None;
        for lane in 0..per_word {
            let index = self.element_index(word, per_word, lane);
            let value = self.element(index, loaded);
            let bits = encode(&mut self.b, self.conversions, self.key.map.output, value);
            stored = Some(match stored {
                None => bits,
                Some(others) => {
                    let shift = self.b.u32(lane * 32 / per_word);
                    let bits = self.b.binary(BinaryOp::Shl, bits, shift);
                    self.b.binary(BinaryOp::Or, others, bits)
                }
            });
        }
        stored.unwrap_or(word)
    }

    /// Loads the parameters after the number of words.
    pub(super) fn load_parameters(&mut self) -> Loaded {
        let (b, parameters, classes) = (&mut self.b, &mut self.parameters, &self.key.classes);
        let sizes = parameters.read_many(b, classes.rank);
        let mut operands = Vec::new();
        for access in &classes.operands {
            let offset = parameters.read(b);
            let count = if *access == Access::Strided { classes.rank } else { 0 };
            operands.push(Operand { offset, strides: parameters.read_many(b, count) });
        }
        let is_gathered = (0..self.key.map.operands.len()).any(|n| self.key.map.is_gathered(n));
        let gathered = is_gathered.then(|| [parameters.read(b), parameters.read(b)]);
        let arguments = parameters.read_many(b, self.key.map.arguments);
        let zero = self.key.map.has_opaque().then(|| parameters.read(b));
        Loaded { sizes, operands, gathered, arguments, zero }
    }

    /// Returns the position of an element of a word in the result.
    fn element_index(&mut self, word: Value, per_word: u32, lane: u32) -> Value {
        if per_word == 1 {
            return word;
        }
        let count = self.b.u32(per_word);
        let first = self.b.binary(BinaryOp::Mul, word, count);
        let lane = self.b.u32(lane);
        self.b.binary(BinaryOp::Add, first, lane)
    }

    /// Returns the coordinates of a position. That of the first axis is not reduced by its size.
    fn coordinates(&mut self, index: Value, sizes: &[Value]) -> Vec<Value> {
        let mut rest = index;
        let mut coordinates = vec![index; sizes.len()];
        for axis in (1..sizes.len()).rev() {
            // A division is slower than all else of a small map: the remainder needs no other.
            let quotient = self.b.binary(BinaryOp::Div, rest, sizes[axis]);
            let whole = self.b.binary(BinaryOp::Mul, quotient, sizes[axis]);
            coordinates[axis] = self.b.binary(BinaryOp::Sub, rest, whole);
            rest = quotient;
        }
        if let Some(first) = coordinates.first_mut() {
            *first = rest;
        }
        coordinates
    }

    /// Computes an element of the result.
    fn element(&mut self, index: Value, loaded: &Loaded) -> Value {
        let coordinates = self.coordinates(index, &loaded.sizes);
        let mut values: Vec<Value> = Vec::new();
        let (zero, conversions) = (loaded.zero, self.conversions);
        let context = Context { arguments: &loaded.arguments, zero, conversions };
        for step in &self.key.map.scalars {
            let (scalar, _) = step;
            let value = match *scalar {
                Scalar::Load(n) => {
                    let place = self.position(n, index, &coordinates, loaded);
                    self.load(n, place)
                }
                Scalar::Gather { operand, index: at } => {
                    let place = self.position(operand, index, &coordinates, loaded);
                    self.gather(operand, place, values[at.index()], loaded)
                }
                Scalar::Coordinate(axis) => coordinates[axis as usize],
                Scalar::Position => index,
                _ => context.step(&mut self.b, step, &values).unwrap_or(index),
            };
            values.push(value);
        }
        values[self.key.map.result.index()]
    }

    /// Returns the position of an operand's element.
    fn position(&mut self, n: u32, index: Value, coordinates: &[Value], loaded: &Loaded) -> Value {
        let operand = &loaded.operands[n as usize];
        match self.key.classes.operands[n as usize] {
            Access::Uniform => operand.offset,
            Access::Linear => self.b.binary(BinaryOp::Add, operand.offset, index),
            Access::Strided => {
                let terms = coordinates.iter().zip(&operand.strides);
                terms.fold(operand.offset, |sum, (coordinate, stride)| {
                    let term = self.b.binary(BinaryOp::Mul, *coordinate, *stride);
                    self.b.binary(BinaryOp::Add, sum, term)
                })
            }
        }
    }

    fn load(&mut self, n: u32, position: Value) -> Value {
        let (buffer, dtype) = (self.buffers[n as usize], self.key.map.operands[n as usize]);
        decode(&mut self.b, self.conversions, buffer, dtype, position)
    }

    /// Loads an operand's element at an index along the gathered axis; zero if it is out of range.
    fn gather(&mut self, n: u32, position: Value, index: Value, loaded: &Loaded) -> Value {
        let Some([stride, size]) = loaded.gathered else { return position };
        let mut at = self.b.bitcast(Type::U32, index);
        if self.b.ty(index) == Type::I32 {
            let zero = self.b.i32(0);
            let is_negative = self.b.binary(BinaryOp::Lt, index, zero);
            let from_end = self.b.binary(BinaryOp::Add, at, size);
            at = self.b.select(is_negative, from_end, at);
        }
        let in_range = self.b.binary(BinaryOp::Lt, at, size);
        let distance = self.b.binary(BinaryOp::Mul, at, stride);
        let moved = self.b.binary(BinaryOp::Add, position, distance);
        let loaded = self.load(n, moved);
        let zero = self.b.constant(Const::zero(self.b.ty(loaded)));
        self.b.select(in_range, loaded, zero)
    }
}
