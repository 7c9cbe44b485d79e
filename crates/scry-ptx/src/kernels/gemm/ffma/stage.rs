//! Copies tiles of the operands into pipeline stages in shared memory.
//!
//! A stage stores both operands with K outermost, so that the operands of a thread are contiguous.
//! Rows along M or N are copied as they are; K-major operands are transposed on the way, element by
//! element.

use super::FfmaTile;
use crate::kernels::gemm::params::Operand;
use crate::kernels::gemm::{Layout, MatrixLayout};
use crate::typed::{Global, KernelBuilder, Ptr, Shared, Val, Var};

/// How an operand is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum CopyKind {
    /// K-major: transposed element by element.
    KMajor,
    /// M-major or N-major, with this many elements per copy.
    MnMajor(u32),
}

impl CopyKind {
    /// Chooses the copy of an operand of which `mn_major` is the order that is contiguous along M
    /// or N; in the other order it is K-major. `extent` is the operand's size along M or N, `side`
    /// that of the tile.
    pub(super) fn new(
        layout: &MatrixLayout,
        mn_major: Layout,
        extent: u64,
        side: u32,
        tile: &FfmaTile,
    ) -> Self {
        let quads = [layout.ld, layout.stride, extent].iter().all(|n| n % 4 == 0);
        let enough = side / 4 * tile.k_dim >= tile.threads();
        match layout.order == mn_major {
            true if quads && enough => Self::MnMajor(4),
            true => Self::MnMajor(1),
            false => Self::KMajor,
        }
    }

    /// Whether K is innermost in memory.
    pub(super) const fn is_k_major(self) -> bool {
        matches!(self, Self::KMajor)
    }

    /// Whether four elements are copied at once.
    pub(super) const fn is_vectorized(self) -> bool {
        matches!(self, Self::MnMajor(4))
    }

    /// Elements per copy.
    const fn width(self) -> u32 {
        match self {
            Self::KMajor => 1,
            Self::MnMajor(width) => width,
        }
    }

    /// Elements from one index along K to the next in a stage. Transposed operands are padded
    /// against bank conflicts.
    pub(super) const fn pitch(self, side: u32) -> u32 {
        match self {
            Self::KMajor => side + 4,
            Self::MnMajor(_) => side,
        }
    }

    /// Returns the tile coordinates of a thread's copies.
    fn thread_copies<'k>(
        self,
        side: u32,
        tile: &FfmaTile,
        thread: Val<'k, u32>,
    ) -> ThreadCopies<'k> {
        let (threads, lines) = (tile.threads(), side / self.width());
        let count = lines * tile.k_dim / threads;
        match self {
            Self::KMajor => ThreadCopies {
                k_index: thread % tile.k_dim,
                side: thread / tile.k_dim,
                steps: (0..count).map(|nth| (0, nth * (threads / tile.k_dim))).collect(),
            },
            Self::MnMajor(width) if lines <= threads => ThreadCopies {
                k_index: thread / lines,
                side: thread % lines * width,
                steps: (0..count).map(|nth| (nth * (threads / lines), 0)).collect(),
            },
            Self::MnMajor(width) => {
                let rounds = lines / threads;
                let step = |nth: u32| (nth / rounds, nth % rounds * threads * width);
                let k_index = thread.builder().constant(0u32).copied();
                ThreadCopies {
                    k_index,
                    side: thread * width,
                    steps: (0..count).map(step).collect(),
                }
            }
        }
    }
}

/// The tile coordinates of a thread's copies.
struct ThreadCopies<'k> {
    /// Coordinates of the first copy: along K, and along M or N.
    k_index: Val<'k, u32>,
    side: Val<'k, u32>,
    /// For each copy, its offset from the first one: along K, and along M or N.
    steps: Vec<(u32, u32)>,
}

/// The copies of an operand by one thread.
pub(super) struct Copier<'k> {
    k: &'k KernelBuilder,
    width: u32,
    /// Global address of this iteration's tile.
    from: Var<'k, u64>,
    /// Bytes from one index along K to the next, and from one stage to the next.
    k_pitch: Val<'k, u64>,
    stage_pitch: Val<'k, u64>,
    /// Index along K of the first copy.
    k_index: Val<'k, u32>,
    /// For each copy: its offset along K from the first one, its element offset from the start of
    /// the tile, and its byte offset in a stage from the first one.
    copies: Vec<(u32, Val<'k, u32>, u32)>,
    /// Byte offset of the first copy in a stage.
    to: Val<'k, u32>,
}

