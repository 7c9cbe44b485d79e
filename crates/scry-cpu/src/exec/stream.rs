//! Sums of products whose operands are read, and whose result is written, where they lie.

use super::frame::Frame;
use super::indices::{ALL, Rows, line};
use super::memory::{Start, place};
use crate::code::{Access, Area, At, Operand, Stream};
use crate::lanes::{Args, BLOCK, Bits, Src, Tier};
use crate::words::{Plain, Words, each};

/// Words of a register, or at a place whose indices grow evenly from lane to lane.
enum Line<'a> {
    Lanes(Src),
    Memory { memory: Plain<'a>, unit: u64, at: &'a At, rows: Rows, start: Start },
}

impl Frame<'_> {
    /// Computes as many blocks as lie evenly in one go, and the others step by step.
    pub(super) fn stream(&mut self, stream: &Stream) {
        let lanes = self.lanes;
        self.lanes.first = self.stream_lines(stream);
        if self.lanes.first < lanes.end {
            self.stream_apart(stream);
        }
        self.lanes = lanes;
    }

    /// Every operand into its register, the result too, and from there to memory.
    fn stream_apart(&self, stream: &Stream) {
        let source = |operand: &Operand| match operand {
            Operand::Lanes(source) => *source,
            Operand::Memory(access) => {
                self.load(access);
                Src { start: access.to[0], step: 1 }
            }
        };
        let [a, b, c] = [0, 1, 2].map(|nth| source(&stream.operands[nth]));
        let args = Args { d: stream.d, a, b, c };
        stream.op.lanes(self.tier, self.files(), self.blocks(), &args);
        if let Some(store) = &stream.store {
            self.store(store);
        }
    }

    /// Computes blocks up to the first one that has words elsewhere; which one that is.
    fn stream_lines(&self, stream: &Stream) -> usize {
        match self.tier {
            Tier::Base => self.stream_with(stream, |a, b, c| a * b + c),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the tier is only made where the processor has the features.
            Tier::Avx2 => unsafe { avx2::stream(self, stream) },
        }
    }

    #[inline(always)]
    fn stream_with(&self, stream: &Stream, f: impl Fn(f32, f32, f32) -> f32) -> usize {
        let lines = [0, 1, 2].map(|nth| match &stream.operands[nth] {
            Operand::Lanes(source) => Some(Line::Lanes(*source)),
            Operand::Memory(access) => self.line_of(access),
        });
        let target = match &stream.store {
            None => Some(Line::Lanes(Src { start: stream.d, step: 1 })),
            Some(access) => self.line_of(access).filter(|_| self.lanes.dense),
        };
        let ([Some(a), Some(b), Some(c)], Some(d)) = (lines, target) else {
            return self.lanes.first;
        };
        // Factors change places so that one word for all lanes comes first.
        let (a, b) = if b.is_shared() { (b, a) } else { (a, b) };
        if b.is_shared() || c.is_shared() || d.is_shared() {
            return self.lanes.first;
        }
        let power = [&a, &b, &c, &d].map(Line::power).into_iter().min().unwrap_or(ALL);
        let [of_product, of_term] = stream.negated.map(|negated| u32::from(negated) << 31);
        let compute = |[a, b, c]: [u32; 3]| {
            let product = f32::from_bits(a ^ of_product);
            f(product, f32::from_bits(b), f32::from_bits(c ^ of_term)).to_bits()
        };
        let mut block = self.lanes.first;
        while block < self.lanes.end {
            let end = ((block >> power) + 1) << power;
            let count = end.min(self.lanes.end) - block;
            let words = |line| self.words(line, block, count);
            let (Some(a), Some(b), Some(c), Some(d)) = (words(&a), words(&b), words(&c), words(&d))
            else {
                break;
            };
            each([a, b, c], d, compute);
            block += count;
        }
        block
    }

    /// The line that a place is, if it is one, and no other thread is in the way.
    fn line_of<'a>(&'a self, access: &'a Access) -> Option<Line<'a>> {
        let (rows, _) = line(&self.pattern(&access.at.index))?;
        let (memory, unit, start) = match access.at.area {
            Area::Binding(binding) => (self.regions[binding as usize].plain(), 1, Start::BINDING),
            Area::Shared(start) => {
                let memory = Plain::of(&self.scratch.shared.words);
                (memory, size_of::<u32>() as u64, self.shared_start::<u32>(start))
            }
            Area::Local { .. } => return None,
        };
        let step = u64::from(rows.step) * u64::from(access.at.stride) * unit;
        let even = step == 0 || step == size_of::<u32>() as u64;
        even.then_some(Line::Memory { memory, unit, at: &access.at, rows, start })
    }

    /// The words for some blocks, if they are there.
    #[inline(always)]
    fn words<'a>(&'a self, line: &Line<'a>, block: usize, count: usize) -> Option<Words<'a>> {
        const BYTES: u64 = (size_of::<u32>() * BLOCK) as u64;
        match line {
            Line::Lanes(source) => {
                let registers = Plain::of(u32::file(self.files()));
                let apart = u64::from(source.step) * BYTES;
                registers.words(source.at(block) as u64 * BYTES, apart as i64, count, false)
            }
            Line::Memory { memory, unit, at, rows, start } => {
                let first = rows.evenly(block, count)?;
                let byte = (start.of(block) + place(at, first)) * unit;
                let apart = i64::from(rows.even().1 as i32) * i64::from(at.stride) * *unit as i64;
                let words = memory.words(byte, apart, count, rows.step == 0)?;
                Some(if *unit == 1 { words.streaming() } else { words })
            }
        }
    }
}

impl Line<'_> {
    /// Whether there is one word for all lanes of a block.
    fn is_shared(&self) -> bool {
        matches!(self, Self::Memory { rows, .. } if rows.step == 0)
    }

    /// Blocks that follow each other evenly: two to this power.
    fn power(&self) -> u32 {
        match self {
            Self::Lanes(_) => ALL,
            Self::Memory { rows, start, .. } => rows.even().0.min(start.group),
        }
    }
}

/// The same, compiled for AVX2. Whoever calls it has to know that the processor has it.
#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::{Frame, Stream};

    // SAFETY: the caller knows that the processor has the features.
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn stream(frame: &Frame<'_>, stream: &Stream) -> usize {
        frame.stream_with(stream, f32::mul_add)
    }
}
