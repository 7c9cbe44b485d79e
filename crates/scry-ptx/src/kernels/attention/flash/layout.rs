//! The layout of a block's shared memory: queries, two rings of tiles, results, and mbarriers.

use super::{Output, Variant};
use crate::typed::hopper::{MBarrier, Matrix, Swizzle};
use crate::typed::{KernelBuilder, Ptr, Shared, Val, Var};

/// Bytes per row of a chunk of 64 columns.
pub(super) const ROW: u32 = 128;
/// Alignment of swizzled tiles.
const ALIGN: u32 = 1024;

/// The layout in bytes. A tile consists of chunks of 64 columns, one after the other, for each
/// term.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    terms: u32,
    chunks: u32,
    consumers: u32,
    stages: u32,
    /// Bytes per chunk of a tile of keys or values.
    chunk_bytes: u32,
    /// Whether results have separate memory, instead of that of the queries.
    has_result_buffer: bool,
}

/// Bytes of shared memory per multiprocessor (`sm_90`), including what is reserved per block.
const CAPACITY: u32 = 233_472;
/// Bytes of shared memory that CUDA reserves per block.
const RESERVED: u32 = 1024;

impl Layout {
    pub fn new(variant: &Variant) -> Self {
        let layout = Self {
            terms: variant.terms,
            chunks: variant.chunks(),
            consumers: variant.tile.consumers,
            stages: variant.tile.stages,
            chunk_bytes: variant.tile.keys * ROW,
            has_result_buffer: variant.output == Output::Tiles,
        };
        let available = CAPACITY / variant.tile.resident - RESERVED;
        Self {
            has_result_buffer: layout.has_result_buffer && layout.bytes() <= available,
            ..layout
        }
    }

    /// Whether results have separate memory, instead of that of the queries.
    pub fn has_result_buffer(&self) -> bool {
        self.has_result_buffer
    }

    /// Bytes per chunk of a consumer's queries.
    const QUERY_CHUNK: u32 = 64 * ROW;

    /// Bytes of a consumer's queries.
    fn query_bytes(&self) -> u32 {
        self.terms * self.chunks * Self::QUERY_CHUNK
    }

    /// Bytes per tile of keys or of values.
    pub fn tile_bytes(&self) -> u32 {
        self.terms * self.chunks * self.chunk_bytes
    }

    /// Bytes of the operands: byte offset of the memory for results.
    fn operand_bytes(&self) -> u32 {
        self.consumers * self.query_bytes() + 2 * self.stages * self.tile_bytes()
    }

    /// Bytes without the mbarriers.
    fn tiles_bytes(&self) -> u32 {
        self.operand_bytes()
            + if self.has_result_buffer { self.consumers * self.query_bytes() } else { 0 }
    }

    /// Number of mbarriers: two for queries, and two per tile.
    fn barrier_count(&self) -> u32 {
        2 + 4 * self.stages
    }

    /// Bytes in total, for any alignment of the base address.
    pub fn bytes(&self) -> u32 {
        ALIGN + self.tiles_bytes() + 8 * self.barrier_count()
    }

    /// Byte offset of a chunk in the queries.
    pub fn query_chunk(&self, term: u32, chunk: u32) -> u32 {
        (term * self.chunks + chunk) * Self::QUERY_CHUNK
    }

    /// Byte offset of a chunk in a tile.
    pub fn tile_chunk(&self, term: u32, chunk: u32) -> u32 {
        (term * self.chunks + chunk) * self.chunk_bytes
    }

    /// Declares the block's shared memory.
    pub fn allocate<'k>(&self, k: &'k KernelBuilder) -> SharedMemory<'k> {
        let base = k.dynamic_shared::<u8>(16).to_bits();
        let aligned = (base + (ALIGN - 1)) & !(ALIGN - 1);
        let tiles = Ptr::<Shared, _>::from_bits(aligned);
        SharedMemory {
            layout: *self,
            tiles,
            barriers: tiles.offset(self.tiles_bytes().into()).cast(),
        }
    }
}

/// Addresses in shared memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct SharedMemory<'k> {
    pub layout: Layout,
    tiles: Ptr<'k, Shared, u8>,
    barriers: Ptr<'k, Shared, u64>,
}

impl<'k> SharedMemory<'k> {
    /// Initialises all mbarriers; executed by one thread.
    pub fn init_barriers(&self, k: &KernelBuilder) {
        let Layout { stages, consumers, .. } = self.layout;
        self.queries_full().init(1);
        // Each warp of the consumers arrives once.
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
        let from = if self.layout.has_result_buffer { self.layout.operand_bytes() } else { 0 };
        self.queries(consumer).offset(from.into())
    }

    /// Returns the address of a consumer's queries.
    pub fn queries(&self, consumer: Val<'k, u32>) -> Ptr<'k, Shared, u8> {
        self.tiles.plus_bytes(consumer * self.layout.query_bytes())
    }

    pub fn keys(&self) -> Ring<'k> {
        self.ring(0)
    }

    pub fn values(&self) -> Ring<'k> {
        self.ring(1)
    }

    fn ring(&self, index: u32) -> Ring<'k> {
        let Layout { stages, consumers, .. } = self.layout;
        let tiles =
            consumers * self.layout.query_bytes() + index * stages * self.layout.tile_bytes();
        let full = self.barriers.at(2 + 2 * index * stages);
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
    pub fn cursor(self, k: &'k KernelBuilder) -> RingCursor<'k> {
        RingCursor { ring: self, stage: k.var(0u32), round: k.var(0u32) }
    }
}

/// A cursor in a ring.
#[derive(Debug, Clone, Copy)]
pub(super) struct RingCursor<'k> {
    ring: Ring<'k>,
    stage: Var<'k, u32>,
    /// The parity of the number of completed rounds, which is that of the mbarriers' phase.
    round: Var<'k, u32>,
}

impl<'k> RingCursor<'k> {
    /// Returns the address of the current tile.
    pub fn tile(&self) -> Ptr<'k, Shared, u8> {
        self.ring.tiles.plus_bytes(self.stage.get() * self.ring.layout.tile_bytes())
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
        let wraps = next.eq(self.ring.layout.stages);
        self.round.set(wraps.select::<u32>(self.round.get() ^ 1, self.round.get()));
        self.stage.set(wraps.select::<u32>(0, next));
    }

    /// Returns the current tile as the `b` operand of scores: K-major.
    pub fn as_keys(&self) -> Matrix<'k> {
        Matrix::new(self.tile(), 16, 8 * ROW, Swizzle::B128)
    }

    /// Returns the current tile as the `b` operand of results: N-major, with K along the rows.
    pub fn as_values(&self) -> Matrix<'k> {
        Matrix::new(self.tile(), self.ring.layout.chunk_bytes, 8 * ROW, Swizzle::B128)
    }
}
