//! Reduction of statistics over a row: over the warps of a thread group, which exchange them, and
//! over slices.

use super::thread_group::ThreadGroup;
use super::{Context, RowOp, Stats};
use crate::typed::{Global, Memory, Ptr, Shared, Val};

/// The reduction of a row's statistics.
pub(super) struct RowReduction<'k, 'a> {
    pub op: &'a dyn RowOp,
    pub context: Context<'k>,
    pub thread_group: ThreadGroup,
    /// Values per entry of statistics in memory: 2 or 4, of which some may be padding.
    pub stats_len: u32,
}

impl<'k> RowReduction<'k, '_> {
    /// Reduces over the thread group, from the statistics of each warp.
    pub fn reduce_group(&self, warp: &Stats<'k>) -> Stats<'k> {
        let (k, thread_group) = (self.context.k, self.thread_group);
        if thread_group.size() <= 32 {
            return warp.clone();
        }
        let slots = thread_group.warps() * thread_group.blocks;
        let memory = k.shared::<f32>(slots * self.stats_len, 16);
        if thread_group.blocks > 1 {
            self.send_to_cluster(memory, warp);
        } else {
            let address = memory.at(k.warp() * self.stats_len);
            k.if_then(k.lane().eq(0), || self.store(address, warp));
            k.sync();
        }
        let lanes = slots.min(32);
        let address = memory.at((k.lane() & (lanes - 1)) * self.stats_len);
        let stride = i64::from(32 * self.stats_len * 4);
        let parts = (0..slots.div_ceil(32))
            .map(|index| self.load(address.offset(i64::from(index) * stride)));
        self.op.merge(&self.context, &parts.collect::<Vec<_>>(), lanes)
    }

    /// Sends each warp's statistics to all blocks of the cluster, one block per lane.
    fn send_to_cluster(&self, memory: Ptr<'k, Shared, f32>, warp: &Stats<'k>) {
        let (k, thread_group) = (self.context.k, self.thread_group);
        let slot = k.cluster_rank().mul_add(thread_group.warps(), k.warp());
        let slot = memory.at(slot * self.stats_len);
        k.wait_cluster();
        k.if_then(k.lane().lt(thread_group.blocks), || match self.stats_len {
            2 => slot.store_in(k.lane(), self.pad::<2>(warp)),
            _ => slot.store_in(k.lane(), self.pad::<4>(warp)),
        });
        k.sync_cluster();
    }

    /// Stores the statistics of the thread group in global memory.
    pub fn store_partial(&self, at: Ptr<'k, Global, f32>, stats: &Stats<'k>) {
        let k = self.context.k;
        k.if_then(k.thread_id().eq(0), || self.store(at, stats));
    }

    /// Returns the statistics of a row from those of its slices in global memory.
    pub fn load_partials(&self, partials: Ptr<'k, Global, f32>, slices: Val<'k, u32>) -> Stats<'k> {
        let k = self.context.k;
        let vars: Vec<_> = self.op.empty_stats().iter().map(|value| k.var(*value)).collect();
        let current = || vars.iter().map(|var| var.get()).collect::<Stats<'k>>();
        k.for_range(k.lane(), slices, 32, |slice| {
            let next = self.load(partials.at(slice * self.stats_len));
            let merged = self.op.merge(&self.context, &[current(), next], 1);
            vars.iter().zip(merged).for_each(|(var, value)| var.set(value));
        });
        self.op.merge(&self.context, &[current()], 32)
    }

    /// Stores statistics, padded.
    fn store<S: Memory>(&self, at: Ptr<'k, S, f32>, stats: &Stats<'k>) {
        match self.stats_len {
            2 => at.store_vector(self.pad::<2>(stats)),
            _ => at.store_vector(self.pad::<4>(stats)),
        }
    }

    /// Loads padded statistics.
    fn load<S: Memory>(&self, at: Ptr<'k, S, f32>) -> Stats<'k> {
        let mut values: Stats<'k> = match self.stats_len {
            2 => at.load_vector::<2>().into(),
            _ => at.load_vector::<4>().into(),
        };
        values.truncate(self.op.empty_stats().len());
        values
    }

    fn pad<const N: usize>(&self, stats: &Stats<'k>) -> [Val<'k, f32>; N] {
        std::array::from_fn(|index| stats.get(index).copied().unwrap_or(stats[0]))
    }
}
