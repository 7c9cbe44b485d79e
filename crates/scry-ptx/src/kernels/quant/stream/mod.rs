//! Quantised matrix-vector products on Hopper: weights stream through shared memory.
//!
//! A block is warp-specialised: producer warps fill a ring of pipeline stages with bulk copies
//! (`cp.async.bulk`), and 16 consumer warps empty it. A stage is 8 spans of 256 weights of 16 rows,
//! one for each of 8 warps, which alternate with the 8 others. They use int8 MMAs, whose tile has 8
//! columns: a product with 8 columns costs no more than one with 1, and up to 4 columns of
//! activations have two limbs (about 15 bits). With PDL, the first stages are loaded before the
//! preceding launch has finished, if that does not write weights, and while the block quantises the
//! activations.
//!
//! The kernel is memory-bound: each weight is read once.

mod pipeline;
mod span_mma;

use super::activations::{LimbBuffer, Limbs, Source};
use super::format::{BlockFormat, SPAN};
use super::matvec_shape::{Columns, MatVec};
use super::wide;
use crate::kernels::name::Name;
use crate::kernels::{
    BufferParameter, GpuSpec, KernelInterface, LaunchShape, Parameter, PtxKernel,
};
use crate::module::PtxEntry;
use crate::target::Target;
use crate::typed::hopper::MBarrier;
use crate::typed::{self, Code, Global, Ptr, Shared, Val, Var};
use crate::types::PtxType;
use pipeline::{FETCHERS, GROUP, Matrix, ROWS, Ring, SPANS, STAGES, stage_bytes};
use span_mma::{ColumnPacking, SpanOperands};

/// Consumer warps.
const WORKERS: u32 = 2 * GROUP;
/// Threads per block.
const THREADS: u32 = (WORKERS + FETCHERS) * 32;
/// Spans of 256 activations that a warp has in flight.
const TOGETHER: u32 = 4;
/// Named barriers of the block.
const READY: u32 = 1;
const WORK: u32 = 2;
const FETCH: u32 = 3;
/// Bytes of static shared memory: two sets of partial sums, and mbarriers.
const DECLARED: u32 = 2 * WORKERS * ROWS * 8 * 4 + 3 * STAGES * 8 + 256;

/// The kernel.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Stream {
    product: MatVec,
    part: Columns,
    gpu: GpuSpec,
}

impl Stream {
    /// Creates the kernel for some columns of a product, unless their limbs do not fit in shared
    /// memory.
    pub(super) fn new(product: MatVec, part: Columns, gpu: GpuSpec) -> Option<Self> {
        let stream = Self { product, part, gpu };
        (stream.stages() >= 2).then_some(stream)
    }

    /// Returns the layout of quantised activations, unless each block quantises them itself.
    pub(super) fn prepared(&self) -> Option<Limbs> {
        (!self.part.are_small(&self.product)).then(|| self.layout())
    }

    fn layout(&self) -> Limbs {
        Limbs::of(self.product.format, self.part.count)
    }

    fn image_bytes(&self) -> u64 {
        self.layout().bytes(self.product.k)
    }

    fn ring_at(&self) -> u64 {
        self.image_bytes().next_multiple_of(128)
    }

    fn stages(&self) -> u32 {
        let room = self.gpu.shared_memory.saturating_sub(DECLARED);
        let room = u64::from(room).saturating_sub(self.ring_at());
        (room as u32 / stage_bytes(self.product.format)).min(STAGES)
    }

    fn tiles(&self) -> u64 {
        self.product.rows.div_ceil(ROWS.into())
    }
}

impl PtxKernel for Stream {
    fn name(&self) -> String {
        let source = match self.prepared() {
            Some(_) => "prepared",
            None => self.product.activations.name(),
        };
        let name = Name::new("matvec_stream").with(self.product.format.name()).with(source);
        self.layout().named(name).build()
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
        if self.prepared().is_some() {
            x = BufferParameter {
                name: "digits",
                element: PtxType::B8,
                len: self.image_bytes(),
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
                Parameter::U32(self.part.first),
                Parameter::U32(self.part.count),
                Parameter::U32(self.image_bytes() as u32),
                Parameter::U32(self.stages()),
            ],
        }
    }
}

/// Values that all warps share.
struct Block<'k> {
    k: &'k Code,
    layout: Limbs,
    matrix: Matrix<'k>,
    y: Ptr<'k, Global, f32>,
    /// The first of the columns, and their number.
    first: Val<'k, u32>,
    columns: Val<'k, u32>,
    /// Values per column.
    len: Val<'k, u32>,
    /// Spans of 256 values per column.
    spans: Val<'k, u32>,
    /// Stages per tile.
    chunks: Val<'k, u32>,
    tiles: Val<'k, u32>,
    image: LimbBuffer<'k, Shared>,
    ring: Ring<'k>,
    /// The mbarrier of the limbs, where these are loaded.
    arrived: MBarrier<'k>,
    /// Partial sums of all warps, double-buffered by tile.
    partial: Ptr<'k, Shared, f32>,
}

