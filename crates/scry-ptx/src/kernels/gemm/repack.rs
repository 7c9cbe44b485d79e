//! Repacks operands into lines that start at multiples of 16 bytes, a TMA requirement. A line is a
//! row or a column, whichever is contiguous.
//!
//! 16-bit elements are moved in 32-bit words: a line that starts in the middle of a word is
//! assembled from neighbouring words with funnel shifts. One launch repacks one or two operands.

use super::MatrixLayout;
use super::memory::to_u64;
use crate::asm::Opcode;
use crate::kernels::name::Name;
use crate::kernels::{
    BufferAccess, BufferParameter, KernelInterface, LaunchShape, Parameter, PtxKernel,
};
use crate::module::PtxEntry;
use crate::target::Target;
use crate::typed::{self, Global, KernelBuilder, Ptr, ToOperand, Val};
use crate::types::PtxType;

/// Threads per block.
const THREADS: u32 = 256;
/// Words of a line per lane.
const WORDS: u32 = 8;
/// 16-bit elements of a line per warp.
const CHUNK: u32 = 2 * 32 * WORDS;

/// An operand to repack: a batch of matrices.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source {
    /// Its layout.
    pub layout: MatrixLayout,
    /// Elements per line: along the contiguous dimension.
    pub line: u64,
    /// Lines per matrix.
    pub lines: u64,
    /// Number of matrices.
    pub batch: u64,
    /// Elements of the buffer.
    pub len: u64,
}

impl Source {
    /// Creates the operand from matrices of `rows` × `columns`; a batch with stride 0 is one
    /// matrix.
    pub(super) fn new(layout: MatrixLayout, rows: u64, columns: u64, batch: u64) -> Self {
        let (line, lines) = layout.lines(rows, columns);
        let batch = if layout.stride == 0 { 1 } else { batch };
        let len = layout.extent(rows, columns, batch).expect("the product's buffers were checked");
        Self { layout, line, lines, batch, len }
    }

    /// Returns the repacked layout: the leading dimension is a multiple of 128 bytes.
    pub(super) fn repacked_layout(&self) -> MatrixLayout {
        let ld = self.line.next_multiple_of(64);
        let stride = if self.layout.stride == 0 { 0 } else { ld * self.lines };
        MatrixLayout { ld, stride, ..self.layout }
    }

    /// Returns the bytes of the repacked operand.
    pub(super) fn bytes(&self) -> u64 {
        2 * self.line.next_multiple_of(64) * self.lines * self.batch
    }

    fn chunks_per_line(&self) -> u64 {
        self.line.div_ceil(CHUNK.into())
    }

    /// Returns the number of warp-sized chunks; `None` if they are too many to count.
    pub(super) fn chunk_count(&self) -> Option<u32> {
        let total =
            u128::from(self.chunks_per_line()) * u128::from(self.lines) * u128::from(self.batch);
        u32::try_from(total).ok().filter(|chunk_count| *chunk_count < u32::MAX / 32)
    }

    fn parameters(&self, at: usize) -> [Parameter; 8] {
        [
            Parameter::Pointer(at),
            Parameter::Pointer(at + 1),
            Parameter::U64(self.layout.ld),
            Parameter::U64(self.layout.stride),
            Parameter::U64(self.len),
            Parameter::U32(self.line as u32),
            Parameter::U32(self.lines as u32),
            Parameter::U32(self.chunk_count().expect("the plan was made for what can be counted")),
        ]
    }
}

/// Repacks one or two operands of 16-bit elements.
#[derive(Debug, Clone)]
pub(super) struct Repack {
    /// The operands.
    pub sources: Vec<Source>,
    /// Type of their elements.
    pub element: PtxType,
}

/// An operand as values of the kernel.
struct SourceParams<'k> {
    from: Ptr<'k, Global, u32>,
    to: Ptr<'k, Global, u32>,
    ld: Val<'k, u64>,
    stride: Val<'k, u64>,
    len: Val<'k, u64>,
    line: Val<'k, u32>,
    lines: Val<'k, u32>,
    chunk_count: Val<'k, u32>,
}

impl PtxKernel for Repack {
    fn name(&self) -> String {
        Name::new("gemm_align16").with(format_args!("x{}", self.sources.len())).build()
    }

    fn default_target(&self) -> Target {
        Target::SM_80
    }

    fn write(&self, target: Target) -> PtxEntry {
        typed::kernel(&self.name(), target, [THREADS, 1, 1], |k| {
            let params: Vec<_> =
                (0..self.sources.len()).map(|nth| SourceParams::new(k, nth)).collect();
            match params.as_slice() {
                [one] => one.copy_chunk(k),
                [one, other, ..] => {
                    k.if_else(k.block_id(1).eq(0), || one.copy_chunk(k), || other.copy_chunk(k));
                }
                [] => {}
            }
        })
    }

    fn launch(&self) -> LaunchShape {
        let chunk_count = self.sources.iter().filter_map(Source::chunk_count).max().unwrap_or(0);
        let blocks = chunk_count.div_ceil(THREADS / 32);
        LaunchShape {
            grid: [blocks, self.sources.len() as u32, 1],
            block: [THREADS, 1, 1],
            dynamic_shared: 0,
        }
    }

