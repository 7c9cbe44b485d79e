//! Random programs over a few buffers: their steps, generation, and simulation on the host.

use std::ops::Range;

use proptest::prelude::*;

/// Number of buffers of a program.
pub const BUFFERS: usize = 3;
/// Blocks of a buffer. Kernels get slices of whole blocks, which satisfy every alignment.
pub const BLOCKS: usize = 6;

/// Consecutive blocks of a buffer.
#[derive(Debug, Clone, Copy)]
pub struct BlockRange {
    pub buffer: usize,
    first: usize,
    end: usize,
}

/// A step of a program.
#[derive(Debug, Clone)]
pub enum Step {
    /// Computes each word of `to` from several words of `from`, and from itself.
    Mix {
        from: BlockRange,
        to: BlockRange,
        salt: u32,
    },
    /// Computes each word of `to` from a word of `a` and one of `b`.
    Join {
        a: BlockRange,
        b: BlockRange,
        to: BlockRange,
    },
    /// Adds `i + 1`, for each word `i` of `from`, to the word of `to` that it selects.
    Tally {
        from: BlockRange,
        to: BlockRange,
    },
    /// Copies words. `from` and `to` are the index of a buffer and an offset. Offsets and length
    /// are reduced to the size of the buffers ([`Model::copy_ranges`]).
    Copy {
        from: [usize; 2],
        to: [usize; 2],
        len: usize,
    },
    Fill {
        buffer: usize,
        value: u32,
    },
    Write {
        buffer: usize,
        salt: u32,
    },
    Download {
        buffer: usize,
    },
}

/// How a part of a program is submitted.
#[derive(Debug, Clone, Copy)]
pub enum Submission {
    /// Each step by itself.
    Direct,
    /// A batch without a wait for it.
    Batch,
    /// A batch, and a wait for it.
    BatchAndWait,
    /// A recording and its number of replays.
    Recording(usize),
}

pub type Program = Vec<(Submission, Vec<Step>)>;

pub fn block_range() -> impl Strategy<Value = BlockRange> {
    (0..BUFFERS, 0..BLOCKS, 1..=BLOCKS).prop_map(|(buffer, first, len)| BlockRange {
        buffer,
        first,
        end: (first + len).min(BLOCKS),
    })
}

pub fn step() -> impl Strategy<Value = Step> {
    let buffer_and_offset = || [0..BUFFERS, 0..10_000];
    prop_oneof![
        4 => (block_range(), block_range(), any::<u32>())
            .prop_map(|(from, to, salt)| Step::Mix { from, to, salt }),
        3 => (block_range(), block_range(), block_range())
            .prop_map(|(a, b, to)| Step::Join { a, b, to }),
        2 => (block_range(), block_range()).prop_map(|(from, to)| Step::Tally { from, to }),
        4 => (buffer_and_offset(), buffer_and_offset(), 0..10_000usize)
            .prop_map(|(from, to, len)| Step::Copy { from, to, len }),
        1 => (0..BUFFERS, any::<u32>()).prop_map(|(buffer, value)| Step::Fill { buffer, value }),
        1 => (0..BUFFERS, any::<u32>()).prop_map(|(buffer, salt)| Step::Write { buffer, salt }),
        1 => (0..BUFFERS).prop_map(|buffer| Step::Download { buffer }),
    ]
}

pub fn program() -> impl Strategy<Value = Program> {
    let submission = prop_oneof![
        Just(Submission::Direct),
        Just(Submission::Batch),
        Just(Submission::Batch),
        Just(Submission::BatchAndWait),
        (1..4usize).prop_map(Submission::Recording),
    ];
    prop::collection::vec((submission, prop::collection::vec(step(), 1..16)), 1..5)
}

/// Simulates programs on the host; has the words of each buffer.
pub struct Model {
    pub buffers: Vec<Vec<u32>>,
    /// Words per block.
    pub block: usize,
}

impl Model {
    pub fn range(&self, range: BlockRange) -> Range<usize> {
        range.first * self.block..range.end * self.block
    }

    fn words(&self, range: BlockRange) -> Vec<u32> {
        self.buffers[range.buffer][self.range(range)].to_vec()
    }

    fn overlap(&self, a: BlockRange, b: BlockRange) -> bool {
        a.buffer == b.buffer && a.first < b.end && b.first < a.end
    }

    /// Returns the source and the destination of a copy, as words of the buffers.
    pub fn copy_ranges(
        &self,
        from: [usize; 2],
        to: [usize; 2],
        len: usize,
    ) -> (Range<usize>, Range<usize>) {
        let size = self.block * BLOCKS;
        let (from, to) = (from[1] % size, to[1] % size);
        let len = 1 + len % (size - from.max(to));
        (from..from + len, to..to + len)
    }

    /// Returns whether a step must be rejected because it would read what it writes.
    pub fn is_invalid(&self, step: &Step) -> bool {
        match step {
            Step::Mix { from, to, .. } | Step::Tally { from, to } => self.overlap(*from, *to),
            Step::Join { a, b, to } => self.overlap(*a, *to) || self.overlap(*b, *to),
            Step::Copy { from, to, len } => {
                let (source, target) = self.copy_ranges(*from, *to, *len);
                from[0] == to[0] && source.start < target.end && target.start < source.end
            }
            _ => false,
        }
    }

    /// Returns the data of a write.
    pub fn write_data(&self, salt: u32) -> Vec<u32> {
        (0..(self.block * BLOCKS) as u32).map(|i| i.wrapping_mul(salt | 1)).collect()
    }

    /// Executes a step; returns the data of a download.
    pub fn step(&mut self, step: &Step) -> Option<Vec<u32>> {
        match step {
            Step::Mix { from, to, salt } => self.mix(&self.words(*from), *to, *salt),
            Step::Join { a, b, to } => self.join(&self.words(*a), &self.words(*b), *to),
            Step::Tally { from, to } => self.tally(&self.words(*from), *to),
            Step::Copy { from, to, len } => {
                let (source, target) = self.copy_ranges(*from, *to, *len);
                let words = self.buffers[from[0]][source].to_vec();
                self.buffers[to[0]][target].copy_from_slice(&words);
            }
            Step::Fill { buffer, value } => self.buffers[*buffer].fill(*value),
            Step::Write { buffer, salt } => self.buffers[*buffer] = self.write_data(*salt),
            Step::Download { buffer } => return Some(self.buffers[*buffer].clone()),
        }
        None
    }

    fn target(&mut self, to: BlockRange) -> &mut [u32] {
        let range = self.range(to);
        &mut self.buffers[to.buffer][range]
    }

    fn mix(&mut self, source: &[u32], to: BlockRange, salt: u32) {
        let n = source.len();
        for (i, word) in self.target(to).iter_mut().enumerate() {
            let one = source[(i * 7 + salt as usize % 1000) % n];
            let other = source[n - 1 - i % n];
            *word = word.wrapping_mul(3).wrapping_add(one).wrapping_add(other).wrapping_add(salt);
        }
    }

    fn join(&mut self, a: &[u32], b: &[u32], to: BlockRange) {
        for (i, word) in self.target(to).iter_mut().enumerate() {
            *word = a[i % a.len()] ^ b[i * 5 % b.len()].wrapping_add(i as u32);
        }
    }

    fn tally(&mut self, source: &[u32], to: BlockRange) {
        let target = self.target(to);
        for (i, word) in (1..).zip(source) {
            let index = *word as usize % target.len();
            target[index] = target[index].wrapping_add(i);
        }
    }
}
