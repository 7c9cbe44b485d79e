//! The producer threads, one per operand, which issue the TMA loads. With a thread of its own, one
//! operand can be loaded while the preceding launch still computes the other.

use super::pipeline::Ring;
use super::schedule::{Schedule, WorkItem};
use super::variant::{GROUP_ROWS, Major, PdlPrefetch, ROW_BYTES, Variant};
use crate::typed::hopper::MBarrier;
use crate::typed::{KernelBuilder, Policy, Ptr, Shared, Val};

/// Elements along M or N per TMA load of an M-major or N-major operand.
const SLAB: u32 = GROUP_ROWS;

/// The operands: tensor maps, and whether they are batched.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operands<'k> {
    a: Val<'k, u64>,
    b: Val<'k, u64>,
    a_batched: Val<'k, u32>,
    b_batched: Val<'k, u32>,
    /// Matrices per term.
    a_matrices: Val<'k, u32>,
    b_matrices: Val<'k, u32>,
}

/// The TMA loads of an operand into a stage.
struct TileLoad<'k> {
    to: Ptr<'k, Shared, u8>,
    k_index: Val<'k, u32>,
    full: MBarrier<'k>,
    /// The L2 eviction policy of data that is read once.
    policy: Option<Policy<'k>>,
}

impl<'k> Operands<'k> {
    /// Declares the parameters.
    pub(super) fn new(k: &'k KernelBuilder) -> Self {
        Self {
            a: k.tensor_map_param("a"),
            b: k.tensor_map_param("b"),
            a_batched: k.scalar_param("a_batched"),
            b_batched: k.scalar_param("b_batched"),
            a_matrices: k.scalar_param("a_matrices"),
            b_matrices: k.scalar_param("b_matrices"),
        }
    }

    /// Prefetches the tensor maps.
    pub(super) fn prefetch(&self, k: &KernelBuilder) {
        k.prefetch_tensor_map(self.a);
        k.prefetch_tensor_map(self.b);
    }
}

/// State shared by both producer threads.
pub(super) struct Producer<'k> {
    pub(super) k: &'k KernelBuilder,
    pub(super) variant: Variant,
    pub(super) memory: Ptr<'k, Shared, u8>,
    pub(super) schedule: Schedule<'k>,
    pub(super) operands: Operands<'k>,
}

impl<'k> Producer<'k> {
    /// Writes the code of the thread that loads `a`; it announces the bytes of both operands.
    pub(super) fn load_a(&self) {
        let Self { variant, operands, .. } = self;
        self.wait_for_predecessor(variant.pdl == PdlPrefetch::A);
        let policy = variant.streamed.a.then(|| self.k.evict_first());
        self.for_each_stage(operands.a_batched, |ring, item, matrix, k_index| {
            let full = ring.wait_empty_and_expect();
            for nth in 0..variant.terms {
                let to = ring.stage().offset((nth * variant.a_term_bytes()).into());
                let matrix = matrix + operands.a_matrices * nth;
                let load = TileLoad { to, k_index, full, policy };
                load.load_own_tile(variant.a, variant.tile.rows(), operands.a, item.row, matrix);
            }
        });
    }

    /// Writes the code of the thread that loads `b`.
    pub(super) fn load_b(&self) {
        let Self { variant, operands, schedule, .. } = self;
        self.wait_for_predecessor(variant.pdl == PdlPrefetch::B);
        let policy = variant.streamed.b.then(|| self.k.evict_first());
        self.for_each_stage(operands.b_batched, |ring, item, matrix, k_index| {
            let full = ring.wait_empty();
            for nth in 0..variant.terms {
                let to =
                    ring.stage().offset((variant.a_bytes() + nth * variant.b_term_bytes()).into());
                let matrix = matrix + operands.b_matrices * nth;
                let load = TileLoad { to, k_index, full, policy };
                load.load_shared_tile(variant, schedule, operands.b, item, matrix);
            }
        });
    }

    /// Waits for the preceding launch (`griddepcontrol.wait`), unless the operand may be
    /// prefetched.
    fn wait_for_predecessor(&self, prefetched: bool) {
        if !prefetched {
            self.k.pdl_wait();
            self.k.pdl_launch_dependents();
        }
    }

