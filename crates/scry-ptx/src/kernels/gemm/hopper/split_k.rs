//! Split-K over a cluster: each block accumulates a slice of K; the sums are reduced through
//! distributed shared memory, always in the same order.
//!
//! For small tiles every thread sends each block its share of the accumulators, from registers with
//! `st.async` to a buffer whose mbarrier counts the bytes, and the thread with the same index adds
//! them up: that needs no memory ordering over the whole cluster, unlike a cluster barrier. For
//! large tiles blocks leave their accumulators in shared memory, and each reads its share of all of
//! them.

use super::schedule::{Schedule, WorkItem};
use super::store::{Place, Results};
use super::variant::{GROUP_ROWS, Store, Variant, WARP_ROWS, WARPGROUP};
use crate::kernels::gemm::Layout;
use crate::kernels::gemm::memory::{load_number, store_number, wide};
use crate::typed::hopper::{Accumulators, MBarrier};
use crate::typed::{Code, Ptr, Shared, Val};

/// The named barrier of the consumer warpgroups.
const BARRIER: u32 = 1;

/// Row pitch in shared memory: neighbours along rows and columns are in different banks.
const fn pitch(variant: &Variant) -> u32 {
    variant.tile.columns + 1
}

/// Sums that a thread receives from each block, and how many of them are contiguous.
struct Share {
    accumulators: u32,
    width: u32,
}

impl Share {
    const fn of(variant: &Variant) -> Self {
        let accumulators = variant.tile.columns / (2 * variant.tile.split_k);
        let width = if accumulators.is_multiple_of(4) { 4 } else { 1 + (accumulators + 1) % 2 };
        Self { accumulators, width }
    }

    const fn vectors(&self) -> u32 {
        self.accumulators / self.width
    }
}

/// The receive buffer of a block: for each sending block, the vectors of its threads.
#[derive(Clone, Copy)]
pub(super) struct ReceiveBuffer<'k> {
    k: &'k Code,
    variant: Variant,
    memory: Ptr<'k, Shared, f32>,
    full: MBarrier<'k>,
}

impl<'k> ReceiveBuffer<'k> {
    pub(super) fn new(k: &'k Code, variant: Variant, memory: Ptr<'k, Shared, u8>) -> Self {
        let full = MBarrier::at(memory.offset(variant.receive_barrier_at().into()).cast());
        let memory = memory.offset(variant.staging_at().into()).cast();
        Self { k, variant, memory, full }
    }

    /// Initialises its mbarrier; executed by one thread.
    pub(super) fn init(&self) {
        self.full.init(1);
    }

    /// Announces the bytes that will arrive; executed by the same thread.
    pub(super) fn expect(&self) {
        self.full.arrive_expect_tx(self.variant.receive_bytes());
    }

    /// Returns the address of a block's vector for this thread.
    fn place(&self, block: Val<'k, u32>, vector: Val<'k, u32>) -> Ptr<'k, Shared, f32> {
        let (share, threads) = (Share::of(&self.variant), self.variant.tile.groups * WARPGROUP);
        let nth = (block * share.vectors() + vector) * threads + self.k.thread_id();
        self.memory.at(nth * share.width)
    }

    /// Sends all blocks their shares. All blocks must be running, with their mbarriers initialised.
    fn send(&self, accumulators: &Accumulators<'k>, rank: Val<'k, u32>) {
        let share = Share::of(&self.variant);
        for vector in 0..share.vectors() {
            let place = self.place(rank, self.k.constant(vector));
            for block in 0..self.variant.tile.split_k {
                let first = block * share.accumulators + vector * share.width;
                let values = (first..first + share.width).map(|nth| accumulators.get(nth as usize));
                place.send(block, &values.collect::<Vec<_>>(), self.full);
            }
        }
    }

    /// Returns a vector, summed over the blocks.
    fn total(&self, vector: Val<'k, u32>) -> Vec<Val<'k, f32>> {
        let from = |block| self.place(self.k.constant(block), vector);
        let all =
            (0..self.variant.tile.split_k).map(|block| match Share::of(&self.variant).width {
                4 => from(block).load_vector::<4>().to_vec(),
                2 => from(block).load_vector::<2>().to_vec(),
                _ => vec![from(block).load()],
            });
        let add = |accumulators: Vec<Val<'k, f32>>, more: Vec<Val<'k, f32>>| {
            accumulators.into_iter().zip(more).map(|(a, b)| a + b).collect()
        };
        all.collect::<Vec<_>>().into_iter().reduce(add).expect("a cluster has a block")
    }
}

