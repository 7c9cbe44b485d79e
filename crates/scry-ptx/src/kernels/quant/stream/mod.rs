//! Quantised matrix-vector products from `sm_90` on: weights stream through shared memory.
//!
//! A block is warp-specialised: producer warps fill a ring of pipeline stages with bulk copies
//! (`cp.async.bulk`), and 16 consumer warps empty it. A stage holds 8 spans of 256 weights of 16
//! rows. The consumers are two groups of 8 warps, which process stages alternately, a span per
//! warp. They use int8 MMAs, whose tile has 8 columns: a product with 8 columns needs as much
//! tensor core time as one with 1, and up to 4 columns of activations have two limbs (about 15
//! bits). The first stages are loaded while the block quantises the activations; with PDL, before
//! the preceding launch has finished, which must not write the weights.
//!
//! The kernel is memory-bound: each weight is read once.

mod pipeline;
mod span_mma;

use super::activations::{LimbBuffer, Limbs, Source};
use super::format::{BlockFormat, SPAN};
use super::matvec_shape::{Columns, MatVec};
use super::to_u64;
use crate::kernels::name::Name;
use crate::kernels::{
    BufferParameter, GpuSpec, KernelInterface, LaunchShape, Parameter, PtxKernel,
};
use crate::module::PtxEntry;
use crate::target::Target;
use crate::typed::hopper::MBarrier;
use crate::typed::{self, Global, KernelBuilder, Ptr, Shared, Val, Var};
use crate::types::PtxType;
use pipeline::{GROUP_WARPS, Matrix, PRODUCERS, ROWS, Ring, SPANS, STAGES, stage_bytes};
use span_mma::{ColumnPacking, SpanOperands};

/// Consumer warps.
const CONSUMERS: u32 = 2 * GROUP_WARPS;
/// Threads per block.
const THREADS: u32 = (CONSUMERS + PRODUCERS) * 32;
/// Spans of 256 activations that a warp loads before it quantises them.
const SPANS_IN_FLIGHT: u32 = 4;
/// Named barrier of all threads: mbarriers are initialised, and activations quantised.
const READY_BARRIER: u32 = 1;
/// Named barrier of the consumers.
const CONSUMER_BARRIER: u32 = 2;
/// Named barrier of the producers.
const PRODUCER_BARRIER: u32 = 3;
/// Maximum bytes of static shared memory: two sets of partial sums, and mbarriers.
const STATIC_SHARED_BYTES: u32 = 2 * CONSUMERS * ROWS * 8 * 4 + 3 * STAGES * 8 + 256;

/// The kernel.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Stream {
    product: MatVec,
    columns: Columns,
    gpu: GpuSpec,
}

impl Stream {
    /// Creates the kernel for some columns of a product, unless their limbs do not fit in shared
    /// memory.
    pub(super) fn new(product: MatVec, columns: Columns, gpu: GpuSpec) -> Option<Self> {
        let stream = Self { product, columns, gpu };
        (stream.stages() >= 2).then_some(stream)
    }

    /// Returns the layout of the limbs that a preceding step prepares; `None` if each block
    /// quantises the activations itself.
    pub(super) fn prepared_limbs(&self) -> Option<Limbs> {
        (!self.columns.are_quantised_by_each_block(&self.product)).then(|| self.layout())
    }

    fn layout(&self) -> Limbs {
        Limbs::for_format(self.product.format, self.columns.count)
    }

    fn limb_buffer_bytes(&self) -> u64 {
        self.layout().bytes(self.product.k)
    }

    fn ring_at(&self) -> u64 {
        self.limb_buffer_bytes().next_multiple_of(128)
    }

    /// Number of pipeline stages that fit in shared memory.
    fn stages(&self) -> u32 {
        let available = self.gpu.shared_memory.saturating_sub(STATIC_SHARED_BYTES);
        let available = u64::from(available).saturating_sub(self.ring_at());
        (available as u32 / stage_bytes(self.product.format)).min(STAGES)
    }

    /// Number of tiles of 16 rows.
    fn tiles(&self) -> u64 {
        self.product.rows.div_ceil(ROWS.into())
    }
}

impl PtxKernel for Stream {
    fn name(&self) -> String {
        let name = Name::new("matvec_stream").with(self.product.format.name());
        let name = match self.prepared_limbs() {
            Some(_) => name.with("prepared"),
            None => self.product.append_source_to(name),
        };
        self.layout().append_to(name).build()
    }

    fn default_target(&self) -> Target {
        Target::SM_90
    }

