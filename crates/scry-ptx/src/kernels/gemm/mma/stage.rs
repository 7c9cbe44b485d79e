//! How tiles of the operands come into shared memory, 16 bytes at a time.
//!
//! An operand keeps the order that it has in memory. Pieces of 16 bytes are exchanged within a
//! line, so that eight neighbours across the lines, which are read at once, are in different banks.

use super::Tile;
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

    pub(super) const fn tag(self) -> &'static str {
        if self.along { "t" } else { "n" }
    }

    /// Elements of a piece.
    const fn piece(self) -> u32 {
        PIECE / self.size
    }

    /// Depth of a stage.
    pub(super) const fn depth(self) -> u32 {
        DEEP / self.size
    }

    /// Bytes from one line to the next in a stage.
    pub(super) const fn pitch(self, side: u32) -> u32 {
        if self.along { DEEP } else { side * self.size }
    }

    /// The place of a piece in a line.
    pub(super) fn place<'k>(self, piece: Val<'k, u32>, line: Val<'k, u32>) -> Val<'k, u32> {
        // Words have no instruction that turns them: four lines of eight words are read at once.
        let turned = self.along || self.size == 2;
        piece ^ if turned { line & 7 } else { (line & 3) << 1 }
    }
}

/// An operand of a tile.
pub(super) struct Operand<'k> {
    /// Where the operand begins.
    pub base: Ptr<'k, Global, u8>,
    /// From one line to the next.
    pub leading: Val<'k, u32>,
    /// Where the tile begins on its side, and how long that is altogether.
    pub start: Val<'k, u32>,
    pub whole: Val<'k, u32>,
    /// Where the depth begins, and how deep it is.
    pub begin: Val<'k, u32>,
    pub depth: Val<'k, u32>,
    /// Bytes of a stage before the operand.
    pub offset: u32,
}

/// What a thread copies of an operand.
pub(super) struct Copier<'k> {
    k: &'k Code,
    lines: Lines,
    /// Where the tile of this step begins in memory.
    from: Var<'k, u64>,
    /// Bytes from one stage to the next in memory.
    pitch: Val<'k, u64>,
    /// Depth of the first piece, and how many are left from where the stage begins.
    depth: Val<'k, u32>,
    left: Var<'k, i32>,
    /// Bytes of each piece that the line has, where lines lie across the depth.
    width: Val<'k, u32>,
    /// For each piece its line from the first one, its element from the begin of the tile, and
    /// where it goes in a stage, in bytes from the first one.
    pieces: Vec<(u32, Val<'k, u32>, u32)>,
    /// Bytes of the first piece in a stage.
    to: Val<'k, u32>,
}

impl<'k> Copier<'k> {
    /// `side` elements of an operand for a thread of a tile.
    pub(super) fn new(
        k: &'k Code,
        lines: Lines,
        side: u32,
        tile: &Tile,
        operand: &Operand<'k>,
    ) -> Self {
        let pitch = lines.pitch(side);
        let (threads, per_line) = (tile.threads(), pitch / PIECE);
        let step = threads / per_line;
        let (line, piece) = (k.thread_id() / per_line, k.thread_id() % per_line);
        let count = if lines.along { side } else { lines.depth() };
        let room = operand.whole - operand.start;
        let at = piece * lines.piece();
        let element = |nth: u32| {
            let line = line + nth * step;
            // What lies beyond the end is replaced by what is there: results of it are dropped.
            let line = if lines.along { line.min(room - 1) } else { line };
            line.mul_add(operand.leading, at)
        };
        let wide = |x: Val<'k, u32>| x.convert::<u64>("");
        let (start, begin) = (wide(operand.start), wide(operand.begin));
        let leading = wide(operand.leading);
        let first = if lines.along { start * leading + begin } else { begin * leading + start };
        let size = u64::from(lines.size);
        let stage = k.constant(u64::from(lines.depth()) * size);
        Self {
            k,
            lines,
            from: k.var(operand.base.to_bits() + first * size),
            pitch: if lines.along { stage.copied() } else { leading * stage },
            depth: if lines.along { at } else { line },
            left: k.var(operand.depth.cast::<i32>()),
            width: lines.bytes((room - at).cast()),
            pieces: (0..count / step).map(|n| (n * step, element(n), n * step * pitch)).collect(),
            to: line * pitch + lines.place(piece, line) * PIECE + operand.offset,
        }
    }

    /// Copies the tile of the next step into a stage; what the operand does not have is zero.
    pub(super) fn copy(&self, stage: Ptr<'k, Shared, u8>) {
        let to = stage.plus_bytes(self.to);
        let from = Ptr::<Global, u8>::from_bits(self.from.get());
        let left = self.left.get() - self.depth.cast::<i32>();
        let along = self.lines.along.then(|| self.lines.bytes(left));
        for (line, element, offset) in &self.pieces {
            let there = || left.gt(*line as i32).select(self.width, 0u32);
            let bytes = along.unwrap_or_else(there);
            let from = self.element(from, *element);
            self.k.copy_async_or_zero(to.offset((*offset).into()), from, PIECE, bytes);
        }
        self.from.set(self.from.get() + self.pitch);
        self.left.set(self.left.get() - self.lines.depth() as i32);
    }

    fn element(&self, from: Ptr<'k, Global, u8>, nth: Val<'k, u32>) -> Ptr<'k, Global, u8> {
        if self.lines.size == 2 {
            from.cast::<u16>().at(nth).cast()
        } else {
            from.cast::<u32>().at(nth).cast()
        }
    }
}

impl Lines {
    /// Bytes of a piece, of which and behind which there are so many elements.
    fn bytes(self, elements: Val<'_, i32>) -> Val<'_, u32> {
        (elements.max(0).min(self.piece() as i32) * self.size as i32).cast()
    }
}
