//! Copies tiles of the operands into pipeline stages in shared memory, 16 bytes at a time.
//!
//! An operand keeps its layout. The 16-byte chunks of a row are swizzled (XOR), so that chunks that
//! are read at once are in different banks.

use super::tile::MmaTile;
use crate::kernels::gemm::params::Operand;
use crate::kernels::gemm::{Layout, MatrixLayout};
use crate::typed::{Code, Global, Ptr, Shared, Val, Var};

/// Bytes per chunk.
const PIECE: u32 = 16;
/// Bytes along K per stage.
const DEEP: u32 = 128;

/// The layout of an operand in memory and in a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Lines {
    /// Whether it is K-major.
    pub along: bool,
    /// Bytes per element.
    pub size: u32,
}

impl Lines {
    /// Creates it for an operand whose layout along M or N is contiguous in the layout `across`.
    pub(super) fn new(layout: &MatrixLayout, across: Layout, size: u32) -> Self {
        Self { along: layout.order != across, size }
    }

    /// Whether K is innermost in memory.
    pub(super) const fn is_k_major(self) -> bool {
        self.along
    }

    /// Elements per chunk.
    const fn piece(self) -> u32 {
        PIECE / self.size
    }

    /// Elements along K per stage.
    pub(super) const fn k_dim(self) -> u32 {
        DEEP / self.size
    }

    /// Bytes per row in a stage.
    const fn line(self, side: u32) -> u32 {
        if self.along { DEEP } else { side * self.size }
    }

    /// Whether chunks are swizzled. Words of rows that are strided along K are read one by one,
    /// four rows of eight at once: these rows are padded instead.
    const fn exchanged(self) -> bool {
        self.along || self.size == 2
    }

    /// Row pitch in a stage, in bytes.
    pub(super) const fn pitch(self, side: u32) -> u32 {
        self.line(side) + if self.exchanged() { 0 } else { 2 * PIECE }
    }

    /// Bytes of an operand in a stage, for `side` elements along M or N.
    pub(super) const fn bytes_of(self, side: u32) -> u32 {
        self.pitch(side) * if self.along { side } else { self.k_dim() }
    }

    /// Returns the swizzled position of a chunk in a row.
    pub(super) fn place<'k>(self, piece: Val<'k, u32>, line: Val<'k, u32>) -> Val<'k, u32> {
        if self.exchanged() { piece ^ (line & 7) } else { piece }
    }
}

/// The copies of an operand by one thread.
pub(super) struct Copier<'k> {
    k: &'k Code,
    lines: Lines,
    /// Element offset in memory of the thread's first chunk of this iteration; of the tile if the
    /// operand is K-major.
    from: Var<'k, u64>,
    /// Bytes from one stage to the next in memory.
    pitch: Val<'k, u64>,
    pieces: Pieces<'k>,
    /// Index along K of the first chunk, and the remaining elements along K from the stage's begin.
    k_index: Val<'k, u32>,
    left: Var<'k, i32>,
    /// Byte offset of the first chunk in a stage, and from one chunk to the next.
    to: Val<'k, u32>,
    to_next: u32,
}

/// Where a thread's chunks are in memory.
enum Pieces<'k> {
    /// K-major: element offsets from the tile's begin. Rows beyond the end are clamped to existing
    /// ones; their results are dropped.
    Along(Vec<Val<'k, u32>>),
    /// Strided along K: number of chunks, rows and bytes from one to the next, and valid bytes of
    /// each.
    Across { count: u32, lines: u32, next: Val<'k, u64>, width: Val<'k, u32> },
}

impl<'k> Copier<'k> {
    /// Creates the copies of one thread for `side` rows or columns of an operand, `offset` bytes
    /// into each stage.
    pub(super) fn new(
        k: &'k Code,
        lines: Lines,
        side: u32,
        tile: &MmaTile,
        operand: &Operand<'k>,
        offset: u32,
    ) -> Self {
        let (pitch, per_line) = (lines.pitch(side), lines.line(side) / PIECE);
        let step = tile.threads() / per_line;
        let (line, piece) = (k.thread_id() / per_line, k.thread_id() % per_line);
        let at = piece * lines.piece();
        let room = operand.whole - operand.start;
        let (ld, size) = (wide(operand.ld), u64::from(lines.size));
        let pieces = if lines.along {
            let row = |nth: u32| (line + nth * step).min(room - 1).mul_add(operand.ld, at);
            Pieces::Along((0..side / step).map(row).collect())
        } else {
            let (count, next) = (lines.k_dim() / step, ld * (u64::from(step) * size));
            Pieces::Across { count, lines: step, next, width: lines.bytes((room - at).cast()) }
        };
        let stage = k.constant(u64::from(DEEP)).copied();
        Self {
            k,
            lines,
            from: k.var(operand.base.to_bits() + lines.first(operand, line, at) * size),
            pitch: if lines.along { stage } else { ld * u64::from(DEEP) },
            pieces,
            k_index: if lines.along { at } else { line },
            left: k.var(operand.k_dim.cast::<i32>()),
            to: line * pitch + lines.place(piece, line) * PIECE + offset,
            to_next: step * pitch,
        }
    }

    /// Copies the next tile into a stage; elements beyond the operand's end are zero.
    pub(super) fn copy(&self, stage: Ptr<'k, Shared, u8>) {
        let left = self.left.get() - self.k_index.cast::<i32>();
        let to = |nth: u32| stage.plus_bytes(self.to).offset((nth * self.to_next).into());
        match &self.pieces {
            Pieces::Along(elements) => {
                let (from, bytes) = (pointer(self.from.get()), self.lines.bytes(left));
                for (nth, element) in (0..).zip(elements) {
                    let from = self.lines.element(from, *element);
                    self.k.copy_async_zero_fill(to(nth), from, PIECE, bytes);
                }
            }
            Pieces::Across { count, lines, next, width } => {
                let mut from = self.from.get().copied();
                for nth in 0..*count {
                    let bytes = left.gt((nth * lines) as i32).select(*width, 0u32);
                    self.k.copy_async_zero_fill(to(nth), pointer(from), PIECE, bytes);
                    from = from + *next;
                }
            }
        }
        self.from.set(self.from.get() + self.pitch);
        self.left.set(self.left.get() - self.lines.k_dim() as i32);
    }
}

fn pointer(address: Val<'_, u64>) -> Ptr<'_, Global, u8> {
    Ptr::<Global, u8>::from_bits(address)
}

fn wide(x: Val<'_, u32>) -> Val<'_, u64> {
    x.convert("")
}

impl Lines {
    /// Returns the element offset at which a copier begins.
    fn first<'k>(
        self,
        operand: &Operand<'k>,
        line: Val<'k, u32>,
        at: Val<'k, u32>,
    ) -> Val<'k, u64> {
        let (start, begin) = (wide(operand.start), wide(operand.begin));
        let ld = wide(operand.ld);
        match self.along {
            true => start * ld + begin,
            false => (begin + wide(line)) * ld + start + wide(at),
        }
    }

    /// Returns the address of element `nth` from `from`.
    fn element<'k>(self, from: Ptr<'k, Global, u8>, nth: Val<'k, u32>) -> Ptr<'k, Global, u8> {
        match self.size {
            2 => from.cast::<u16>().at(nth).cast(),
            _ => from.cast::<u32>().at(nth).cast(),
        }
    }
}

impl Lines {
    /// Returns the valid bytes of a chunk, given the number of elements from its begin to the end.
    fn bytes(self, elements: Val<'_, i32>) -> Val<'_, u32> {
        (elements.max(0).min(self.piece() as i32) * self.size as i32).cast()
    }
}