/// Writes the code of the threads that are not consumers.
pub(super) fn wait_for_peers(k: &Code, variant: Variant) {
    if variant.has_receive_buffer() {
        k.wait_cluster();
    } else if variant.tile.split_k > 1 {
        k.sync_cluster();
        k.arrive_cluster_relaxed();
        k.wait_cluster();
    }
}

/// Writes the code of the consumers.
pub(super) fn write(
    k: &Code,
    memory: Ptr<'_, Shared, u8>,
    schedule: &Schedule<'_>,
    results: &Results<'_>,
    accumulators: &Accumulators<'_>,
    item: &WorkItem<'_>,
) {
    let variant = results.variant;
    if variant.is_alone() {
        write_own(k, results, item, accumulators);
    } else if variant.has_receive_buffer() {
        k.sync_warp();
        k.wait_cluster();
        write_sent(
            &ReceiveBuffer::new(k, variant, memory),
            schedule.rank(),
            results,
            accumulators,
            item,
        );
    } else {
        share(k, variant, memory, accumulators);
        sync_blocks(k, variant);
        write_read(k, memory, schedule.rank(), results, item);
        if variant.tile.split_k > 1 {
            // The buffer must stay alive until the other blocks have read it. A release and acquire
            // of writes is not needed and would be slow.
            k.finish_reads();
            k.sync_warp();
            k.arrive_cluster_relaxed();
            k.wait_cluster();
        }
    }
}

/// Stores the results of a block that is alone in its cluster.
fn write_own(
    k: &Code,
    results: &Results<'_>,
    item: &WorkItem<'_>,
    accumulators: &Accumulators<'_>,
) {
    for nth in 0..accumulators.columns() / 2 {
        write_nth(k, results, item, k.constant(nth), accumulators.get(nth as usize));
    }
}

/// Sends the accumulators, and stores the sums that arrive.
fn write_sent<'k>(
    receive: &ReceiveBuffer<'k>,
    rank: Val<'k, u32>,
    results: &Results<'k>,
    accumulators: &Accumulators<'k>,
    item: &WorkItem<'k>,
) {
    let (k, share) = (receive.k, Share::of(&results.variant));
    receive.send(accumulators, rank);
    receive.full.wait(0);
    k.for_range(0, share.vectors(), 1, |vector| {
        let totals = receive.total(vector);
        let first = rank * share.accumulators + vector * share.width;
        for (nth, sum) in (0..).zip(totals) {
            write_nth(k, results, item, first + nth, sum);
        }
    });
}

/// Stores the accumulators over the pipeline stages, once all MMAs are complete.
fn share(k: &Code, variant: Variant, memory: Ptr<'_, Shared, u8>, accumulators: &Accumulators<'_>) {
    k.sync_named(BARRIER, variant.tile.groups * WARPGROUP);
    let row = first_row(k);
    let to = memory.cast::<f32>().at(row * pitch(&variant) + (k.lane() & 3) * 2);
    for eight in 0..accumulators.columns() / 8 {
        for nth in 0..4 {
            let at = eight * 8 + nth % 2 + nth / 2 * 8 * pitch(&variant);
            to.at(at).store(accumulators.get((4 * eight + nth) as usize));
        }
    }
}

/// Waits until all blocks have stored theirs.
fn sync_blocks(k: &Code, variant: Variant) {
    match variant.tile.split_k {
        1 => k.sync_named(BARRIER, variant.tile.groups * WARPGROUP),
        _ => k.sync_cluster(),
    }
}

