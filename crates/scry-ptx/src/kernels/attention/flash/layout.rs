//! Shared memory of a block: queries, two rings of tiles, results, and mbarriers.

use super::{Output, Variant};
use crate::typed::hopper::{MBarrier, Matrix, Swizzle};
use crate::typed::{Code, Ptr, Shared, Val, Var};

/// Bytes per row of a chunk of 64 columns.
pub(super) const ROW: u32 = 128;
/// Alignment of swizzled tiles.
const ALIGN: u32 = 1024;

/// The byte offsets. A tile consists of chunks of 64 columns, one after the other, for each term.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    parts: u32,
    chunks: u32,
    consumers: u32,
    stages: u32,
    /// Bytes per chunk of a tile of keys or values.
    chunk: u32,
    /// Whether results have separate memory, instead of that of the queries.
    apart: bool,
}

/// Bytes of shared memory per multiprocessor, including what is reserved per block.
const CAPACITY: u32 = 233_472;
/// Bytes reserved per block.
const RESERVED: u32 = 1024;

impl Layout {
    pub fn new(variant: &Variant) -> Self {
        let layout = Self {
            parts: variant.parts,
            chunks: variant.chunks(),
            consumers: variant.tile.consumers,
            stages: variant.tile.stages,
            chunk: variant.tile.keys * ROW,
            apart: variant.output == Output::Tiles,
        };
        let room = CAPACITY / variant.tile.resident - RESERVED;
        Self { apart: layout.apart && layout.bytes() <= room, ..layout }
    }

    /// Whether results have separate memory, instead of that of the queries.
    pub fn apart(&self) -> bool {
        self.apart
    }

    /// Bytes per chunk of a consumer's queries.
    const QUERY_CHUNK: u32 = 64 * ROW;

    /// Bytes of a consumer's queries.
    fn queries(&self) -> u32 {
        self.parts * self.chunks * Self::QUERY_CHUNK
    }

    /// Bytes per tile of keys or of values.
    pub fn tile(&self) -> u32 {
        self.parts * self.chunks * self.chunk
    }

    /// Bytes before the memory for results.
    fn operands(&self) -> u32 {
        self.consumers * self.queries() + 2 * self.stages * self.tile()
    }

    /// Bytes without the mbarriers.
    fn tiles(&self) -> u32 {
        self.operands() + if self.apart { self.consumers * self.queries() } else { 0 }
    }

    /// Number of mbarriers: two for queries, and two per tile.
    fn barriers(&self) -> u32 {
        2 + 4 * self.stages
    }

    /// Bytes in total, for any alignment of the base address.
    pub fn bytes(&self) -> u32 {
        ALIGN + self.tiles() + 8 * self.barriers()
    }

    /// Byte offset of a chunk in the queries.
    pub fn query_chunk(&self, part: u32, chunk: u32) -> u32 {
        (part * self.chunks + chunk) * Self::QUERY_CHUNK
    }

    /// Byte offset of a chunk in a tile.
    pub fn tile_chunk(&self, part: u32, chunk: u32) -> u32 {
        (part * self.chunks + chunk) * self.chunk
    }

    pub fn place<'k>(&self, k: &'k Code) -> Places<'k> {
        let anywhere = k.dynamic_shared::<u8>(16).to_bits();
        let begin = (anywhere + (ALIGN - 1)) & !(ALIGN - 1);
        let tiles = Ptr::<Shared, _>::from_bits(begin);
        Places { layout: *self, tiles, barriers: tiles.offset(self.tiles().into()).cast() }
    }
}

/// Addresses in shared memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places<'k> {
    pub layout: Layout,
    tiles: Ptr<'k, Shared, u8>,
    barriers: Ptr<'k, Shared, u64>,
}

