//! Reduction over a cluster: its blocks send their partial sums to the first block's shared memory.

use crate::typed::hopper::MBarrier;
use crate::typed::{KernelBuilder, Ptr, Shared, Val};

/// A buffer in the first block's shared memory for the partial sums of each block of the cluster.
pub(super) struct ReceiveBuffer<'k> {
    k: &'k KernelBuilder,
    split_k: u32,
    values: u32,
    memory: Ptr<'k, Shared, f32>,
    full: MBarrier<'k>,
}

impl<'k> ReceiveBuffer<'k> {
    /// Declares and initialises the buffer, and announces that this block has done so.
    /// [`KernelBuilder::wait_cluster`] must precede the first [`Self::send`].
    pub(super) fn new(k: &'k KernelBuilder, split_k: u32, values: u32) -> Self {
        let memory = k.shared::<f32>(split_k * values, 16);
        let full = MBarrier::at(k.shared::<u64>(1, 8));
        k.if_then(k.thread_id().eq(0), || {
            full.init(1);
            k.fence_mbarrier_init();
            full.arrive_expect_tx(4 * split_k * values);
        });
        k.sync_warp();
        k.arrive_cluster_relaxed();
        Self { k, split_k, values, memory, full }
    }

    /// Sends partial sum `nth` of this block to the first block.
    pub(super) fn send(&self, nth: Val<'k, u32>, sum: Val<'k, f32>) {
        let slot = self.memory.at(self.k.cluster_rank() * self.values + nth);
        slot.send(0, &[sum], self.full);
    }

    /// Writes code that the first block runs after all sums have arrived.
    pub(super) fn in_first_block(&self, write: impl FnOnce()) {
        self.k.if_then(self.k.cluster_rank().eq(0), || {
            self.full.wait(0);
            write();
        });
    }

    /// Returns partial sum `nth`, summed over all blocks.
    pub(super) fn sum_over_blocks(&self, nth: Val<'k, u32>) -> Val<'k, f32> {
        let from = |block: u32| self.memory.at(nth).at(block * self.values).load();
        (1..self.split_k).fold(from(0), |sum, block| sum + from(block))
    }
}
