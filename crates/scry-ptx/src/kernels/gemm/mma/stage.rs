//! Copies tiles of the operands into pipeline stages in shared memory, in chunks of 16 bytes. A
//! chunk of unaligned rows is copied in parts: of 4 bytes, or element by element through registers,
//! since `cp.async` copies at least 4 bytes.
//!
//! An operand keeps its layout. The 16-byte chunks of a row are swizzled (XOR), so that chunks that
//! are read at once are in different banks.

use super::tile::MmaTile;
use crate::kernels::gemm::params::Operand;
use crate::kernels::gemm::{Gemm, Layout, MatrixLayout};
use crate::typed::{Global, KernelBuilder, Ptr, Shared, Val, Var};

/// Bytes per chunk.
const CHUNK_BYTES: u32 = 16;
/// Bytes along K per stage.
const K_TILE_BYTES: u32 = 128;

/// The layout of an operand in memory and in a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct OperandLayout {
    /// Whether it is K-major: contiguous along K.
    pub k_major: bool,
    /// Bytes per element.
    pub size: u32,
    /// Bytes per copy: 16, 4 or 2. The address of each row is a multiple.
    pub copy_bytes: u32,
}

impl OperandLayout {
    /// Creates the layout of an operand of which `mn_major` is the order that is contiguous along M
    /// or N; in the other order it is K-major. `mn_extent` is its extent along M or N.
    pub(super) fn new(
        gemm: &Gemm,
        layout: &MatrixLayout,
        mn_major: Layout,
        mn_extent: u64,
    ) -> Self {
        let (k_major, size) = (layout.order != mn_major, gemm.element.size());
        // Copies of no bytes still have the addresses of rows beyond the end of K, but rows beyond
        // that of M or N are clamped.
        let is_one_row = k_major && mn_extent <= 1;
        let is_aligned = |bytes: &u32| {
            let is_multiple = |n: u64| (n * u64::from(size)).is_multiple_of(u64::from(*bytes));
            (is_one_row || is_multiple(layout.ld))
                && (gemm.batch <= 1 || is_multiple(layout.stride))
        };
        let copy_bytes = [CHUNK_BYTES, 4].into_iter().find(is_aligned).unwrap_or(size);
        Self { k_major, size, copy_bytes }
    }

    /// Elements per copy.
    pub(super) const fn elements_per_copy(self) -> u32 {
        self.copy_bytes / self.size
    }

    /// Elements per chunk.
    const fn elements_per_chunk(self) -> u32 {
        CHUNK_BYTES / self.size
    }

    /// Elements along K per stage.
    pub(super) const fn k_dim(self) -> u32 {
        K_TILE_BYTES / self.size
    }

    /// Bytes per row in a stage, without padding.
    const fn row_bytes(self, side: u32) -> u32 {
        if self.k_major { K_TILE_BYTES } else { side * self.size }
    }

    /// Whether chunks are swizzled. 32-bit operands that are contiguous along M or N are read with
    /// scalar loads, by which a warp reads eight words of each of four rows at once: their rows are
    /// padded instead.
    const fn is_swizzled(self) -> bool {
        self.k_major || self.size == 2
    }

    /// Row pitch in a stage, in bytes.
    pub(super) const fn pitch(self, side: u32) -> u32 {
        self.row_bytes(side) + if self.is_swizzled() { 0 } else { 2 * CHUNK_BYTES }
    }

    /// Bytes of an operand in a stage, for `side` elements along M or N.
    pub(super) const fn stage_bytes(self, side: u32) -> u32 {
        self.pitch(side) * if self.k_major { side } else { self.k_dim() }
    }

    /// Returns the swizzled position of a chunk in a row of `pitch` bytes, at least 64.
    pub(super) fn swizzle<'k>(
        self,
        chunk: Val<'k, u32>,
        row: Val<'k, u32>,
        pitch: u32,
    ) -> Val<'k, u32> {
        match (self.is_swizzled(), pitch / CHUNK_BYTES) {
            (false, _) => chunk,
            // Two rows of four chunks are in the banks of one row of eight.
            (true, 4) => chunk ^ (row >> 1 & 3),
            (true, _) => chunk ^ (row & 7),
        }
    }
}

/// The copies of an operand by one thread.
pub(super) struct Copier<'k> {
    k: &'k KernelBuilder,
    layout: OperandLayout,
    /// Global address of the thread's first chunk of this iteration; of the tile's first element if
    /// the operand is K-major.
    src: Var<'k, u64>,
    /// Bytes that the global address advances per K tile.
    k_step_bytes: Val<'k, u64>,
    chunks: Chunks<'k>,
    /// Index along K of the first chunk, and the remaining elements along K from the stage's start.
    k_index: Val<'k, u32>,
    k_left: Var<'k, i32>,
    /// Byte offset of the first chunk in a stage, and from one chunk to the next.
    stage_offset: Val<'k, u32>,
    stage_step: u32,
}

/// The global addresses of a thread's chunks.
enum Chunks<'k> {
    /// K-major: element offsets from the tile's start. Rows beyond the end are clamped to existing
    /// ones; their results are dropped.
    KMajor(Vec<Val<'k, u32>>),
    /// Contiguous along M or N: number of chunks, rows and bytes from one to the next, and valid
    /// bytes of each.
    MnMajor { count: u32, rows: u32, row_step: Val<'k, u64>, width: Val<'k, u32> },
}