    fn write(&self, target: Target) -> PtxEntry {
        let block = [THREADS, 1, 1];
        let mut kernel = typed::kernel(&self.name(), target, block, |k| self.body(k));
        kernel.min_blocks = Some(1);
        kernel
    }

    fn launch(&self) -> LaunchShape {
        let stages = u64::from(self.stages() * stage_bytes(self.product.format));
        LaunchShape {
            grid: [self.tiles().min(self.gpu.multiprocessors.into()) as u32, 1, 1],
            block: [THREADS, 1, 1],
            dynamic_shared: (self.ring_at() + stages) as u32,
        }
    }

    fn pdl_reads(&self) -> Option<&'static [usize]> {
        Some(&[0])
    }

    fn interface(&self) -> KernelInterface {
        let MatVec { rows, k, .. } = self.product;
        let [weights, mut x, y] = self.product.buffers();
        if self.prepared_limbs().is_some() {
            x = BufferParameter {
                name: "limbs",
                element: PtxType::B8,
                len: self.limb_buffer_bytes(),
                ..x
            };
        }
        KernelInterface {
            buffers: vec![weights, x, y],
            parameters: vec![
                Parameter::Pointer(0),
                Parameter::Pointer(1),
                Parameter::Pointer(2),
                Parameter::U32(rows as u32),
                Parameter::U32(k as u32),
                Parameter::U32(self.columns.first),
                Parameter::U32(self.columns.count),
                Parameter::U32(self.limb_buffer_bytes() as u32),
                Parameter::U32(self.stages()),
            ],
        }
    }
}

/// Values that all warps share.
struct Block<'k> {
    k: &'k KernelBuilder,
    layout: Limbs,
    matrix: Matrix<'k>,
    y: Ptr<'k, Global, f32>,
    /// The first column of this launch, and the number of columns.
    first: Val<'k, u32>,
    columns: Val<'k, u32>,
    /// Values per column.
    len: Val<'k, u32>,
    /// Spans of 256 values per column.
    spans: Val<'k, u32>,
    /// Stages per tile.
    chunks: Val<'k, u32>,
    tiles: Val<'k, u32>,
    limb_buffer: LimbBuffer<'k, Shared>,
    ring: Ring<'k>,
    /// The mbarrier that counts the bytes of the limbs, if these are prepared.
    limbs_full: MBarrier<'k>,
    /// Partial sums of all warps, double-buffered by tile.
    partial_sums: Ptr<'k, Shared, f32>,
}

/// The source of the activations.
enum ActivationSource<'k> {
    Limbs(Ptr<'k, Global, u8>, Val<'k, u32>),
    Values(Source<'k>),
}

impl Stream {
    fn body(&self, k: &KernelBuilder) {
        let weights = k.pointer_param::<u8>("weights");
        let x = k.pointer_param::<u32>("x");
        let y = k.pointer_param::<f32>("y");
        let [rows, len] = ["rows", "k"].map(|name| k.scalar_param::<u32>(name));
        let [first, columns] = ["first", "columns"].map(|name| k.scalar_param::<u32>(name));
        let [bytes, stages] = ["limb_bytes", "stages"].map(|name| k.scalar_param::<u32>(name));
        let ring_at = (bytes + 127) & !127u32;
        let block = self.block(k, [rows, len, first, columns, ring_at, stages], weights, y);
        let activations = if self.prepared_limbs().is_some() {
            ActivationSource::Limbs(x.cast(), bytes)
        } else {
            ActivationSource::Values(Source::new(&self.product, x, len))
        };
        let warp = k.warp();
        k.if_else(
            warp.ge(CONSUMERS),
            || block.run_producer(warp - CONSUMERS),
            || block.run_consumer(&activations, warp, self.product.format),
        );
    }

    fn block<'k>(
        &self,
        k: &'k KernelBuilder,
        [rows, len, first, columns, ring_at, stages]: [Val<'k, u32>; 6],
        weights: Ptr<'k, Global, u8>,
        y: Ptr<'k, Global, f32>,
    ) -> Block<'k> {
        let format = self.product.format;
        let memory = k.dynamic_shared::<u32>(128);
        let barriers = k.shared::<u64>(3 * STAGES + 1, 16);
        let spans = (len + (SPAN - 1)) >> SPAN.ilog2();
        let row = (len >> (format.block_len() as u32).ilog2()) * format.block_bytes() as u32;
        let ring = Ring {
            k,
            format,
            stages,
            memory: memory.cast::<u8>().plus_bytes(ring_at),
            full: barriers,
            empty: barriers.at(2 * STAGES),
        };
        Block {
            k,
            layout: self.layout(),
            matrix: Matrix {
                at: weights,
                rows,
                row,
                copied: (to_u64(rows) * to_u64(row)) & !15u64,
            },
            y,
            first,
            columns,
            len,
            spans,
            chunks: (spans + (SPANS - 1)) >> SPANS.ilog2(),
            tiles: (rows + (ROWS - 1)) >> ROWS.ilog2(),
            limb_buffer: LimbBuffer::new(k, self.layout(), memory, spans),
            ring,
            limbs_full: MBarrier::at(barriers.at(3 * STAGES)),
            partial_sums: k.shared::<f32>(2 * CONSUMERS * ROWS * 8, 16),
        }
    }
}

