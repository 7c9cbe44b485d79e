//! Split-K over a cluster: each block accumulates a slice of K. The accumulators are reduced
//! through distributed shared memory, always in the same order.
//!
//! For small tiles every thread sends each block its share of the accumulators, from registers with
//! `st.async`, to a buffer whose mbarrier counts the bytes. In the receiving block, the thread with
//! the same index adds the shares up. Unlike a cluster barrier, this needs no memory ordering over
//! the whole cluster. For large tiles, blocks store their accumulators in their own shared memory,
//! and each block reads its share from all blocks.

use super::schedule::{Schedule, WorkItem};
use super::store::{Destination, Results};
use super::variant::{BiasAxis, GROUP_ROWS, Store, Variant, WARP_ROWS, WARPGROUP};
use crate::kernels::gemm::Layout;
use crate::kernels::gemm::memory::{load_element, store_element, to_u64};
use crate::typed::hopper::{Accumulators, MBarrier};
use crate::typed::{KernelBuilder, Ptr, Shared, Val};

/// The named barrier of the consumer warpgroups.
const CONSUMER_BARRIER: u32 = 1;

/// Row pitch in shared memory: neighbours along rows and columns are in different banks.
const fn pitch(variant: &Variant) -> u32 {
    variant.tile.columns + 1
}

/// The accumulators that a thread receives from each block: their number, and how many of them are
/// contiguous in the buffer.
struct Share {
    accumulators: u32,
    width: u32,
}

impl Share {
    const fn new(variant: &Variant) -> Self {
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
    k: &'k KernelBuilder,
    variant: Variant,
    memory: Ptr<'k, Shared, f32>,
    full: MBarrier<'k>,
}

impl<'k> ReceiveBuffer<'k> {
    pub(super) fn new(k: &'k KernelBuilder, variant: Variant, memory: Ptr<'k, Shared, u8>) -> Self {
        let full = MBarrier::at(memory.offset(variant.receive_barrier_at().into()).cast());
        let memory = memory.offset(variant.staging_at().into()).cast();
        Self { k, variant, memory, full }
    }

    /// Initialises the buffer's mbarrier; executed by one thread.
    pub(super) fn init(&self) {
        self.full.init(1);
    }

    /// Announces the bytes that will arrive; executed by the same thread.
    pub(super) fn expect(&self) {
        self.full.arrive_expect_tx(self.variant.receive_bytes());
    }

    /// Returns the address of the vector that a block sends to this thread.
    fn vector_address(&self, block: Val<'k, u32>, vector: Val<'k, u32>) -> Ptr<'k, Shared, f32> {
        let (share, threads) =
            (Share::new(&self.variant), self.variant.tile.warpgroups * WARPGROUP);
        let nth = (block * share.vectors() + vector) * threads + self.k.thread_id();
        self.memory.at(nth * share.width)
    }

    /// Sends all blocks their shares. All blocks must be running, with their mbarriers initialised.
    fn send(&self, accumulators: &Accumulators<'k>, rank: Val<'k, u32>) {
        let share = Share::new(&self.variant);
        for vector in 0..share.vectors() {
            let address = self.vector_address(rank, self.k.constant(vector));
            for block in 0..self.variant.tile.split_k {
                let first = block * share.accumulators + vector * share.width;
                let values = (first..first + share.width).map(|nth| accumulators.get(nth as usize));
                address.send(block, &values.collect::<Vec<_>>(), self.full);
            }
        }
    }

