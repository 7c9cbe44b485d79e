//! Uniform buffers and immediates, which are read word by word.
//!
//! A uniform buffer is declared as an array of quads (`vec4<u32>`), since the standard layout
//! requires a stride of 16 bytes, followed by the remaining words. Immediates are words only.
//! 16-bit values are halves of words, 64-bit values are two words.

use spirv::{Decoration, GlslStd450Op, Op, StorageClass};

use super::module::Id;
use super::state::{Resolved, Words};
use super::{Emitter, Result, lacking};
use crate::kir::Type;

/// The position of a word.
#[derive(Clone, Copy)]
enum WordPosition {
    /// The index of a word.
    Constant(u32),
    /// The index of a word, and a constant number of words to add.
    Dynamic(Id, u32),
    /// The index of a quad, and a constant number of words to add.
    Quad(Id, u32),
}

impl Emitter<'_> {
    /// Declares a uniform buffer or the immediates, with a size of `bytes`.
    pub(super) fn declare_words(&mut self, binding: Option<u32>, bytes: u64) -> Words {
        let words = bytes.div_ceil(4) as u32;
        let (class, quads) = match binding {
            Some(_) => (StorageClass::Uniform, words / 4),
            None => (StorageClass::PushConstant, 0),
        };
        let rest = words - quads * 4;
        let u32 = self.m.u32_ty();
        let mut members = Vec::new();
        if quads > 0 {
            let (quad, count) = (self.m.vector(u32, 4), self.m.u32(quads));
            let array = self.m.new_ty(Op::TypeArray, &[quad, count]);
            self.m.decorate(array, Decoration::ArrayStride, &[16]);
            members.push(array);
        }
        members.extend((0..rest).map(|_| u32));
        let block = self.m.new_ty(Op::TypeStruct, &members);
        self.m.decorate(block, Decoration::Block, &[]);
        let first = u32::from(quads > 0);
        if quads > 0 {
            self.m.decorate_member(block, 0, Decoration::Offset, &[0]);
        }
        for i in 0..rest {
            let offset = quads * 16 + i * 4;
            self.m.decorate_member(block, first + i, Decoration::Offset, &[offset]);
        }
        let variable = self.m.global(class, block, None);
        if let Some(binding) = binding {
            self.bind(variable, binding);
        }
        Words { binding, class, variable, quads, rest }
    }

    /// Loads values of a uniform buffer, or of the immediates.
    pub(super) fn load_words(
        &mut self,
        binding: Option<u32>,
        place: &Resolved,
        ty: Type,
        count: u32,
    ) -> Result<Vec<Id>> {
        let words = self.words.iter().find(|words| words.binding == binding);
        let words = *words.expect("uniform buffers and immediates are declared first");
        (0..count).map(|i| self.load_word_value(&words, place, ty, i * ty.size())).collect()
    }

    /// Loads the value that is `ahead` bytes after a place.
    fn load_word_value(
        &mut self,
        words: &Words,
        place: &Resolved,
        ty: Type,
        ahead: u32,
    ) -> Result<Id> {
        let stride = if place.index.is_some() { place.stride } else { 0 };
        let offset = place.offset + u64::from(ahead);
        if ty == Type::Bool {
            return Err(lacking("bool in a uniform buffer"));
        }
        if !stride.is_multiple_of(4) {
            return Ok(self.indexed_half(words, &Resolved { offset, ..*place }, ty));
        }
        let word = (offset / 4) as u32;
        let position = match place.index {
            None => WordPosition::Constant(word),
            Some(_) if stride.is_multiple_of(16) => {
                let aligned = Resolved { offset: 0, ..*place };
                WordPosition::Quad(self.unit(&aligned, 16), word)
            }
            Some(_) => {
                let aligned = Resolved { offset: 0, ..*place };
                WordPosition::Dynamic(self.unit(&aligned, 4), word)
            }
        };
        let low = self.word(words, position, 0);
        match ty.size() {
            2 => Ok(self.half_of_word(ty, low, offset % 4 == 2)),
            4 => Ok(if ty.is_float() { self.op(Op::Bitcast, ty, &[low]) } else { low }),
            _ => {
                let high = self.word(words, position, 1);
                let u32 = self.m.u32_ty();
                let pair = self.m.vector(u32, 2);
                let both = self.m.op(Op::CompositeConstruct, pair, &[low, high]);
                Ok(self.op(Op::Bitcast, ty, &[both]))
            }
        }
    }

    /// Loads a 16-bit value whose stride is not a multiple of a word.
    fn indexed_half(&mut self, words: &Words, place: &Resolved, ty: Type) -> Id {
        let u32 = self.m.u32_ty();
        let half = self.unit(place, 2);
        let one = self.m.u32(1);
        let word = self.m.op(Op::ShiftRightLogical, u32, &[half, one]);
        let loaded = self.word(words, WordPosition::Dynamic(word, 0), 0);
        let is_high = self.m.op(Op::BitwiseAnd, u32, &[half, one]);
        if ty == Type::F16 {
            let scalar = self.spirv_ty(ty);
            let pair = self.m.vector(scalar, 2);
            let both = self.m.op(Op::Bitcast, pair, &[loaded]);
            return self.m.op(Op::VectorExtractDynamic, scalar, &[both, is_high]);
        }
        let four = self.m.u32(4);
        let amount = self.m.op(Op::ShiftLeftLogical, u32, &[is_high, four]);
        let shifted = self.m.op(Op::ShiftRightLogical, u32, &[loaded, amount]);
        self.op(Op::UConvert, ty, &[shifted])
    }

    /// Extracts the low or high 16 bits of a word as a value of type `ty`.
    fn half_of_word(&mut self, ty: Type, word: Id, high: bool) -> Id {
        if ty == Type::F16 {
            let half = self.spirv_ty(ty);
            let pair = self.m.vector(half, 2);
            let both = self.m.op(Op::Bitcast, pair, &[word]);
            return self.m.op(Op::CompositeExtract, half, &[both, u32::from(high)]);
        }
        let u32 = self.m.u32_ty();
        let amount = self.m.u32(16);
        let word = if high { self.m.op(Op::ShiftRightLogical, u32, &[word, amount]) } else { word };
        self.op(Op::UConvert, ty, &[word])
    }

    /// Loads the word that is `ahead` words after a position.
    fn word(&mut self, words: &Words, at: WordPosition, ahead: u32) -> Id {
        match at {
            WordPosition::Constant(word) => self.constant_word(words, word + ahead),
            WordPosition::Quad(..) | WordPosition::Dynamic(..) if words.rest > 0 => {
                self.word_by_selection(words, at, ahead)
            }
            WordPosition::Quad(quad, word) => {
                let word = word + ahead;
                let u32 = self.m.u32_ty();
                let (more, component) = (self.m.u32(word / 4), self.m.u32(word % 4));
                let index = self.m.op(Op::IAdd, u32, &[quad, more]);
                self.quad_word(words, index, component)
            }
            WordPosition::Dynamic(..) => {
                let u32 = self.m.u32_ty();
                let word = self.dynamic_word(at, ahead);
                let [two, three] = [2, 3].map(|word| self.m.u32(word));
                let index = self.m.op(Op::ShiftRightLogical, u32, &[word, two]);
                let component = self.m.op(Op::BitwiseAnd, u32, &[word, three]);
                self.quad_word(words, index, component)
            }
        }
    }

    /// Loads a word of the array of quads, or one of the remaining words: members of a structure
    /// have no dynamic index, so that each is loaded, and one is selected.
    fn word_by_selection(&mut self, words: &Words, at: WordPosition, ahead: u32) -> Id {
        let u32 = self.m.u32_ty();
        let word = self.dynamic_word(at, ahead);
        let first = match words.quads {
            0 => self.constant_word(words, 0),
            quads => {
                let [two, three, last] = [2, 3, quads - 1].map(|word| self.m.u32(word));
                let quad = self.m.op(Op::ShiftRightLogical, u32, &[word, two]);
                let quad = self.m.glsl(GlslStd450Op::UMin, u32, &[quad, last]);
                let component = self.m.op(Op::BitwiseAnd, u32, &[word, three]);
                self.quad_word(words, quad, component)
            }
        };
        (0..words.rest).fold(first, |found, i| {
            let i = words.quads * 4 + i;
            let (other, i) = (self.constant_word(words, i), self.m.u32(i));
            let here = self.op(Op::IEqual, Type::Bool, &[word, i]);
            self.m.op(Op::Select, u32, &[here, other, found])
        })
    }

    /// Returns the index of a word as a value.
    fn dynamic_word(&mut self, at: WordPosition, ahead: u32) -> Id {
        let u32 = self.m.u32_ty();
        let (base, more) = match at {
            WordPosition::Constant(word) => return self.m.u32(word + ahead),
            WordPosition::Dynamic(base, more) => (base, more),
            WordPosition::Quad(quad, more) => {
                let two = self.m.u32(2);
                (self.m.op(Op::ShiftLeftLogical, u32, &[quad, two]), more)
            }
        };
        let more = self.m.u32(more + ahead);
        self.m.op(Op::IAdd, u32, &[base, more])
    }

    fn constant_word(&mut self, words: &Words, word: u32) -> Id {
        let quads = words.quads;
        if word < quads * 4 {
            let (index, component) = (self.m.u32(word / 4), self.m.u32(word % 4));
            return self.quad_word(words, index, component);
        }
        debug_assert!(word - quads * 4 < words.rest, "constant accesses are in bounds");
        let member = word - quads * 4 + u32::from(quads > 0);
        let (u32, member) = (self.m.u32_ty(), self.m.u32(member));
        let pointer = self.pointer_to(words.class, u32, &[words.variable, member]);
        self.m.op(Op::Load, u32, &[pointer])
    }

    fn quad_word(&mut self, words: &Words, index: Id, component: Id) -> Id {
        let (u32, member) = (self.m.u32_ty(), self.m.u32(0));
        let chain = [words.variable, member, index, component];
        let pointer = self.pointer_to(words.class, u32, &chain);
        self.m.op(Op::Load, u32, &[pointer])
    }
}
