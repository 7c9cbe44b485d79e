//! Reduction over a row, within a thread group and over its slices.

use super::thread_group::ThreadGroup;
use super::{Context, RowOp, Stats};
use crate::typed::{Global, Memory, Ptr, Shared, Val};

/// The reduction of a row's statistics.
pub(super) struct Exchange<'k, 'a> {
    pub op: &'a dyn RowOp,
    pub context: Context<'k>,
    pub thread_group: ThreadGroup,
    /// Values per slice in memory: 2 or 4.
    pub slot: u32,
}

impl<'k> Exchange<'k, '_> {
    /// Reduces over the thread group, from the statistics of each warp.
    pub fn thread_group(&self, warp: &Stats<'k>) -> Stats<'k> {
        let (k, thread_group) = (self.context.k, self.thread_group);
        if thread_group.size() <= 32 {
            return warp.clone();
        }
        let slots = thread_group.warps() * thread_group.blocks;
        let all = k.shared::<f32>(slots * self.slot, 16);
        if thread_group.blocks > 1 {
            self.send_to_cluster(all, warp);
        } else {
            let own = all.at(k.warp() * self.slot);
            k.when(k.lane().equals(0), || self.put(own, warp));
            k.sync();
        }
        let lanes = slots.min(32);
        let own = all.at((k.lane() & (lanes - 1)) * self.slot);
        let distance = i64::from(32 * self.slot * 4);
        let parts =
            (0..slots.div_ceil(32)).map(|nth| self.get(own.offset(i64::from(nth) * distance)));
        self.op.merge(&self.context, &parts.collect::<Vec<_>>(), lanes)
    }

    /// Sends each warp's statistics to all blocks of the cluster, one block per lane.
    fn send_to_cluster(&self, all: Ptr<'k, Shared, f32>, warp: &Stats<'k>) {
        let (k, thread_group) = (self.context.k, self.thread_group);
        let slot = k.cluster_rank().mul_add(thread_group.warps(), k.warp());
        let slot = all.at(slot * self.slot);
        k.wait_cluster();
        k.when(k.lane().lt(thread_group.blocks), || match self.slot {
            2 => slot.store_in(k.lane(), self.padded::<2>(warp)),
            _ => slot.store_in(k.lane(), self.padded::<4>(warp)),
        });
        k.sync_cluster();
    }

    /// Stores the statistics of the thread group in global memory.
    pub fn store_partial(&self, at: Ptr<'k, Global, f32>, stats: &Stats<'k>) {
        let k = self.context.k;
        k.when(k.thread_id().equals(0), || self.put(at, stats));
    }

    /// Returns the statistics of a row from those of its slices in global memory.
    pub fn load_partials(&self, slots: Ptr<'k, Global, f32>, parts: Val<'k, u32>) -> Stats<'k> {
        let k = self.context.k;
        let sums: Vec<_> = self.op.nothing().iter().map(|number| k.var(*number)).collect();
        let now = || sums.iter().map(|sum| sum.get()).collect::<Stats<'k>>();
        k.for_range(k.lane(), parts, 32, |part| {
            let next = self.get(slots.at(part * self.slot));
            let merged = self.op.merge(&self.context, &[now(), next], 1);
            sums.iter().zip(merged).for_each(|(sum, value)| sum.set(value));
        });
        self.op.merge(&self.context, &[now()], 32)
    }

    fn put<S: Memory>(&self, at: Ptr<'k, S, f32>, stats: &Stats<'k>) {
        match self.slot {
            2 => at.store_vector(self.padded::<2>(stats)),
            _ => at.store_vector(self.padded::<4>(stats)),
        }
    }

    fn get<S: Memory>(&self, at: Ptr<'k, S, f32>) -> Stats<'k> {
        let mut numbers: Stats<'k> = match self.slot {
            2 => at.load_vector::<2>().into(),
            _ => at.load_vector::<4>().into(),
        };
        numbers.truncate(self.op.nothing().len());
        numbers
    }

    fn padded<const N: usize>(&self, stats: &Stats<'k>) -> [Val<'k, f32>; N] {
        std::array::from_fn(|nth| stats.get(nth).copied().unwrap_or(stats[0]))
    }
}