    /// Returns a vector, summed over the blocks.
    fn sum_over_blocks(&self, vector: Val<'k, u32>) -> Vec<Val<'k, f32>> {
        let from = |block| self.vector_address(self.k.constant(block), vector);
        let all =
            (0..self.variant.tile.split_k).map(|block| match Share::new(&self.variant).width {
                4 => from(block).load_vector::<4>().to_vec(),
                2 => from(block).load_vector::<2>().to_vec(),
                _ => vec![from(block).load()],
            });
        let add = |accumulators: Vec<Val<'k, f32>>, others: Vec<Val<'k, f32>>| {
            accumulators.into_iter().zip(others).map(|(a, b)| a + b).collect()
        };
        all.collect::<Vec<_>>().into_iter().reduce(add).expect("a cluster has a block")
    }
}

/// Writes the code of the threads that are not consumers: they take part in the cluster barriers of
/// the consumers.
pub(super) fn wait_for_peers(k: &KernelBuilder, variant: Variant) {
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
    k: &KernelBuilder,
    memory: Ptr<'_, Shared, u8>,
    schedule: &Schedule<'_>,
    results: &Results<'_>,
    accumulators: &Accumulators<'_>,
    item: &WorkItem<'_>,
) {
    let variant = results.variant;
    if variant.stores_directly() {
        store_directly(k, results, item, accumulators);
    } else if variant.has_receive_buffer() {
        k.sync_warp();
        k.wait_cluster();
        exchange_and_store(
            &ReceiveBuffer::new(k, variant, memory),
            schedule.rank(),
            results,
            accumulators,
            item,
        );
    } else {
        share_accumulators(k, variant, memory, accumulators);
        sync_blocks(k, variant);
        reduce_and_store(k, memory, schedule.rank(), results, item);
        if variant.tile.split_k > 1 {
            // The buffer must stay alive until the other blocks have read it. Nothing was written
            // for them, so that a release in cluster scope is not needed; it would be slow.
            k.fence_acq_rel_cta();
            k.sync_warp();
            k.arrive_cluster_relaxed();
            k.wait_cluster();
        }
    }
}

/// Results that a thread stores at a time, after it has loaded what is added to them.
const STORED_TOGETHER: usize = 8;

/// Stores the results of a block that does not split K, from registers.
fn store_directly(
    k: &KernelBuilder,
    results: &Results<'_>,
    item: &WorkItem<'_>,
    accumulators: &Accumulators<'_>,
) {
    let nths: Vec<u32> = (0..accumulators.columns() / 2).collect();
    for nths in nths.chunks(STORED_TOGETHER) {
        let positions = nths.iter().map(|nth| position_of(k, k.constant(*nth).copied()));
        let sums = nths.iter().map(|nth| accumulators.get(*nth as usize));
        let (positions, sums): (Vec<_>, Vec<_>) = (positions.collect(), sums.collect());
        store_results(results, item, &positions, &sums);
    }
}

/// Sends the accumulators, and stores the sums that arrive.
fn exchange_and_store<'k>(
    receive: &ReceiveBuffer<'k>,
    rank: Val<'k, u32>,
    results: &Results<'k>,
    accumulators: &Accumulators<'k>,
    item: &WorkItem<'k>,
) {
    let (k, share) = (receive.k, Share::new(&results.variant));
    receive.send(accumulators, rank);
    receive.full.wait(0);
    k.for_range(0, share.vectors(), 1, |vector| {
        let totals = receive.sum_over_blocks(vector);
        let first = rank * share.accumulators + vector * share.width;
        let positions = (0..share.width).map(|nth| position_of(k, first + nth));
        store_results(results, item, &positions.collect::<Vec<_>>(), &totals);
    });
}

/// Stores the accumulators over the pipeline stages, once all MMAs are complete.
fn share_accumulators(
    k: &KernelBuilder,
    variant: Variant,
    memory: Ptr<'_, Shared, u8>,
    accumulators: &Accumulators<'_>,
) {
    k.sync_named(CONSUMER_BARRIER, variant.tile.warpgroups * WARPGROUP);
    let row = first_row(k);
    let to = memory.cast::<f32>().at(row * pitch(&variant) + (k.lane() & 3) * 2);
    for octet in 0..accumulators.columns() / 8 {
        for nth in 0..4 {
            let at = octet * 8 + nth % 2 + nth / 2 * 8 * pitch(&variant);
            to.at(at).store(accumulators.get((4 * octet + nth) as usize));
        }
    }
}

/// Waits until all blocks have stored their accumulators in shared memory.
fn sync_blocks(k: &KernelBuilder, variant: Variant) {
    match variant.tile.split_k {
        1 => k.sync_named(CONSUMER_BARRIER, variant.tile.warpgroups * WARPGROUP),
        _ => k.sync_cluster(),
    }
}

