//! The ring of pipeline stages in shared memory, with full and empty barriers between the producer
//! and the consumers.

use super::variant::Variant;
use crate::typed::hopper::MBarrier;
use crate::typed::{KernelBuilder, Ptr, Shared, Val, Var};

/// The pipeline state of one side: producer or consumer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ring<'k> {
    k: &'k KernelBuilder,
    variant: Variant,
    memory: Ptr<'k, Shared, u8>,
    /// Index of the current stage.
    index: Var<'k, u32>,
    /// Parity of the phase that this side waits for.
    parity: Var<'k, u32>,
}

impl<'k> Ring<'k> {
    /// Returns the producer's state; all stages are empty at first.
    pub(super) fn for_producer(
        k: &'k KernelBuilder,
        variant: Variant,
        memory: Ptr<'k, Shared, u8>,
    ) -> Self {
        Self { k, variant, memory, index: k.var(0), parity: k.var(1) }
    }

    /// Returns the consumer's state.
    pub(super) fn for_consumer(
        k: &'k KernelBuilder,
        variant: Variant,
        memory: Ptr<'k, Shared, u8>,
    ) -> Self {
        Self { parity: k.var(0), ..Self::for_producer(k, variant, memory) }
    }

    /// Initialises the barriers: a stage is full when its bytes have arrived, and empty when each
    /// consumer warp of all blocks of the cluster has released it.
    /// [`KernelBuilder::fence_mbarrier_init`] must follow.
    pub(super) fn init(variant: Variant, memory: Ptr<'k, Shared, u8>) {
        let barriers = memory.offset(variant.barriers_at().into()).cast::<u64>();
        let Variant { tile, .. } = variant;
        for stage in 0..variant.stages() {
            MBarrier::at(barriers.at(stage)).init(1);
            MBarrier::at(barriers.at(variant.stages() + stage))
                .init(4 * tile.warpgroups * tile.cluster_m);
        }
    }

    /// Returns the full barrier (`kind` 0) or the empty barrier (`kind` 1) of a stage.
    fn barrier(&self, kind: u32, index: Val<'k, u32>) -> MBarrier<'k> {
        let first = self.variant.barriers_at() + 8 * kind * self.variant.stages();
        MBarrier::at(self.memory.cast::<u64>().at(index).offset(first.into()))
    }

    /// Returns the current stage's index.
    pub(super) fn index(&self) -> Val<'k, u32> {
        self.index.get()
    }

    /// Returns the current stage's memory.
    pub(super) fn stage(&self) -> Ptr<'k, Shared, u8> {
        self.memory.plus_bytes(self.index.get() * self.variant.stage_bytes())
    }

    /// Waits until the current stage is empty, and announces the expected bytes. Returns the
    /// stage's full barrier.
    pub(super) fn wait_empty_and_expect(&self) -> MBarrier<'k> {
        let full = self.wait_empty();
        full.arrive_expect_tx(self.variant.copied_bytes());
        full
    }

    /// Waits until the current stage is empty, and returns its full barrier. Bytes may arrive
    /// before they are announced: the stage is full once all of them are announced and have
    /// arrived.
    pub(super) fn wait_empty(&self) -> MBarrier<'k> {
        self.barrier(1, self.index.get()).wait(self.parity.get());
        self.barrier(0, self.index.get())
    }

    /// Waits until the current stage is full.
    pub(super) fn wait_full(&self) {
        self.barrier(0, self.index.get()).wait(self.parity.get());
    }

    /// Releases stage `index` for the calling warp, in all blocks that fill it.
    pub(super) fn release(&self, index: Val<'k, u32>) {
        let (lane, cluster_m) = (self.k.lane(), self.variant.tile.cluster_m);
        let empty = self.barrier(1, index);
        self.k.if_then(lane.lt(cluster_m), || match cluster_m {
            1 => empty.arrive(),
            _ => empty.arrive_in(lane),
        });
    }

    /// Advances to the next stage.
    pub(super) fn advance(&self) {
        let next = self.index.get() + 1;
        let wraps = next.eq(self.variant.stages());
        self.parity.set(wraps.select(self.parity.get() ^ 1, self.parity.get()));
        self.index.set(wraps.select(0, next));
    }
}