/// The producer warps.
impl<'k> Block<'k> {
    fn run_producer(&self, producer: Val<'k, u32>) {
        let k = self.k;
        let lane = k.lane();
        let first = producer.eq(0) & lane.eq(0);
        k.if_then(first, || {
            self.ring.init();
            self.limbs_full.init(1);
            k.fence_mbarrier_init();
        });
        k.sync_named(PRODUCER_BARRIER, PRODUCERS * 32);
        k.arrive(READY_BARRIER, THREADS);
        let cursor = self.ring.cursor(k.constant(0));
        k.for_range(k.block_id(0), self.tiles, k.block_count(0), |tile| {
            k.for_range(0, self.chunks, 1, |chunk| {
                cursor.load_rows(&self.matrix, [tile, chunk], [producer, lane]);
                cursor.advance(1);
            });
        });
    }
}

/// The consumer warps.
impl<'k> Block<'k> {
    fn run_consumer(
        &self,
        activations: &ActivationSource<'k>,
        warp: Val<'k, u32>,
        format: BlockFormat,
    ) {
        let k = self.k;
        k.pdl_wait();
        if let ActivationSource::Values(source) = activations {
            self.quantise_activations(source, warp);
        }
        k.sync_named(READY_BARRIER, THREADS);
        if let ActivationSource::Limbs(limbs, bytes) = activations {
            k.if_then(warp.eq(0) & k.lane().eq(0), || {
                self.limbs_full.arrive_expect_tx(*bytes);
                k.bulk_load(self.limb_buffer.limbs, *limbs, *bytes, self.limbs_full);
            });
            self.limbs_full.wait(0u32);
        }
        k.pdl_launch_dependents();
        let consumer = Consumer::new(self, warp);
        let parity = k.var(0u32);
        k.for_range(k.block_id(0), self.tiles, k.block_count(0), |tile| {
            let accumulators = [(); 4].map(|()| k.var(0.0f32));
            consumer.accumulate_tile(format, accumulators);
            consumer.store_partial(accumulators, parity.get());
            k.sync_named(CONSUMER_BARRIER, CONSUMERS * 32);
            self.reduce_and_store(tile, parity.get());
            parity.set(parity.get() ^ 1);
        });
    }

    /// Quantises the activations, with the loads of several spans in flight.
    fn quantise_activations(&self, source: &Source<'k>, warp: Val<'k, u32>) {
        let (k, lane, padded_columns) = (self.k, self.k.lane(), self.layout.padded_columns);
        k.for_range(warp, self.spans * padded_columns, CONSUMERS * SPANS_IN_FLIGHT, |first| {
            let read = (0..SPANS_IN_FLIGHT).map(|nth| {
                let unit = first + nth * CONSUMERS;
                let (span, column) = (unit >> padded_columns.ilog2(), unit & (padded_columns - 1));
                let in_bounds = span.lt(self.spans) & column.lt(self.columns);
                (span, column, in_bounds, source.values(in_bounds, span, self.first + column, lane))
            });
            for (span, column, in_bounds, values) in read.collect::<Vec<_>>() {
                k.if_then(in_bounds, || self.limb_buffer.write(span, column, lane, values));
            }
        });
    }

    /// Columns of a tile's results in shared memory.
    const fn result_columns(&self) -> u32 {
        8 / self.layout.limbs
    }

    /// Reduces the results of a tile over all warps, and stores them. `parity` selects the buffer
    /// of partial sums.
    fn reduce_and_store(&self, tile: Val<'k, u32>, parity: Val<'k, u32>) {
        let (k, thread, width) = (self.k, self.k.thread_id(), self.result_columns());
        let line = thread >> width.ilog2();
        let (row, column) = (tile * ROWS + line, thread & (width - 1));
        let in_bounds =
            thread.lt(ROWS * width) & row.lt(self.matrix.rows) & column.lt(self.columns);
        k.if_then(in_bounds, || {
            let from = self.partial_sums.at(parity * (CONSUMERS * ROWS * width) + thread);
            let parts = (0..CONSUMERS).map(|warp| from.at(warp * ROWS * width).load());
            let sum = parts.collect::<Vec<_>>().into_iter().reduce(|a, b| a + b);
            let nth = to_u64(self.first + column).mul_add(to_u64(self.matrix.rows), to_u64(row));
            self.y.at_wide(nth).store(sum.expect("there are warps"));
        });
    }
}