    /// Writes the loop over the stages of each work item. `load` receives the ring, the work item,
    /// the index of the matrix, and the first index along K.
    fn for_each_stage(
        &self,
        batched: Val<'k, u32>,
        load: impl FnOnce(&Ring<'k>, &WorkItem<'_>, Val<'_, u32>, Val<'k, u32>),
    ) {
        let ring = Ring::for_producer(self.k, self.variant, self.memory);
        self.schedule.for_each(|item| {
            let matrix = item.batch * batched;
            self.k.for_range(item.k_tile_start, item.k_tile_end, 1, |nth| {
                load(&ring, &item, matrix, nth * self.variant.k_dim());
                ring.advance();
            });
        });
    }
}

impl<'k> TileLoad<'k> {
    /// Loads a tile that this block does not share.
    fn load_own_tile(
        &self,
        major: Major,
        extent: u32,
        map: Val<'k, u64>,
        first: Val<'k, u32>,
        batch: Val<'k, u32>,
    ) {
        match major {
            Major::K => self.issue(self.to, map, [self.k_index, first, batch]),
            Major::Mn => (0..extent / SLAB).for_each(|slab| {
                let to = self.to.offset((slab * SLAB * ROW_BYTES).into());
                self.issue(to, map, [first + slab * SLAB, self.k_index, batch]);
            }),
        }
    }

    /// Issues one TMA load.
    fn issue(&self, to: Ptr<'k, Shared, u8>, map: Val<'k, u64>, at: [Val<'k, u32>; 3]) {
        let k = map.builder();
        match self.policy {
            None => k.tma_load(to, map, at, self.full),
            Some(policy) => k.tma_load_with_policy(policy, to, map, at, self.full),
        }
    }

    /// Loads a tile of `b`, which the blocks of a cluster share: each block multicasts its part.
    fn load_shared_tile(
        &self,
        variant: &Variant,
        schedule: &Schedule<'k>,
        map: Val<'k, u64>,
        item: &WorkItem<'k>,
        batch: Val<'k, u32>,
    ) {
        let Variant { tile, b: major, .. } = *variant;
        if tile.cluster_m == 1 {
            return self.load_own_tile(major, tile.columns, map, item.column, batch);
        }
        let (k, rank) = (batch.builder(), schedule.rank());
        let all_blocks = k.constant((1u32 << tile.cluster_m) - 1).convert::<u16>("");
        let block_columns = tile.columns / tile.cluster_m;
        match major {
            Major::K => {
                let to = self.to.plus_bytes(rank * (block_columns * ROW_BYTES));
                let at = [self.k_index, item.column + rank * block_columns, batch];
                k.tma_load_multicast(to, map, at, self.full, all_blocks);
            }
            Major::Mn => {
                let block_k = SLAB / tile.cluster_m;
                (0..tile.columns / SLAB).for_each(|slab| {
                    let to = self.to.offset((slab * SLAB * ROW_BYTES).into());
                    let to = to.plus_bytes(rank * (block_k * ROW_BYTES));
                    let at = [item.column + slab * SLAB, self.k_index + rank * block_k, batch];
                    k.tma_load_multicast(to, map, at, self.full, all_blocks);
                });
            }
        }
    }
}

/// Returns the TMA box of `a`, in elements: the contiguous dimension, then the other one.
pub(super) const fn a_box(variant: &Variant) -> [u32; 2] {
    match variant.a {
        Major::K => [variant.k_dim(), variant.tile.rows()],
        Major::Mn => [SLAB, variant.k_dim()],
    }
}

/// Returns the TMA box of `b`, in elements: the contiguous dimension, then the other one.
pub(super) const fn b_box(variant: &Variant) -> [u32; 2] {
    let Variant { tile, .. } = variant;
    match variant.b {
        Major::K => [variant.k_dim(), tile.columns / tile.cluster_m],
        Major::Mn => [SLAB, variant.k_dim() / tile.cluster_m],
    }
}
