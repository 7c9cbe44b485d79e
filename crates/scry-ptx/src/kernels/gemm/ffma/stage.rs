//! How tiles of the operands come into shared memory, step by step.
//!
//! A stage keeps both operands depth by depth, so that what a thread multiplies next are
//! neighbours. Lines that lie across the depth are copied as they are; those that lie along it are
//! turned on the way, element by element.

use super::Tile;
use crate::kernels::gemm::params::Operand;
use crate::kernels::gemm::{Layout, Order};
use crate::typed::{Code, Global, Ptr, Shared, Val, Var};

/// How an operand is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Copying {
    /// Its lines lie along the depth.
    Along,
    /// Its lines lie across the depth; this many elements are copied at once.
    Across(u32),
}

impl Copying {
    /// For an operand whose sides are rows of `a`, or columns of `b`, if these are neighbours in
    /// the order `across`; `whole` of them, of which a tile has `side`.
    pub(super) fn new(layout: &Layout, across: Order, whole: u64, side: u32, tile: &Tile) -> Self {
        let quads = [layout.leading, layout.stride, whole].iter().all(|n| n % 4 == 0);
        let enough = side / 4 * tile.depth >= tile.threads();
        match layout.order == across {
            true if quads && enough => Self::Across(4),
            true => Self::Across(1),
            false => Self::Along,
        }
    }

    /// Whether K is innermost.
    pub(super) const fn is_k_major(self) -> bool {
        matches!(self, Self::Along)
    }

    /// Whether four elements are copied at once.
    pub(super) const fn is_vectorized(self) -> bool {
        matches!(self, Self::Across(4))
    }

    const fn width(self) -> u32 {
        match self {
            Self::Along => 1,
            Self::Across(width) => width,
        }
    }

    /// Elements from one depth to the next in a stage. What is turned is written to all banks.
    pub(super) const fn pitch(self, side: u32) -> u32 {
        match self {
            Self::Along => side + 4,
            Self::Across(_) => side,
        }
    }

    /// Where in a tile the pieces of a thread are: depth and side of its first one, and of each
    /// from there.
    fn pieces<'k>(self, side: u32, tile: &Tile, thread: Val<'k, u32>) -> Pieces<'k> {
        let (threads, lines) = (tile.threads(), side / self.width());
        let count = lines * tile.depth / threads;
        match self {
            Self::Along => Pieces {
                depth: thread % tile.depth,
                side: thread / tile.depth,
                steps: (0..count).map(|nth| (0, nth * (threads / tile.depth))).collect(),
            },
            Self::Across(width) if lines <= threads => Pieces {
                depth: thread / lines,
                side: thread % lines * width,
                steps: (0..count).map(|nth| (nth * (threads / lines), 0)).collect(),
            },
            Self::Across(width) => {
                let turns = lines / threads;
                let step = |nth: u32| (nth / turns, nth % turns * threads * width);
                let depth = thread.code().constant(0u32).copied();
                Pieces { depth, side: thread * width, steps: (0..count).map(step).collect() }
            }
        }
    }
}

struct Pieces<'k> {
    depth: Val<'k, u32>,
    side: Val<'k, u32>,
    steps: Vec<(u32, u32)>,
}

/// What a thread copies of an operand.
pub(super) struct Copier<'k> {
    k: &'k Code,
    width: u32,
    /// Where the tile of this step begins in memory.
    from: Var<'k, u64>,
    /// Bytes from one depth to the next, and from one stage to the next.
    pitch: Val<'k, u64>,
    stage_pitch: Val<'k, u64>,
    /// Depth of the first piece.
    depth: Val<'k, u32>,
    /// For each piece its depth from the first one, its element from the begin of the tile, and
    /// where it goes in a stage, in bytes from the first one.
    pieces: Vec<(u32, Val<'k, u32>, u32)>,
    /// Bytes of the first piece in a stage.
    to: Val<'k, u32>,
}

impl<'k> Copier<'k> {
    /// `side` elements of an operand, this many bytes behind the begin of a stage, for a thread of
    /// a tile.
    pub(super) fn new(
        k: &'k Code,
        copying: Copying,
        side: u32,
        tile: &Tile,
        operand: &Operand<'k>,
        offset: u32,
    ) -> Self {
        let Pieces { depth, side: first, steps } = copying.pieces(side, tile, k.thread_id());
        let (pitch, width) = (copying.pitch(side), copying.width());
        // What lies beyond the end is replaced by what is there: results of it are dropped.
        let last = operand.whole - operand.start - width;
        let element = |step: &(u32, u32)| {
            let (deep, at) = (depth + step.0, (first + step.1).min(last));
            match copying {
                Copying::Along => at.mul_add(operand.leading, deep),
                Copying::Across(_) => deep.mul_add(operand.leading, at),
            }
        };
        let piece = |step: &(u32, u32)| (step.0, element(step), (step.0 * pitch + step.1) * 4);
        let one = k.constant(1u32).copied();
        let (across, along) = match copying {
            Copying::Along => (operand.leading, one),
            Copying::Across(_) => (one, operand.leading),
        };
        let wide = |x: Val<'k, u32>| x.convert::<u64>("");
        let line = wide(along) << 2;
        let start = wide(operand.start) * wide(across) + wide(operand.begin) * wide(along);
        Self {
            k,
            width,
            from: k.var(operand.base.cast::<f32>().at_wide(start).to_bits()),
            pitch: line,
            stage_pitch: line * u64::from(tile.depth),
            depth,
            pieces: steps.iter().map(piece).collect(),
            to: ((depth * pitch + first) << 2) + offset,
        }
    }

    /// Number of pieces.
    pub(super) fn len(&self) -> usize {
        self.pieces.len()
    }

    fn ends(&self, nth: usize, stage: Ptr<'k, Shared, f32>) -> Ends<'k> {
        let (_, element, offset) = self.pieces[nth];
        let to = stage.plus_bytes(self.to).offset(offset.into());
        (to, Ptr::<Global, f32>::from_bits(self.from.get()).at(element))
    }

    /// Copies the `nth` piece into a stage, if a condition holds.
    pub(super) fn copy(&self, nth: usize, stage: Ptr<'k, Shared, f32>, condition: Val<'k, bool>) {
        let (to, from) = self.ends(nth, stage);
        self.k.copy_async_if(condition, to, from, 4 * self.width);
    }

    /// Copies what lies less deep than `depth` into a stage; what lies deeper is zero.
    pub(super) fn copy_first(&self, stage: Ptr<'k, Shared, f32>, depth: Val<'k, u32>) {
        for nth in 0..self.len() {
            let (to, from) = self.ends(nth, stage);
            let bytes = (self.depth + self.pieces[nth].0).lt(depth).select(4 * self.width, 0u32);
            self.k.copy_async_or_zero(to, from, 4 * self.width, bytes);
        }
    }

    /// Goes on by this many depths.
    pub(super) fn advance(&self, depth: Val<'k, u32>) {
        self.from.set(self.from.get() + depth.convert::<u64>("") * self.pitch);
    }

    /// Goes on to the next stage.
    pub(super) fn advance_stage(&self) {
        self.from.set(self.from.get() + self.stage_pitch);
    }
}

/// To shared memory, from memory of the device.
type Ends<'k> = (Ptr<'k, Shared, f32>, Ptr<'k, Global, f32>);