    fn interface(&self) -> KernelInterface {
        let mut interface = KernelInterface::default();
        for (nth, source) in self.sources.iter().enumerate() {
            let element = self.element;
            let read = BufferAccess::Read;
            interface.buffers.extend([
                BufferParameter { name: "operand", access: read, element, len: source.len },
                BufferParameter {
                    name: "repacked",
                    access: BufferAccess::Write,
                    element: PtxType::B8,
                    len: source.bytes(),
                },
            ]);
            interface.parameters.extend(source.parameters(2 * nth));
        }
        interface
    }
}

impl<'k> SourceParams<'k> {
    /// Declares the parameters.
    fn new(k: &'k KernelBuilder, nth: usize) -> Self {
        Self {
            from: k.pointer_param(&format!("operand{nth}")),
            to: k.pointer_param(&format!("repacked{nth}")),
            ld: k.scalar_param(&format!("ld{nth}")),
            stride: k.scalar_param(&format!("stride{nth}")),
            len: k.scalar_param(&format!("len{nth}")),
            line: k.scalar_param(&format!("line{nth}")),
            lines: k.scalar_param(&format!("lines{nth}")),
            chunk_count: k.scalar_param(&format!("chunks{nth}")),
        }
    }

    /// Copies the warp's chunk of a line.
    fn copy_chunk(&self, k: &'k KernelBuilder) {
        let chunk = k.block_id(0) * (THREADS / 32) + (k.thread_id() >> 5);
        k.if_then(chunk.lt(self.chunk_count), || {
            let chunks = (self.line + (CHUNK - 1)) / CHUNK;
            let line = chunk / chunks;
            let first = (chunk - line * chunks) * CHUNK;
            let matrix = line / self.lines;
            let start = to_u64(matrix) * self.stride
                + to_u64(line - matrix * self.lines) * self.ld
                + to_u64(first);
            let padded = (self.line + 63) & !63;
            let to = to_u64(line) * to_u64(padded) + to_u64(first);
            self.move_words(start, self.to.at_wide(to >> 1), self.line - first);
        });
    }

    /// Copies up to [`CHUNK`] elements, from element `start` of the operand on.
    fn move_words(&self, start: Val<'k, u64>, to: Ptr<'k, Global, u32>, count: Val<'k, u32>) {
        let (k, lane) = (start.builder(), start.builder().lane());
        let shift = ((start & 1) << 4).convert::<u32>("");
        let from = self.from.at_wide(start >> 1);
        // Elements from the start of the first word to the end of the buffer, clamped to a 32-bit
        // number that is more than what a warp reads.
        let available = (self.len - (start & !1)).min(u64::from(2 * CHUNK)).convert::<u32>("");
        let is_full = count.ge(CHUNK) & available.ge(CHUNK + 2);
        k.if_else(
            is_full,
            || move_all(from.at(lane), to.at(lane), shift),
            || {
                k.for_range(lane, (count + 1) >> 1, 32, |word| {
                    let low = load_word(from, word, available);
                    let high = load_word(from, word + 1, available);
                    to.at(word).store(funnel_shift(low, high, shift));
                });
            },
        );
    }
}

/// Copies all words of a chunk. All loads precede the first store.
fn move_all<'k>(from: Ptr<'k, Global, u32>, to: Ptr<'k, Global, u32>, shift: Val<'k, u32>) {
    let words = (0..WORDS).map(|nth| 32 * nth);
    let pairs: Vec<_> = words
        .clone()
        .map(|word| (from.at(word).load_constant(), from.at(word + 1).load_constant()))
        .collect();
    for (word, (low, high)) in words.zip(pairs) {
        to.at(word).store(funnel_shift(low, high, shift));
    }
}

/// Loads a word; only its first element if the word crosses the buffer's end.
fn load_word<'k>(
    from: Ptr<'k, Global, u32>,
    word: Val<'k, u32>,
    available: Val<'k, u32>,
) -> Val<'k, u32> {
    let (k, at) = (word.builder(), from.at(word));
    let value = k.var::<u32>(0);
    let second_element = word * 2 + 1;
    k.if_then(second_element.lt(available), || value.set(at.load_constant()));
    k.if_then(second_element.eq(available), || {
        value.set(at.cast::<u16>().load_constant().convert::<u32>(""));
    });
    value.get()
}

/// Returns the low word of a pair, shifted right (funnel shift).
fn funnel_shift<'k>(low: Val<'k, u32>, high: Val<'k, u32>, bits: Val<'k, u32>) -> Val<'k, u32> {
    let opcode = Opcode::new("shf.r.wrap.b32");
    low.builder().op(opcode, &[low.operand(), high.operand(), bits.operand()])
}

/// Whether TMA supports the layout of an operand or result.
pub(super) fn is_tma_aligned(
    layout: &MatrixLayout,
    rows: u64,
    columns: u64,
    batch: u64,
    size: u64,
) -> bool {
    let (_, lines) = layout.lines(rows, columns);
    let is_aligned = |stride: u64| (stride * size).is_multiple_of(16) && stride * size < 1 << 40;
    (lines <= 1 || is_aligned(layout.ld)) && (batch <= 1 || is_aligned(layout.stride))
}