/// The source of the activations.
enum Given<'k> {
    Limbs(Ptr<'k, Global, u8>, Val<'k, u32>),
    Values(Source<'k>),
}

impl Stream {
    fn body(&self, k: &Code) {
        let weights = k.pointer::<u8>("weights");
        let x = k.pointer::<u32>("x");
        let y = k.pointer::<f32>("y");
        let [rows, len] = ["rows", "k"].map(|name| k.number::<u32>(name));
        let [first, columns] = ["first", "columns"].map(|name| k.number::<u32>(name));
        let [bytes, stages] = ["digit_bytes", "stages"].map(|name| k.number::<u32>(name));
        let ring_at = (bytes + 127) & !127u32;
        let block = self.block(k, [rows, len, first, columns, ring_at, stages], weights, y);
        let given = if self.prepared().is_some() {
            Given::Limbs(x.cast(), bytes)
        } else {
            Given::Values(Source::new(self.product.activations, x, len))
        };
        let warp = k.warp();
        k.either(
            warp.ge(WORKERS),
            || block.produce(warp - WORKERS),
            || block.work(&given, warp, self.product.format),
        );
    }

    fn block<'k>(
        &self,
        k: &'k Code,
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
            matrix: Matrix { at: weights, rows, row, copied: (wide(rows) * wide(row)) & !15u64 },
            y,
            first,
            columns,
            len,
            spans,
            chunks: (spans + (SPANS - 1)) >> SPANS.ilog2(),
            tiles: (rows + (ROWS - 1)) >> ROWS.ilog2(),
            image: LimbBuffer::new(k, self.layout(), memory, spans),
            ring,
            arrived: MBarrier::at(barriers.at(3 * STAGES)),
            partial: k.shared::<f32>(2 * WORKERS * ROWS * 8, 16),
        }
    }
}

/// The producer warps.
impl<'k> Block<'k> {
    fn produce(&self, number: Val<'k, u32>) {
        let k = self.k;
        let lane = k.lane();
        let first = number.equals(0) & lane.equals(0);
        k.when(first, || {
            self.ring.init();
            self.arrived.init(1);
            k.fence_mbarrier_init();
        });
        k.sync_named(FETCH, FETCHERS * 32);
        k.arrive(READY, THREADS);
        let cursor = self.ring.cursor(k.constant(0));
        k.for_range(k.block_id(0), self.tiles, k.block_count(0), |tile| {
            k.for_range(0, self.chunks, 1, |chunk| {
                cursor.fetch(&self.matrix, [tile, chunk], [number, lane]);
                cursor.advance(1);
            });
        });
    }
}

/// The consumer warps.
impl<'k> Block<'k> {
    fn work(&self, given: &Given<'k>, warp: Val<'k, u32>, format: BlockFormat) {
        let k = self.k;
        k.pdl_wait();
        if let Given::Values(source) = given {
            self.prepare(source, warp);
        }
        k.sync_named(READY, THREADS);
        if let Given::Limbs(limbs, bytes) = given {
            k.when(warp.equals(0) & k.lane().equals(0), || {
                self.arrived.arrive_expect_tx(*bytes);
                k.fetch_bytes(self.image.limbs, *limbs, *bytes, self.arrived);
            });
            self.arrived.wait(0u32);
        }
        k.pdl_launch_dependents();
        let worker = Worker::new(self, warp);
        let number = k.var(0u32);
        k.for_range(k.block_id(0), self.tiles, k.block_count(0), |tile| {
            let sums = [(); 4].map(|()| k.var(0.0f32));
            worker.tile(format, sums);
            worker.store_partial(sums, number.get());
            k.sync_named(WORK, WORKERS * 32);
            self.finish(tile, number.get());
            number.set(number.get() ^ 1);
        });
    }

    /// Quantises the activations: several loads of 256 values are in flight.
    fn prepare(&self, source: &Source<'k>, warp: Val<'k, u32>) {
        let (k, lane, room) = (self.k, self.k.lane(), self.layout.room);
        k.for_range(warp, self.spans * room, WORKERS * TOGETHER, |first| {
            let read = (0..TOGETHER).map(|nth| {
                let unit = first + nth * WORKERS;
                let (span, column) = (unit >> room.ilog2(), unit & (room - 1));
                let exists = span.lt(self.spans) & column.lt(self.columns);
                (span, column, exists, source.values(exists, span, self.first + column, lane))
            });
            for (span, column, exists, values) in read.collect::<Vec<_>>() {
                k.when(exists, || self.image.write(span, column, lane, values));
            }
        });
    }