impl<'k> Copier<'k> {
    /// Creates the copies of one thread for `side` rows or columns of an operand, `offset` bytes
    /// into each stage.
    pub(super) fn new(
        k: &'k KernelBuilder,
        layout: OperandLayout,
        side: u32,
        tile: &MmaTile,
        operand: &Operand<'k>,
        offset: u32,
    ) -> Self {
        let (pitch, chunks) = (layout.pitch(side), layout.row_bytes(side) / CHUNK_BYTES);
        let step = tile.threads() / chunks;
        let (row, chunk) = (k.thread_id() / chunks, k.thread_id() % chunks);
        let at = chunk * layout.elements_per_chunk();
        let mn_left = operand.mn_extent - operand.mn_start;
        let (ld, size) = (to_u64(operand.ld), u64::from(layout.size));
        let chunks = if layout.k_major {
            let element = |nth: u32| (row + nth * step).min(mn_left - 1).mul_add(operand.ld, at);
            Chunks::KMajor((0..side / step).map(element).collect())
        } else {
            let (count, row_step) = (layout.k_dim() / step, ld * (u64::from(step) * size));
            Chunks::MnMajor {
                count,
                rows: step,
                row_step,
                width: layout.bytes((mn_left - at).cast()),
            }
        };
        let k_tile_bytes = k.constant(u64::from(K_TILE_BYTES)).copied();
        Self {
            k,
            layout,
            src: k.var(operand.base.to_bits() + layout.first_element(operand, row, at) * size),
            k_step_bytes: if layout.k_major { k_tile_bytes } else { ld * u64::from(K_TILE_BYTES) },
            chunks,
            k_index: if layout.k_major { at } else { row },
            k_left: k.var(operand.k_dim.cast::<i32>()),
            stage_offset: row * pitch + layout.swizzle(chunk, row, pitch) * CHUNK_BYTES + offset,
            stage_step: step * pitch,
        }
    }

    /// Copies the next tile into a stage; elements beyond the end of K, or of a row, are zero.
    pub(super) fn copy(&self, stage: Ptr<'k, Shared, u8>) {
        let k_left = self.k_left.get() - self.k_index.cast::<i32>();
        let stage_offset =
            |nth: u32| stage.plus_bytes(self.stage_offset).offset((nth * self.stage_step).into());
        match &self.chunks {
            Chunks::KMajor(elements) => {
                let (from, bytes) = (pointer(self.src.get()), self.layout.bytes(k_left));
                for (nth, element) in (0..).zip(elements) {
                    let from = self.layout.element(from, *element);
                    self.copy_chunk(stage_offset(nth), from, bytes);
                }
            }
            Chunks::MnMajor { count, rows, row_step, width } => {
                let mut from = self.src.get().copied();
                for nth in 0..*count {
                    let bytes = k_left.gt((nth * rows) as i32).select(*width, 0u32);
                    self.copy_chunk(stage_offset(nth), pointer(from), bytes);
                    from = from + *row_step;
                }
            }
        }
        self.src.set(self.src.get() + self.k_step_bytes);
        self.k_left.set(self.k_left.get() - self.layout.k_dim() as i32);
    }

    /// Copies the first `bytes` bytes of a chunk; the others become zero.
    fn copy_chunk(&self, to: Ptr<'k, Shared, u8>, from: Ptr<'k, Global, u8>, bytes: Val<'k, u32>) {
        match self.layout.copy_bytes {
            CHUNK_BYTES => self.k.cp_async_zero_fill(to, from, CHUNK_BYTES, bytes),
            2 => copy_16bit_elements(to, from, bytes),
            part => {
                for start in (0..CHUNK_BYTES).step_by(part as usize) {
                    let left = bytes.cast::<i32>() - start as i32;
                    let (to, from) = (to.offset(start.into()), from.offset(start.into()));
                    self.k.cp_async_zero_fill(to, from, part, left.max(0).min(part as i32).cast());
                }
            }
        }
    }
}

/// Copies the elements in the first `bytes` bytes of a chunk through registers; the others become
/// zero.
fn copy_16bit_elements<'k>(
    to: Ptr<'k, Shared, u8>,
    from: Ptr<'k, Global, u8>,
    bytes: Val<'k, u32>,
) {
    let from = from.cast::<u16>();
    let element = |nth: u32| {
        let [bits] = from.at(nth).load_constant_if(Some(bytes.gt(2 * nth)), 0);
        bits.convert::<u32>("")
    };
    let word = |nth: u32| element(2 * nth) | (element(2 * nth + 1) << 16);
    to.cast::<u32>().store_vector([word(0), word(1), word(2), word(3)]);
}

fn pointer(address: Val<'_, u64>) -> Ptr<'_, Global, u8> {
    Ptr::<Global, u8>::from_bits(address)
}

fn to_u64(x: Val<'_, u32>) -> Val<'_, u64> {
    // Without a rounding modifier: the conversion is exact.
    x.convert("")
}

impl OperandLayout {
    /// Returns the element offset at which a copier starts.
    fn first_element<'k>(
        self,
        operand: &Operand<'k>,
        row: Val<'k, u32>,
        at: Val<'k, u32>,
    ) -> Val<'k, u64> {
        let (mn_start, k_start) = (to_u64(operand.mn_start), to_u64(operand.k_start));
        let ld = to_u64(operand.ld);
        match self.k_major {
            true => mn_start * ld + k_start,
            false => (k_start + to_u64(row)) * ld + mn_start + to_u64(at),
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

impl OperandLayout {
    /// Returns the valid bytes of a chunk, given the number of elements from its start to the end.
    fn bytes(self, elements: Val<'_, i32>) -> Val<'_, u32> {
        (elements.max(0).min(self.elements_per_chunk() as i32) * self.size as i32).cast()
    }
}
