//! How tiles of the operands come into shared memory, 16 bytes at a time.
//!
//! An operand keeps the order that it has in memory. Pieces of 16 bytes are exchanged within a
//! line, so that neighbours across the lines, which are read at once, are in different banks.

use super::tile::Tile;
use crate::kernels::gemm::params::Operand;
use crate::kernels::gemm::{Layout, Order};
use crate::typed::{Code, Global, Ptr, Shared, Val, Var};

/// Bytes of a piece.
const PIECE: u32 = 16;
/// Bytes of the depth of a stage.
const DEEP: u32 = 128;

/// How an operand lies in memory, and in a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Lines {
    /// Whether lines lie along the depth.
    pub along: bool,
    /// Bytes of an element.
    pub size: u32,
}

impl Lines {
    /// Of an operand whose sides are rows of `a`, or columns of `b`, if these are neighbours in
    /// the order `across`.
    pub(super) fn new(layout: &Layout, across: Order, size: u32) -> Self {
        Self { along: layout.order != across, size }
    }

    /// Whether K is innermost.
    pub(super) const fn is_k_major(self) -> bool {
        self.along
    }

    /// Elements of a piece.
    const fn piece(self) -> u32 {
        PIECE / self.size
    }

    /// Depth of a stage.
    pub(super) const fn depth(self) -> u32 {
        DEEP / self.size
    }

    /// Bytes of a line in a stage.
    const fn line(self, side: u32) -> u32 {
        if self.along { DEEP } else { side * self.size }
    }

    /// Whether pieces are exchanged. Words of lines across the depth are read one by one, four
    /// lines of eight at once: for these, lines are pushed apart instead.
    const fn exchanged(self) -> bool {
        self.along || self.size == 2
    }

    /// Bytes from one line to the next in a stage.
    pub(super) const fn pitch(self, side: u32) -> u32 {
        self.line(side) + if self.exchanged() { 0 } else { 2 * PIECE }
    }

    /// Bytes of an operand in a stage, of this many elements on its side.
    pub(super) const fn bytes_of(self, side: u32) -> u32 {
        self.pitch(side) * if self.along { side } else { self.depth() }
    }

    /// The place of a piece in a line.
    pub(super) fn place<'k>(self, piece: Val<'k, u32>, line: Val<'k, u32>) -> Val<'k, u32> {
        if self.exchanged() { piece ^ (line & 7) } else { piece }
    }
}

/// What a thread copies of an operand.
pub(super) struct Copier<'k> {
    k: &'k Code,
    lines: Lines,
    /// Where the thread's first piece of this step is in memory, or the tile where lines lie along
    /// the depth.
    from: Var<'k, u64>,
    /// Bytes from one stage to the next in memory.
    pitch: Val<'k, u64>,
    pieces: Pieces<'k>,
    /// Depth of the first piece, and how many are left from where the stage begins.
    depth: Val<'k, u32>,
    left: Var<'k, i32>,
    /// Bytes of the first piece in a stage, and from one to the next.
    to: Val<'k, u32>,
    to_next: u32,
}

/// Where a thread's pieces are in memory.
enum Pieces<'k> {
    /// In lines along the depth: this many elements from the begin of the tile. Lines beyond the
    /// end are replaced by what is there: results of them are dropped.
    Along(Vec<Val<'k, u32>>),
    /// In lines across the depth: how many, lines and bytes from one to the next, and bytes of each
    /// that are there.
    Across { count: u32, lines: u32, next: Val<'k, u64>, width: Val<'k, u32> },
}

impl<'k> Copier<'k> {
    /// `side` elements of an operand, this many bytes behind the begin of a stage, for a thread of
    /// a tile.
    pub(super) fn new(
        k: &'k Code,
        lines: Lines,
        side: u32,
        tile: &Tile,
        operand: &Operand<'k>,
        offset: u32,
    ) -> Self {
        let (pitch, per_line) = (lines.pitch(side), lines.line(side) / PIECE);
        let step = tile.threads() / per_line;
        let (line, piece) = (k.thread_id() / per_line, k.thread_id() % per_line);
        let at = piece * lines.piece();
        let room = operand.whole - operand.start;
        let (leading, size) = (wide(operand.leading), u64::from(lines.size));
        let pieces = if lines.along {
            let row = |nth: u32| (line + nth * step).min(room - 1).mul_add(operand.leading, at);
            Pieces::Along((0..side / step).map(row).collect())
        } else {
            let (count, next) = (lines.depth() / step, leading * (u64::from(step) * size));
            Pieces::Across { count, lines: step, next, width: lines.bytes((room - at).cast()) }
        };
        let stage = k.constant(u64::from(DEEP)).copied();
        Self {
            k,
            lines,
            from: k.var(operand.base.to_bits() + lines.first(operand, line, at) * size),
            pitch: if lines.along { stage } else { leading * u64::from(DEEP) },
            pieces,
            depth: if lines.along { at } else { line },
            left: k.var(operand.depth.cast::<i32>()),
            to: line * pitch + lines.place(piece, line) * PIECE + offset,
            to_next: step * pitch,
        }
    }

    /// Copies the tile of the next step into a stage; what the operand does not have is zero.
    pub(super) fn copy(&self, stage: Ptr<'k, Shared, u8>) {
        let left = self.left.get() - self.depth.cast::<i32>();
        let to = |nth: u32| stage.plus_bytes(self.to).offset((nth * self.to_next).into());
        match &self.pieces {
            Pieces::Along(elements) => {
                let (from, bytes) = (pointer(self.from.get()), self.lines.bytes(left));
                for (nth, element) in (0..).zip(elements) {
                    let from = self.lines.element(from, *element);
                    self.k.copy_async_or_zero(to(nth), from, PIECE, bytes);
                }
            }
            Pieces::Across { count, lines, next, width } => {
                let mut from = self.from.get().copied();
                for nth in 0..*count {
                    let bytes = left.gt((nth * lines) as i32).select(*width, 0u32);
                    self.k.copy_async_or_zero(to(nth), pointer(from), PIECE, bytes);
                    from = from + *next;
                }
            }
        }
        self.from.set(self.from.get() + self.pitch);
        self.left.set(self.left.get() - self.lines.depth() as i32);
    }
}

fn pointer(address: Val<'_, u64>) -> Ptr<'_, Global, u8> {
    Ptr::<Global, u8>::from_bits(address)
}

fn wide(x: Val<'_, u32>) -> Val<'_, u64> {
    x.convert("")
}

impl Lines {
    /// Where a copier begins, in elements of the operand.
    fn first<'k>(
        self,
        operand: &Operand<'k>,
        line: Val<'k, u32>,
        at: Val<'k, u32>,
    ) -> Val<'k, u64> {
        let (start, begin) = (wide(operand.start), wide(operand.begin));
        let leading = wide(operand.leading);
        match self.along {
            true => start * leading + begin,
            false => (begin + wide(line)) * leading + start + wide(at),
        }
    }

    /// This many elements further on.
    fn element<'k>(self, from: Ptr<'k, Global, u8>, nth: Val<'k, u32>) -> Ptr<'k, Global, u8> {
        match self.size {
            2 => from.cast::<u16>().at(nth).cast(),
            _ => from.cast::<u32>().at(nth).cast(),
        }
    }
}

impl Lines {
    /// Bytes of a piece, of which and behind which there are this many elements.
    fn bytes(self, elements: Val<'_, i32>) -> Val<'_, u32> {
        (elements.max(0).min(self.piece() as i32) * self.size as i32).cast()
    }
}