/// A consumer warp.
struct Consumer<'k, 'b> {
    block: &'b Block<'k>,
    warp: Val<'k, u32>,
    lane: Val<'k, u32>,
    packing: ColumnPacking<'k>,
    /// Byte offsets of the lane's rows in a stage.
    rows: [Val<'k, u32>; 2],
    cursor: pipeline::StageCursor<'k>,
    /// Index of the next stage of the tile that this warp's group processes.
    next_chunk: Var<'k, u32>,
}

impl<'k, 'b> Consumer<'k, 'b> {
    fn new(block: &'b Block<'k>, warp: Val<'k, u32>) -> Self {
        let k = block.k;
        let lane = k.lane();
        let consumer_group = warp >> GROUP_WARPS.ilog2();
        let format = block.ring.format;
        let rows = [0, 8].map(|further| {
            let row = (lane >> 2) + further;
            let span_offset = (warp & (GROUP_WARPS - 1)) * format.span_bytes();
            // A tile is 16 rows, so that a row's offset from a 16-byte boundary is the same in all
            // tiles.
            row * pipeline::row_bytes(format) + span_offset + ((row * block.matrix.row) & 15)
        });
        let cursor = block.ring.cursor(consumer_group);
        let packing = ColumnPacking::new(block.layout.limb_columns(), lane);
        Self { block, warp, lane, packing, rows, cursor, next_chunk: k.var(consumer_group) }
    }

    /// Accumulates this warp's share of a tile.
    fn accumulate_tile(&self, format: BlockFormat, accumulators: [Var<'k, f32>; 4]) {
        let (k, chunks) = (self.block.k, self.block.chunks);
        k.loop_(|exit| {
            exit.break_if(self.next_chunk.get().ge(chunks));
            self.cursor.wait_full();
            let span = self.next_chunk.get() * SPANS + (self.warp & (GROUP_WARPS - 1));
            k.if_then(span.lt(self.block.spans), || self.add(format, span, accumulators));
            k.sync_warp();
            k.if_then(self.lane.eq(0), || self.cursor.empty().arrive());
            self.cursor.advance(2);
            self.next_chunk.set(self.next_chunk.get() + 2);
        });
        self.next_chunk.set(self.next_chunk.get() - chunks);
    }

    fn add(&self, format: BlockFormat, span: Val<'k, u32>, accumulators: [Var<'k, f32>; 4]) {
        let Block { k, limb_buffer, len, layout, .. } = *self.block;
        let part = self.lane & 3;
        let memory = self.cursor.memory();
        let operands = SpanOperands {
            k,
            part,
            packing: self.packing,
            rows: self.rows.map(|bytes| memory.plus_bytes(bytes)),
            limb_buffer,
            span,
            limb_columns: layout.limb_columns(),
            limb_column: (self.lane >> 2) & (layout.limb_columns() - 1),
            blocks: (len - span * SPAN) >> 5,
        };
        let products = operands.product(format);
        let scales = [0, 1].map(|next| {
            let column = (part * 2 + next) >> layout.limbs.ilog2();
            limb_buffer.scale(span, column & (layout.padded_columns - 1)).load()
        });
        for (i, product) in products.into_iter().enumerate() {
            accumulators[i].set(product.mul_add(scales[i % 2], accumulators[i].get()));
        }
    }

    /// Stores a tile's partial sums for the reduction.
    fn store_partial(&self, accumulators: [Var<'k, f32>; 4], parity: Val<'k, u32>) {
        let (block, part) = (self.block, self.lane & 3);
        let width = block.result_columns();
        let rows = (parity * CONSUMERS + self.warp) * ROWS + (self.lane >> 2);
        let at = block.partial_sums.at(rows * width + part * (width / 4));
        for (row, pair) in accumulators.chunks_exact(2).enumerate() {
            let at = at.at(8 * width * row as u32);
            match block.layout.limbs {
                1 => at.store_vector([pair[0].get(), pair[1].get()]),
                _ => {
                    let sum = pair[1].get().mul_add(1.0 / 128.0, pair[0].get());
                    at.store(self.packing.sum_over_groups(block.k, sum));
                }
            }
        }
    }
}
