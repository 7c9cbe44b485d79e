//! The parameters that the text of a FlashAttention kernel depends on.

use crate::kernels::attention::shape::Attention;
use crate::kernels::name::Name;
use crate::types::PtxType;

/// The tile shape of a block: 64 rows per consumer, and keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FlashTile {
    /// Consumer warpgroups: 1 to 3.
    pub consumers: u32,
    /// Keys per tile: a multiple of 16 up to 256.
    pub keys: u32,
    /// Pipeline stages: tiles of keys, and of values, in shared memory.
    pub stages: u32,
    /// Resident blocks per multiprocessor, which limit the registers per thread.
    pub resident: u32,
}

/// How results are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in super::super) enum Output {
    /// Through TMA: 16-bit floats on Hopper.
    Tiles,
    /// Row by row: `f32`, and on Ampere, which has no TMA, the 16-bit floats too.
    Rows,
    /// As partial results of a slice of the keys: accumulators, maxima and totals for
    /// [`Combine`](super::super::combine).
    Partial,
}

/// How a consumer schedules MMAs and softmax.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FlashPipeline {
    /// One after the other.
    Sequential,
    /// Software-pipelined: the scores of the next tile overlap with the softmax of this one.
    Overlapped,
}

/// The kind of MMA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in super::super) enum Engine {
    /// `wgmma`, with operands that TMA loads into shared memory.
    Hopper,
    /// `mma.sync`, with operands in registers.
    Ampere,
}

/// How a bias is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in super::super) struct BiasForm {
    pub element: PtxType,
    /// Whether two neighbouring columns can be loaded as one vector.
    pub pairs: bool,
}

impl BiasForm {
    pub fn new(attention: &Attention) -> Option<Self> {
        let bias = attention.bias?;
        let strides = [bias.strides.batch, bias.strides.head, bias.strides.row];
        let even = strides.iter().all(|stride| stride.is_multiple_of(2));
        Some(Self { element: bias.element, pairs: even && bias.column_stride == 1 })
    }

    /// Appends the bias form to a kernel's name.
    pub fn append_to(self, name: Name) -> Name {
        let name = name.with(format_args!("bias{}", self.element.name()));
        name.with_if(self.pairs, "vec2")
    }
}

/// A variant of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in super::super) struct Variant {
    pub engine: Engine,
    /// Type of operands in shared memory: `F16` or `Bf16`.
    pub element: PtxType,
    /// Terms per element: 1, or 3 for `f32`.
    pub terms: u32,
    /// Columns of a row in shared memory: a multiple of 64.
    pub width: u32,
    pub tile: FlashTile,
    pub pipeline: FlashPipeline,
    pub causal: bool,
    pub bias: Option<BiasForm>,
    pub output: Output,
}

impl Variant {
    pub fn name(&self) -> String {
        let FlashTile { consumers, keys, stages, resident } = self.tile;
        let element = if self.terms == 1 { self.element.name() } else { "f32" };
        let engine = if self.engine == Engine::Ampere { "mma" } else { "sm90" };
        let name = Name::new("attention").with(engine).with(element);
        let name = name.with(format_args!("d{}", self.width));
        let name = name.with(format_args!("{}x{keys}", 64 * consumers));
        let name = name.with(format_args!("s{stages}")).with(format_args!("o{resident}"));
        let name = name.with_if(self.pipeline == FlashPipeline::Overlapped, "overlap");
        let name = name.with_if(self.causal, "causal");
        let name = match self.bias {
            Some(bias) => bias.append_to(name),
            None => name,
        };
        name.with_if(self.output == Output::Partial, "splitkv").build()
    }

    /// Whether the queries of all heads that share keys are the rows of one block.
    pub fn packs_heads(&self) -> bool {
        self.output == Output::Partial
    }

    /// Threads per block: the consumers, then on Hopper the producer: a warp, or a whole warpgroup
    /// where it reallocates registers (`setmaxnreg`).
    pub fn threads(&self) -> u32 {
        let producer = match self.engine {
            Engine::Ampere => 0,
            Engine::Hopper if self.registers().is_some() => 128,
            Engine::Hopper => 32,
        };
        128 * self.tile.consumers + producer
    }

    /// Registers per thread of the producer and of a consumer; `None` if they are not reallocated.
    /// All resident blocks together have at most the 65536 registers of a multiprocessor.
    pub fn registers(&self) -> Option<(u32, u32)> {
        match (self.tile.resident, self.tile.consumers) {
            (1, 2) if self.terms > 1 => Some((40, 232)),
            (1, 2) => Some((24, 240)),
            (1, 3) => Some((32, 160)),
            (2, 2) => Some((24, 104)),
            _ => None,
        }
    }

    /// Chunks of 64 columns per row: 128 bytes each.
    pub fn chunks(&self) -> u32 {
        self.width / 64
    }

    /// Returns which terms of two operands are multiplied, the smallest products first. The omitted
    /// products are below the precision of `f32`.
    pub fn products(&self) -> &'static [(u32, u32)] {
        match self.terms {
            1 => &[(0, 0)],
            _ => &[(0, 2), (2, 0), (1, 1), (0, 1), (1, 0), (0, 0)],
        }
    }
}