impl<'k> Places<'k> {
    /// Initialises all mbarriers; executed by one thread.
    pub fn prepare(&self, k: &Code) {
        let Layout { stages, consumers, .. } = self.layout;
        self.queries_full().init(1);
        self.queries_empty().init(4 * consumers);
        for ring in [self.keys(), self.values()] {
            for stage in 0..stages {
                MBarrier::at(ring.full.at(stage)).init(1);
                MBarrier::at(ring.empty.at(stage)).init(4 * consumers);
            }
        }
        k.fence_mbarrier_init();
    }

    pub fn queries_full(&self) -> MBarrier<'k> {
        MBarrier::at(self.barriers)
    }

    pub fn queries_empty(&self) -> MBarrier<'k> {
        MBarrier::at(self.barriers.at(1))
    }

    /// Returns the address of a consumer's results.
    pub fn results(&self, consumer: Val<'k, u32>) -> Ptr<'k, Shared, u8> {
        let from = if self.layout.apart { self.layout.operands() } else { 0 };
        self.queries(consumer).offset(from.into())
    }

    /// Returns the address of a consumer's queries.
    pub fn queries(&self, consumer: Val<'k, u32>) -> Ptr<'k, Shared, u8> {
        self.tiles.plus_bytes(consumer * self.layout.queries())
    }

    pub fn keys(&self) -> Ring<'k> {
        self.ring(0)
    }

    pub fn values(&self) -> Ring<'k> {
        self.ring(1)
    }

    fn ring(&self, nth: u32) -> Ring<'k> {
        let Layout { stages, consumers, .. } = self.layout;
        let tiles = consumers * self.layout.queries() + nth * stages * self.layout.tile();
        let full = self.barriers.at(2 + 2 * nth * stages);
        Ring {
            layout: self.layout,
            tiles: self.tiles.offset(tiles.into()),
            full,
            empty: full.at(stages),
        }
    }
}

/// A ring of tiles with full and empty mbarriers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ring<'k> {
    layout: Layout,
    tiles: Ptr<'k, Shared, u8>,
    full: Ptr<'k, Shared, u64>,
    empty: Ptr<'k, Shared, u64>,
}

impl<'k> Ring<'k> {
    /// Returns a cursor at the ring's start.
    pub fn walk(self, k: &'k Code) -> Walk<'k> {
        Walk { ring: self, stage: k.var(0u32), round: k.var(0u32) }
    }
}

/// A cursor in a ring.
#[derive(Debug, Clone, Copy)]
pub(super) struct Walk<'k> {
    ring: Ring<'k>,
    stage: Var<'k, u32>,
    /// The parity of the number of rounds.
    round: Var<'k, u32>,
}

impl<'k> Walk<'k> {
    /// Returns the address of the current tile.
    pub fn tile(&self) -> Ptr<'k, Shared, u8> {
        self.ring.tiles.plus_bytes(self.stage.get() * self.ring.layout.tile())
    }

    pub fn full(&self) -> MBarrier<'k> {
        MBarrier::at(self.ring.full.at(self.stage.get()))
    }

    pub fn empty(&self) -> MBarrier<'k> {
        MBarrier::at(self.ring.empty.at(self.stage.get()))
    }

    /// Waits until the current tile is full.
    pub fn wait_full(&self) {
        self.full().wait(self.round.get());
    }

    /// Waits until all consumers have released the previous content.
    pub fn wait_empty(&self) {
        self.empty().wait(self.round.get() ^ 1);
    }

    /// Advances to the next tile.
    pub fn advance(&self) {
        let next = self.stage.get() + 1;
        let around = next.equals(self.ring.layout.stages);
        self.round.set(around.select::<u32>(self.round.get() ^ 1, self.round.get()));
        self.stage.set(around.select::<u32>(0, next));
    }

    /// Returns the current tile as the `b` operand of scores: K-major.
    pub fn as_keys(&self) -> Matrix<'k> {
        Matrix::new(self.tile(), 16, 8 * ROW, Swizzle::B128)
    }

    /// Returns the current tile as the `b` operand of results: N-major, with K along the rows.
    pub fn as_values(&self) -> Matrix<'k> {
        Matrix::new(self.tile(), self.ring.layout.chunk, 8 * ROW, Swizzle::B128)
    }
}