impl<'k> Copier<'k> {
    /// Creates the copies of one thread for `side` rows or columns of an operand, `offset` bytes
    /// into each stage.
    pub(super) fn new(
        k: &'k KernelBuilder,
        copy_kind: CopyKind,
        side: u32,
        tile: &FfmaTile,
        operand: &Operand<'k>,
        offset: u32,
    ) -> Self {
        let ThreadCopies { k_index, side: first, steps } =
            copy_kind.thread_copies(side, tile, k.thread_id());
        let (pitch, width) = (copy_kind.pitch(side), copy_kind.width());
        // Elements beyond the end are clamped to existing ones; their results are dropped.
        let last = operand.mn_extent - operand.mn_start - width;
        let element = |step: &(u32, u32)| {
            let (k_index, at) = (k_index + step.0, (first + step.1).min(last));
            match copy_kind {
                CopyKind::KMajor => at.mul_add(operand.ld, k_index),
                CopyKind::MnMajor(_) => k_index.mul_add(operand.ld, at),
            }
        };
        let copy = |step: &(u32, u32)| (step.0, element(step), (step.0 * pitch + step.1) * 4);
        let one = k.constant(1u32).copied();
        let (mn_stride, k_stride) = match copy_kind {
            CopyKind::KMajor => (operand.ld, one),
            CopyKind::MnMajor(_) => (one, operand.ld),
        };
        let to_u64 = |x: Val<'k, u32>| x.convert::<u64>("");
        let k_pitch = to_u64(k_stride) << 2;
        let start = to_u64(operand.mn_start) * to_u64(mn_stride)
            + to_u64(operand.k_start) * to_u64(k_stride);
        Self {
            k,
            width,
            from: k.var(operand.base.cast::<f32>().at_wide(start).to_bits()),
            k_pitch,
            stage_pitch: k_pitch * u64::from(tile.k_dim),
            k_index,
            copies: steps.iter().map(copy).collect(),
            to: ((k_index * pitch + first) << 2) + offset,
        }
    }

    /// Number of copies per stage.
    pub(super) fn len(&self) -> usize {
        self.copies.len()
    }

    fn endpoints(&self, nth: usize, stage: Ptr<'k, Shared, f32>) -> Endpoints<'k> {
        let (_, element, offset) = self.copies[nth];
        let to = stage.plus_bytes(self.to).offset(offset.into());
        (to, Ptr::<Global, f32>::from_bits(self.from.get()).at(element))
    }

    /// Copies the `nth` element or vector into a stage, under a predicate.
    pub(super) fn copy(&self, nth: usize, stage: Ptr<'k, Shared, f32>, condition: Val<'k, bool>) {
        let (to, from) = self.endpoints(nth, stage);
        self.k.cp_async_if(condition, to, from, 4 * self.width);
    }

    /// Copies the elements below `k_dim` along K into a stage, and stores zeros for the others.
    pub(super) fn copy_first(&self, stage: Ptr<'k, Shared, f32>, k_dim: Val<'k, u32>) {
        for nth in 0..self.len() {
            let (to, from) = self.endpoints(nth, stage);
            let bytes = (self.k_index + self.copies[nth].0).lt(k_dim).select(4 * self.width, 0u32);
            self.k.cp_async_zero_fill(to, from, 4 * self.width, bytes);
        }
    }

    /// Advances by `k_dim` elements along K.
    pub(super) fn advance(&self, k_dim: Val<'k, u32>) {
        self.from.set(self.from.get() + k_dim.convert::<u64>("") * self.k_pitch);
    }

    /// Advances to the next stage.
    pub(super) fn advance_stage(&self) {
        self.from.set(self.from.get() + self.stage_pitch);
    }
}

/// Destination in shared memory and source in global memory.
type Endpoints<'k> = (Ptr<'k, Shared, f32>, Ptr<'k, Global, f32>);