    /// Columns of a tile's results in shared memory.
    const fn width(&self) -> u32 {
        8 / self.layout.limbs
    }

    /// Reduces a tile over all warps, and stores it.
    fn finish(&self, tile: Val<'k, u32>, number: Val<'k, u32>) {
        let (k, thread, width) = (self.k, self.k.thread_id(), self.width());
        let line = thread >> width.ilog2();
        let (row, column) = (tile * ROWS + line, thread & (width - 1));
        let inside = thread.lt(ROWS * width) & row.lt(self.matrix.rows) & column.lt(self.columns);
        k.when(inside, || {
            let from = self.partial.at(number * (WORKERS * ROWS * width) + thread);
            let parts = (0..WORKERS).map(|warp| from.at(warp * ROWS * width).load());
            let sum = parts.collect::<Vec<_>>().into_iter().reduce(|a, b| a + b);
            let nth = wide(self.first + column).mul_add(wide(self.matrix.rows), wide(row));
            self.y.at_wide(nth).store(sum.expect("there are warps"));
        });
    }
}

/// A consumer warp.
struct Worker<'k, 'b> {
    block: &'b Block<'k>,
    warp: Val<'k, u32>,
    lane: Val<'k, u32>,
    packing: ColumnPacking<'k>,
    /// Byte offsets of the lane's rows in a stage.
    rows: [Val<'k, u32>; 2],
    cursor: pipeline::StageCursor<'k>,
    /// Index of the next stage of the tile for this warp's group.
    chunk: Var<'k, u32>,
}

impl<'k, 'b> Worker<'k, 'b> {
    fn new(block: &'b Block<'k>, warp: Val<'k, u32>) -> Self {
        let k = block.k;
        let lane = k.lane();
        let group = warp >> GROUP.ilog2();
        let format = block.ring.format;
        let rows = [0, 8].map(|further| {
            let row = (lane >> 2) + further;
            let inside = (warp & (GROUP - 1)) * format.span_bytes();
            // A tile is 16 rows, so that a row's offset from a 16-byte boundary is the same in all
            // tiles.
            row * pipeline::row_bytes(format) + inside + ((row * block.matrix.row) & 15)
        });
        let cursor = block.ring.cursor(group);
        let packing = ColumnPacking::new(block.layout.lines(), lane);
        Self { block, warp, lane, packing, rows, cursor, chunk: k.var(group) }
    }

    /// Accumulates this warp's share of a tile.
    fn tile(&self, format: BlockFormat, sums: [Var<'k, f32>; 4]) {
        let (k, chunks) = (self.block.k, self.block.chunks);
        k.repeat(|exit| {
            exit.when(self.chunk.get().ge(chunks));
            self.cursor.wait();
            let span = self.chunk.get() * SPANS + (self.warp & (GROUP - 1));
            k.when(span.lt(self.block.spans), || self.add(format, span, sums));
            k.sync_warp();
            k.when(self.lane.equals(0), || self.cursor.empty().arrive());
            self.cursor.advance(2);
            self.chunk.set(self.chunk.get() + 2);
        });
        self.chunk.set(self.chunk.get() - chunks);
    }

    fn add(&self, format: BlockFormat, span: Val<'k, u32>, sums: [Var<'k, f32>; 4]) {
        let Block { k, image, len, layout, .. } = *self.block;
        let part = self.lane & 3;
        let memory = self.cursor.memory();
        let operands = SpanOperands {
            k,
            part,
            packing: self.packing,
            rows: self.rows.map(|bytes| memory.plus_bytes(bytes)),
            image,
            span,
            lines: layout.lines(),
            line: (self.lane >> 2) & (layout.lines() - 1),
            blocks: (len - span * SPAN) >> 5,
        };
        let products = operands.product(format);
        let scales = [0, 1].map(|next| {
            let column = (part * 2 + next) >> layout.limbs.ilog2();
            image.scale(span, column & (layout.room - 1)).load()
        });
        for (i, product) in products.into_iter().enumerate() {
            sums[i].set(product.mul_add(scales[i % 2], sums[i].get()));
        }
    }

    /// Stores a tile's partial sums for the reduction.
    fn store_partial(&self, sums: [Var<'k, f32>; 4], number: Val<'k, u32>) {
        let (block, part) = (self.block, self.lane & 3);
        let width = block.width();
        let rows = (number * WORKERS + self.warp) * ROWS + (self.lane >> 2);
        let at = block.partial.at(rows * width + part * (width / 4));
        for (row, pair) in sums.chunks_exact(2).enumerate() {
            let at = at.at(8 * width * row as u32);
            match block.layout.limbs {
                1 => at.store_vector([pair[0].get(), pair[1].get()]),
                _ => {
                    let sum = pair[1].get().mul_add(1.0 / 128.0, pair[0].get());
                    at.store(self.packing.total(block.k, sum));
                }
            }
        }
    }
}
