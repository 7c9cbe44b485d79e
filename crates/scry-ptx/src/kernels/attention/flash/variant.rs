//! Which code there is.

use crate::kernels::attention::shape::Attention;
use crate::kernels::name::Name;
use crate::types::PtxType;

/// How much a block computes at once: 64 rows for each consumer, and keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tile {
    /// Warpgroups that compute: 1 to 3.
    pub consumers: u32,
    /// Keys of a tile: a multiple of 16 up to 256.
    pub keys: u32,
    /// Tiles of keys, and of values, that shared memory holds.
    pub stages: u32,
    /// Blocks that a multiprocessor holds: what limits the registers of a thread.
    pub resident: u32,
}

/// What is done with results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in super::super) enum Output {
    /// They are copied tile by tile: halves.
    Tiles,
    /// They are written row by row: f32.
    Rows,
    /// A part of the keys only has been seen: sums, maxima and totals are kept for another kernel.
    Partial,
}

/// In which order products and weights are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in super::super) enum Form {
    /// One after the other.
    Plain,
    /// The scores of the next tile while this one is weighed.
    Overlapped,
}

/// What multiplies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in super::super) enum Engine {
    /// Tensor cores that read shared memory, which TMA fills.
    Hopper,
    /// Tensor cores of a warp, which read registers.
    Ampere,
}

/// How a bias is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in super::super) struct BiasForm {
    pub element: PtxType,
    /// Whether neighbours lie together, in pairs that can be read at once.
    pub pairs: bool,
}

impl BiasForm {
    pub fn of(of: &Attention) -> Option<Self> {
        let bias = of.bias?;
        let strides = [bias.strides.batch, bias.strides.head, bias.strides.row];
        let even = strides.iter().all(|stride| stride.is_multiple_of(2));
        Some(Self { element: bias.element, pairs: even && bias.column == 1 })
    }

    /// Appends to the name of a kernel what is in its text.
    pub fn named(self, name: Name) -> Name {
        let name = name.with(format_args!("bias{}", self.element.name()));
        name.with_if(self.pairs, "vec2")
    }
}

/// A variant of the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in super::super) struct Variant {
    pub engine: Engine,
    /// Type of operands in shared memory: `F16` or `Bf16`.
    pub element: PtxType,
    /// Numbers whose sum an element is: 1, or 3 for f32.
    pub parts: u32,
    /// Columns of a row in shared memory: a multiple of 64.
    pub width: u32,
    pub tile: Tile,
    pub form: Form,
    pub causal: bool,
    pub bias: Option<BiasForm>,
    pub output: Output,
}

impl Variant {
    pub fn name(&self) -> String {
        let Tile { consumers, keys, stages, resident } = self.tile;
        let element = if self.parts == 1 { self.element.name() } else { "f32" };
        let engine = if self.engine == Engine::Ampere { "mma" } else { "sm90" };
        let name = Name::new("attention").with(engine).with(element);
        let name = name.with(format_args!("d{}", self.width));
        let name = name.with(format_args!("{}x{keys}", 64 * consumers));
        let name = name.with(format_args!("s{stages}")).with(format_args!("o{resident}"));
        let name = name.with_if(self.form == Form::Overlapped, "overlap");
        let name = name.with_if(self.causal, "causal");
        let name = match self.bias {
            Some(bias) => bias.named(name),
            None => name,
        };
        name.with_if(self.packed(), "splitkv").build()
    }

    /// Whether all queries of the heads that share keys are the rows of one block.
    pub fn packed(&self) -> bool {
        self.output == Output::Partial
    }

    /// Threads of a block: the consumers, then the producer, which is a whole warpgroup only where
    /// it has registers to give.
    pub fn threads(&self) -> u32 {
        let producer = match self.engine {
            Engine::Ampere => 0,
            Engine::Hopper if self.registers().is_some() => 128,
            Engine::Hopper => 32,
        };
        128 * self.tile.consumers + producer
    }

    /// Registers of a thread of the producer and of a consumer; none if all have as many.
    pub fn registers(&self) -> Option<(u32, u32)> {
        match (self.tile.resident, self.tile.consumers) {
            (1, 2) if self.parts > 1 => Some((40, 232)),
            (1, 2) => Some((24, 240)),
            (1, 3) => Some((32, 160)),
            (2, 2) => Some((24, 104)),
            _ => None,
        }
    }

    /// Chunks of 64 columns: as many as a row of 128 bytes has.
    pub fn chunks(&self) -> u32 {
        self.width / 64
    }

    /// Which parts of two numbers are multiplied, the smallest products first.
    pub fn products(&self) -> &'static [(u32, u32)] {
        match self.parts {
            1 => &[(0, 0)],
            _ => &[(0, 2), (2, 0), (1, 1), (0, 1), (1, 0), (0, 0)],
        }
    }
}
