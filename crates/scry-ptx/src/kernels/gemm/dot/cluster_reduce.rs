//! Reduction over a cluster: its blocks send their sums to the first block's shared memory.

use crate::typed::hopper::MBarrier;
use crate::typed::{Code, Ptr, Shared, Val};

/// A buffer in the first block's shared memory for the partial sums of each block of the cluster.
pub(super) struct ReceiveBuffer<'k> {
    k: &'k Code,
    split_k: u32,
    values: u32,
    memory: Ptr<'k, Shared, f32>,
    full: MBarrier<'k>,
}

impl<'k> ReceiveBuffer<'k> {
    /// Initialises it. [`Code::wait_cluster`] must follow before the first [`Self::send`].
    pub(super) fn new(k: &'k Code, split_k: u32, values: u32) -> Self {
        let memory = k.shared::<f32>(split_k * values, 16);
        let full = MBarrier::at(k.shared::<u64>(1, 8));
        k.when(k.thread_id().equals(0), || {
            full.init(1);
            k.fence_mbarrier_init();
            full.arrive_expect_tx(4 * split_k * values);
        });
        k.sync_warp();
        k.arrive_cluster_relaxed();
        Self { k, split_k, values, memory, full }
    }

    /// Sends a sum of this block to the first one.
    pub(super) fn send(&self, nth: Val<'k, u32>, sum: Val<'k, f32>) {
        let place = self.memory.at(self.k.cluster_rank() * self.values + nth);
        place.send(0, &[sum], self.full);
    }

    /// Writes the code that the first block runs when all sums have arrived.
    pub(super) fn at_first(&self, write: impl FnOnce()) {
        self.k.when(self.k.cluster_rank().equals(0), || {
            self.full.wait(0);
            write();
        });
    }

    /// Returns the sum over all blocks.
    pub(super) fn total(&self, nth: Val<'k, u32>) -> Val<'k, f32> {
        let from = |block: u32| self.memory.at(nth).at(block * self.values).load();
        (1..self.split_k).fold(from(0), |sum, block| sum + from(block))
    }
}