/// Adds up the accumulators of all blocks for this block's part of the tile, and stores the
/// results.
fn reduce_and_store<'k>(
    k: &'k KernelBuilder,
    memory: Ptr<'k, Shared, u8>,
    rank: Val<'k, u32>,
    results: &Results<'k>,
    item: &WorkItem<'k>,
) {
    let Variant { tile, .. } = results.variant;
    let threads = tile.warpgroups * WARPGROUP;
    let (first, step) = (rank * threads + k.thread_id(), threads * tile.split_k);
    // Distributed shared memory has a high latency: several loads are in flight before the first
    // store.
    let elements_per_thread = tile.columns / (2 * tile.split_k);
    let loads_in_flight = [8, 4, 2]
        .into_iter()
        .find(|loads_in_flight| elements_per_thread % loads_in_flight == 0)
        .unwrap_or(1);
    k.for_range(first, tile.rows() * tile.columns, step * loads_in_flight, |nth| {
        let positions =
            (0..loads_in_flight).map(|other| tile_position(&results.variant, nth + step * other));
        let positions: Vec<_> = positions.collect();
        let accumulators = positions.iter().map(|[row, column]| {
            let at = *row * pitch(&results.variant) + *column;
            sum_over_blocks(memory.cast::<f32>().at(at), tile.split_k)
        });
        let accumulators: Vec<_> = accumulators.collect();
        store_results(results, item, &positions, &accumulators);
    });
}

/// Returns row and column of element `nth` of the tile, counted along the contiguous dimension of
/// the result.
fn tile_position<'k>(variant: &Variant, nth: Val<'k, u32>) -> [Val<'k, u32>; 2] {
    match variant.store {
        Store::Cluster(Layout::ColMajor) => [nth % variant.tile.rows(), nth / variant.tile.rows()],
        _ => [nth / variant.tile.columns, nth % variant.tile.columns],
    }
}

/// Returns the sum over the blocks of the cluster.
fn sum_over_blocks<'k>(at: Ptr<'k, Shared, f32>, split_k: u32) -> Val<'k, f32> {
    if split_k == 1 {
        return at.load();
    }
    let shares: Vec<_> = (0..split_k).map(|block| at.load_in(block)).collect();
    shares.into_iter().reduce(|sum, share| sum + share).expect("a cluster has a block")
}

/// Returns the first row of the tile whose accumulators the thread holds.
fn first_row(k: &KernelBuilder) -> Val<'_, u32> {
    let warp = k.warp();
    (warp >> 2) * GROUP_ROWS + (warp & 3) * WARP_ROWS + (k.lane() >> 2)
}

/// Returns row and column in the tile of the thread's `nth` accumulator.
fn position_of<'k>(k: &'k KernelBuilder, nth: Val<'k, u32>) -> [Val<'k, u32>; 2] {
    let row = first_row(k) + ((nth & 2) << 2);
    let column = ((nth >> 2) << 3) + ((k.lane() & 3) << 1) + (nth & 1);
    [row, column]
}

/// Stores the results at rows and columns of the tile. What is added to them is loaded before the
/// first store, since a load that follows a store waits for it.
fn store_results<'k>(
    results: &Results<'k>,
    item: &WorkItem<'k>,
    positions: &[[Val<'k, u32>; 2]],
    sums: &[Val<'k, f32>],
) {
    let (Destination::Memory(out_memory), Store::Cluster(order)) =
        (results.destination, results.variant.store)
    else {
        return;
    };
    let (k, Variant { output, epilogue, .. }) = (results.k, results.variant);
    let load = |[row, column]: &[Val<'k, u32>; 2]| {
        let (row, column) = (item.row + *row, item.column + *column);
        let (line, within) = if order == Layout::RowMajor { (row, column) } else { (column, row) };
        let element =
            to_u64(item.result) * out_memory.stride + to_u64(line) * out_memory.ld + to_u64(within);
        let to = out_memory.base.at_wide(element * u64::from(output.size()));
        let is_inside = row.lt(results.m) & column.lt(results.n);
        let load_inside = |load: &dyn Fn() -> Val<'k, f32>| {
            let loaded = k.var::<f32>(0.0);
            k.if_then(is_inside, || loaded.set(load()));
            loaded.get()
        };
        let load_bias = || results.bias_of(row, column).expect("the epilogue has a bias");
        let bias = (epilogue.bias != BiasAxis::None).then(|| load_inside(&load_bias));
        let previous = epilogue.reads_out.then(|| load_inside(&|| load_element(to, output, false)));
        (to, is_inside, bias, previous)
    };
    let loaded: Vec<_> = positions.iter().map(load).collect();
    for ((to, is_inside, bias, previous), sum) in loaded.into_iter().zip(sums) {
        k.if_then(is_inside, || {
            let value = results.scalars.finish(epilogue.activation, *sum, previous, bias);
            store_element(to, output, value);
        });
    }
}