/// Reads the shares of all blocks, and stores this block's part of the tile.
fn write_read<'k>(
    k: &'k Code,
    memory: Ptr<'k, Shared, u8>,
    rank: Val<'k, u32>,
    results: &Results<'k>,
    item: &WorkItem<'k>,
) {
    let Variant { tile, .. } = results.variant;
    let threads = tile.groups * WARPGROUP;
    let (first, step) = (rank * threads + k.thread_id(), threads * tile.split_k);
    // Distributed shared memory has a high latency: several loads are in flight before the first
    // store.
    let each = tile.columns / (2 * tile.split_k);
    let batch = [8, 4, 2].into_iter().find(|batch| each % batch == 0).unwrap_or(1);
    k.for_range(first, tile.rows() * tile.columns, step * batch, |nth| {
        let places = (0..batch).map(|other| within_tile(&results.variant, nth + step * other));
        let places: Vec<_> = places.collect();
        let accumulators = places.iter().map(|[row, column]| {
            let at = *row * pitch(&results.variant) + *column;
            total(memory.cast::<f32>().at(at), tile.split_k)
        });
        let accumulators: Vec<_> = accumulators.collect();
        for (place, sum) in places.into_iter().zip(accumulators) {
            write_one(results, item, place, sum);
        }
    });
}

/// Returns row and column of an element, counted in the layout of the result.
fn within_tile<'k>(variant: &Variant, nth: Val<'k, u32>) -> [Val<'k, u32>; 2] {
    match variant.store {
        Store::Cluster(Layout::ColMajor) => [nth % variant.tile.rows(), nth / variant.tile.rows()],
        _ => [nth / variant.tile.columns, nth % variant.tile.columns],
    }
}

/// Returns the sum over the blocks of the cluster.
fn total<'k>(at: Ptr<'k, Shared, f32>, split_k: u32) -> Val<'k, f32> {
    if split_k == 1 {
        return at.load();
    }
    let shares: Vec<_> = (0..split_k).map(|block| at.load_in(block)).collect();
    shares.into_iter().reduce(|sum, share| sum + share).expect("a cluster has a block")
}

/// Returns the first row of the tile whose accumulators the thread holds.
fn first_row(k: &Code) -> Val<'_, u32> {
    let warp = k.warp();
    (warp >> 2) * GROUP_ROWS + (warp & 3) * WARP_ROWS + (k.lane() >> 2)
}

/// Stores the result of the thread's `nth` accumulator.
fn write_nth<'k>(
    k: &'k Code,
    results: &Results<'k>,
    item: &WorkItem<'k>,
    nth: Val<'k, u32>,
    sum: Val<'k, f32>,
) {
    let row = first_row(k) + ((nth & 2) << 2);
    let column = ((nth >> 2) << 3) + ((k.lane() & 3) << 1) + (nth & 1);
    write_one(results, item, [row, column], sum);
}

/// Stores the result at a row and column of the tile.
fn write_one<'k>(
    results: &Results<'k>,
    item: &WorkItem<'k>,
    [row, column]: [Val<'k, u32>; 2],
    sum: Val<'k, f32>,
) {
    let (Place::Memory(lines), Store::Cluster(order)) = (results.place, results.variant.store)
    else {
        return;
    };
    let Variant { output, finish, .. } = results.variant;
    let (row, column) = (item.row + row, item.column + column);
    let (line, within) = if order == Layout::RowMajor { (row, column) } else { (column, row) };
    let element = wide(item.result) * lines.stride + wide(line) * lines.ld + wide(within);
    let to = lines.start.at_wide(element * u64::from(output.size()));
    results.k.when(row.lt(results.m) & column.lt(results.n), || {
        let bias = results.bias_of(row, column);
        let was = finish.reads.then(|| load_number(to, output, false));
        let value = results.scalars.finish(finish.activation, sum, was, bias);
        store_number(to, output, value);
    });
}
