//! Random programs over a few buffers: their steps, generation, and simulation on the host.

use std::ops::Range;

use proptest::prelude::*;

pub const BUFFERS: usize = 3;
/// Kernels get slices of whole blocks, which satisfy every alignment.
pub const BLOCKS: usize = 6;

/// Consecutive blocks of a buffer.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    pub buffer: usize,
    first: usize,
    end: usize,
}

/// A step; the numbers are taken modulo the valid range.
#[derive(Debug, Clone)]
pub enum Step {
    /// Each word of `to` from several words of `from`, and from itself.
    Mix {
        from: Place,
        to: Place,
        salt: u32,
    },
    /// Each word of `to` from the words of `a` and `b`.
    Join {
        a: Place,
        b: Place,
        to: Place,
    },
    /// Increments words of `to`, selected by the words of `from`.
    Tally {
        from: Place,
        to: Place,
    },
    /// Copies words.
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
pub enum Way {
    /// Each step on its own.
    Direct,
    /// A batch, not waited for.
    Batch,
    /// A batch, waited for.
    BatchAndWait,
    /// A recording and its number of replays.
    Recording(usize),
}

pub type Program = Vec<(Way, Vec<Step>)>;

pub fn place() -> impl Strategy<Value = Place> {
    (0..BUFFERS, 0..BLOCKS, 1..=BLOCKS).prop_map(|(buffer, first, len)| Place {
        buffer,
        first,
        end: (first + len).min(BLOCKS),
    })
}

pub fn step() -> impl Strategy<Value = Step> {
    let word = || [0..BUFFERS, 0..10_000];
    prop_oneof![
        4 => (place(), place(), any::<u32>())
            .prop_map(|(from, to, salt)| Step::Mix { from, to, salt }),
        3 => (place(), place(), place()).prop_map(|(a, b, to)| Step::Join { a, b, to }),
        2 => (place(), place()).prop_map(|(from, to)| Step::Tally { from, to }),
        4 => (word(), word(), 0..10_000usize)
            .prop_map(|(from, to, len)| Step::Copy { from, to, len }),
        1 => (0..BUFFERS, any::<u32>()).prop_map(|(buffer, value)| Step::Fill { buffer, value }),
        1 => (0..BUFFERS, any::<u32>()).prop_map(|(buffer, salt)| Step::Write { buffer, salt }),
        1 => (0..BUFFERS).prop_map(|buffer| Step::Download { buffer }),
    ]
}

pub fn program() -> impl Strategy<Value = Program> {
    let way = prop_oneof![
        Just(Way::Direct),
        Just(Way::Batch),
        Just(Way::Batch),
        Just(Way::BatchAndWait),
        (1..4usize).prop_map(Way::Recording),
    ];
    prop::collection::vec((way, prop::collection::vec(step(), 1..16)), 1..5)
}

/// The simulation: the words of each buffer.
pub struct Model {
    pub buffers: Vec<Vec<u32>>,
    /// Words of a block.
    pub block: usize,
}

impl Model {
    pub fn range(&self, place: Place) -> Range<usize> {
        place.first * self.block..place.end * self.block
    }

    fn words(&self, place: Place) -> Vec<u32> {
        self.buffers[place.buffer][self.range(place)].to_vec()
    }

    fn overlap(&self, a: Place, b: Place) -> bool {
        a.buffer == b.buffer && a.first < b.end && b.first < a.end
    }

    /// Returns the source words of a copy, and their destination.
    pub fn copied(
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

    /// Returns whether a step is invalid: it would read what it writes.
    pub fn is_refused(&self, step: &Step) -> bool {
        match step {
            Step::Mix { from, to, .. } | Step::Tally { from, to } => self.overlap(*from, *to),
            Step::Join { a, b, to } => self.overlap(*a, *to) || self.overlap(*b, *to),
            Step::Copy { from, to, len } => {
                let (source, target) = self.copied(*from, *to, *len);
                from[0] == to[0] && source.start < target.end && target.start < source.end
            }
            _ => false,
        }
    }

    pub fn written(&self, salt: u32) -> Vec<u32> {
        (0..(self.block * BLOCKS) as u32).map(|i| i.wrapping_mul(salt | 1)).collect()
    }

    /// Executes a step; returns the data of a download.
    pub fn step(&mut self, step: &Step) -> Option<Vec<u32>> {
        match step {
            Step::Mix { from, to, salt } => self.mix(&self.words(*from), *to, *salt),
            Step::Join { a, b, to } => self.join(&self.words(*a), &self.words(*b), *to),
            Step::Tally { from, to } => self.tally(&self.words(*from), *to),
            Step::Copy { from, to, len } => {
                let (source, target) = self.copied(*from, *to, *len);
                let words = self.buffers[from[0]][source].to_vec();
                self.buffers[to[0]][target].copy_from_slice(&words);
            }
            Step::Fill { buffer, value } => self.buffers[*buffer].fill(*value),
            Step::Write { buffer, salt } => self.buffers[*buffer] = self.written(*salt),
            Step::Download { buffer } => return Some(self.buffers[*buffer].clone()),
        }
        None
    }

    fn target(&mut self, to: Place) -> &mut [u32] {
        let range = self.range(to);
        &mut self.buffers[to.buffer][range]
    }

    fn mix(&mut self, source: &[u32], to: Place, salt: u32) {
        let n = source.len();
        for (i, word) in self.target(to).iter_mut().enumerate() {
            let one = source[(i * 7 + salt as usize % 1000) % n];
            let other = source[n - 1 - i % n];
            *word = word.wrapping_mul(3).wrapping_add(one).wrapping_add(other).wrapping_add(salt);
        }
    }

    fn join(&mut self, a: &[u32], b: &[u32], to: Place) {
        for (i, word) in self.target(to).iter_mut().enumerate() {
            *word = a[i % a.len()] ^ b[i * 5 % b.len()].wrapping_add(i as u32);
        }
    }

    fn tally(&mut self, source: &[u32], to: Place) {
        let target = self.target(to);
        for (i, word) in (1..).zip(source) {
            let place = *word as usize % target.len();
            target[place] = target[place].wrapping_add(i);
        }
    }
}
