//! Quantised matrix-vector products on any GPU, with `dp4a`.
//!
//! A warp computes two rows: of each 256 weights a lane has 8, which it multiplies with the limbs
//! of all columns. Few activations are quantised by each block, to shared memory; then the weights
//! are loaded to registers before the block waits for the preceding launch. More activations are
//! quantised once for all blocks, by a kernel before this one.

use super::activations::{LimbBuffer, Limbs, Source};
use super::format::SPAN;
use super::lane_weights::LaneWeights;
use super::matvec_shape::MatVec;
use super::to_u64;
use crate::kernels::name::Name;
use crate::kernels::{BufferParameter, KernelInterface, LaunchShape, Parameter, PtxKernel};
use crate::module::PtxEntry;
use crate::target::Target;
use crate::typed::{self, Global, KernelBuilder, Ptr, Shared, Val, Var};
use crate::types::PtxType;

/// Warps per block.
const WARPS: u32 = 4;
/// Rows per warp.
const ROWS: u32 = 2;
/// Bytes of a line of L2.
const LINE: u32 = 128;
/// Maximum spans, of all columns, that each block quantises itself: two per warp.
const MAX_SELF_QUANTISED_SPANS: u64 = 8;

/// Returns the layout of limbs: two per value, not interleaved, without sums.
pub(super) const fn layout(columns: u32) -> Limbs {
    let padded_columns = columns.next_power_of_two();
    Limbs { limbs: 2, padded_columns, interleaved: false, limbs_per_sum: None }
}

/// The kernel.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Dot {
    product: MatVec,
}

/// The parameters of the kernel, and the rows of a warp.
struct Work<'k> {
    k: &'k KernelBuilder,
    weights: Ptr<'k, Global, u8>,
    limbs: LimbSource<'k>,
    limb_columns: u32,
    lane: Val<'k, u32>,
    rows: [Val<'k, u32>; ROWS as usize],
    /// Values per column.
    len: Val<'k, u32>,
    /// Bytes per row.
    row_bytes: Val<'k, u32>,
}

/// The weights of a lane in a span, of the rows of its warp.
type SpanWeights<'k> = [LaneWeights<'k>; ROWS as usize];

/// The limbs of the activations.
#[derive(Clone, Copy)]
enum LimbSource<'k> {
    /// Of a kernel before this one.
    Prepared(LimbBuffer<'k, Global>),
    /// Of this block.
    Own(LimbBuffer<'k, Shared>),
}

impl Dot {
    /// Creates the kernel for a product.
    pub(super) fn new(product: MatVec) -> Self {
        Self { product }
    }

    /// Returns whether each block quantises the activations itself.
    pub(super) fn quantises_activations(&self) -> bool {
        self.own_spans().is_some()
    }

    /// Returns the spans of a column that each block quantises itself; `None` if it does not.
    fn own_spans(&self) -> Option<u32> {
        let spans = self.product.k.div_ceil(SPAN.into());
        let columns = u64::from(self.product.columns.next_power_of_two());
        (spans * columns <= MAX_SELF_QUANTISED_SPANS).then_some(spans as u32)
    }

    /// Quantises the activations to shared memory, a span by a warp.
    fn quantise<'k>(
        &self,
        k: &'k KernelBuilder,
        x: Ptr<'k, Global, u32>,
        spans: u32,
        len: Val<'k, u32>,
    ) -> LimbBuffer<'k, Shared> {
        let layout = layout(self.product.columns);
        // For each span, two limbs of each value, and a scale.
        let words = MAX_SELF_QUANTISED_SPANS as u32 * (2 * SPAN / 4 + 1);
        let shared = k.shared::<u32>(words, 16);
        let limb_buffer = LimbBuffer::new(k, layout, shared, k.constant(spans));
        let source = Source::new(&self.product, x, len);
        let padded_columns = layout.padded_columns;
        // The loads of all spans of a warp are issued before any is quantised.
        let units = (0..(spans * padded_columns).div_ceil(WARPS)).map(|nth| {
            let unit = k.warp() + WARPS * nth;
            let (span, column) = (unit >> padded_columns.ilog2(), unit & (padded_columns - 1));
            let in_bounds = span.lt(spans) & column.lt(self.product.columns);
            (in_bounds, span, column, source.values(in_bounds, span, column, k.lane()))
        });
        for (in_bounds, span, column, values) in units.collect::<Vec<_>>() {
            k.if_then(in_bounds, || limb_buffer.write(span, column, k.lane(), values));
        }
        k.sync();
        limb_buffer
    }

    fn body(&self, k: &KernelBuilder) {
        let format = self.product.format;
        let own_spans = self.own_spans();
        let name = if own_spans.is_some() { "x" } else { "limbs" };
        let (weights, x) = (k.pointer_param::<u8>("weights"), k.pointer_param::<u32>(name));
        let y = k.pointer_param::<f32>("y");
        let (rows, len) = (k.scalar_param::<u32>("rows"), k.scalar_param::<u32>("k"));
        let spans = (len + (SPAN - 1)) >> SPAN.ilog2();
        let first = (k.block_id(0) * WARPS + (k.thread_id() >> 5)) * ROWS;
        let block = (format.block_len() as u32).ilog2();
        // Rows out of bounds are clamped to the last one.
        let own_rows = [0, 1].map(|next| (first + next).min(rows - 1));
        let row_bytes = (len >> block) * format.block_bytes() as u32;
        let addresses = own_rows.map(|row| weights.at_wide(to_u64(row) * to_u64(row_bytes)));
        let mut early = Vec::new();
        match own_spans {
            Some(spans) => {
                early.extend((0..spans).map(|span| self.load_before_wait(k, addresses, span, len)));
            }
            None => addresses.into_iter().for_each(|row| prefetch_row(k, row, row_bytes)),
        }
        k.pdl_wait();
        k.pdl_launch_dependents();
        let work = Work {
            k,
            weights,
            limbs: match own_spans {
                Some(spans) => LimbSource::Own(self.quantise(k, x, spans, len)),
                None => {
                    let layout = layout(self.product.columns);
                    LimbSource::Prepared(LimbBuffer::new(k, layout, x, spans))
                }
            },
            limb_columns: layout(self.product.columns).limb_columns(),
            lane: k.lane(),
            rows: own_rows,
            len,
            row_bytes,
        };
        k.if_then(first.lt(rows), || {
            let accumulators = (0..ROWS * self.product.columns).map(|_| k.var(0.0f32));
            let accumulators: Vec<_> = accumulators.collect();
            match own_spans {
                Some(_) => (0..).zip(&early).for_each(|(span, weights)| {
                    self.add_products(&work, k.constant(span), weights, &accumulators);
                }),
                None => k.for_range(0, spans, 1, |span| {
                    self.accumulate(&work, span, &accumulators);
                }),
            }
            self.reduce_and_store(&work, &accumulators, y, rows);
        });
    }

    /// Loads a span of weights of both rows, given by their addresses, while the preceding launch
    /// still runs. Those beyond the end of the row are zeros.
    fn load_before_wait<'k>(
        &self,
        k: &'k KernelBuilder,
        rows: [Ptr<'k, Global, u8>; ROWS as usize],
        span: u32,
        len: Val<'k, u32>,
    ) -> SpanWeights<'k> {
        let format = self.product.format;
        let is_inside = (k.lane() * 8 + span * SPAN).lt(len);
        // Every row has the first weights of its first span.
        let lane = is_inside.select::<u32>(k.lane(), 0);
        let offset = is_inside.select::<u32>(span * format.span_bytes(), 0);
        rows.map(|row| {
            let at = row.plus_bytes(offset);
            LaneWeights::load_before_wait(k, format, at, lane).if_inside(is_inside)
        })
    }

    /// Accumulates the products with a span of weights of both rows.
    fn accumulate<'k>(&self, work: &Work<'k>, span: Val<'k, u32>, accumulators: &[Var<'k, f32>]) {
        let format = self.product.format;
        work.k.if_then((span * SPAN + work.lane * 8).lt(work.len), || {
            let weights = work.rows.map(|row| {
                let first = to_u64(span * format.span_bytes());
                let at = work.weights.at_wide(to_u64(row).mul_add(to_u64(work.row_bytes), first));
                LaneWeights::load(work.k, format, at, work.lane)
            });
            self.add_products(work, span, &weights, accumulators);
        });
    }

    /// Adds the products of a span's activations with weights of both rows.
    fn add_products<'k>(
        &self,
        work: &Work<'k>,
        span: Val<'k, u32>,
        weights: &SpanWeights<'k>,
        accumulators: &[Var<'k, f32>],
    ) {
        let columns = self.product.columns;
        for column in 0..columns {
            let values = work.load_values(span, column);
            for (row, weights) in weights.iter().enumerate() {
                let sum = accumulators[row * columns as usize + column as usize];
                sum.set(values.multiply_add(work.k, weights, sum.get()));
            }
        }
    }

    /// Reduces over the lanes, and stores the results.
    fn reduce_and_store<'k>(
        &self,
        work: &Work<'k>,
        accumulators: &[Var<'k, f32>],
        y: Ptr<'k, Global, f32>,
        rows: Val<'k, u32>,
    ) {
        let k = work.k;
        let totals = accumulators.iter().map(|sum| k.reduce_warp(sum.get(), 32, |a, b| a + b));
        let totals: Vec<_> = totals.collect();
        k.if_then(work.lane.eq(0), || {
            for (nth, total) in totals.into_iter().enumerate() {
                let (row, column) =
                    (nth as u32 / self.product.columns, nth as u32 % self.product.columns);
                let at = to_u64(rows) * u64::from(column) + to_u64(work.rows[row as usize]);
                y.at_wide(at).store(total);
            }
        });
    }
}

/// Prefetches a row of weights, up to 4 KiB: while the preceding launch ends, L2 fetches them.
fn prefetch_row<'k>(k: &'k KernelBuilder, row: Ptr<'k, Global, u8>, row_bytes: Val<'k, u32>) {
    let offset = k.lane() * LINE;
    k.if_then(offset.lt(row_bytes), || k.prefetch_line(row.plus_bytes(offset)));
}

/// The limbs of a lane's 8 values of a column.
struct Values<'k> {
    limbs: [[Val<'k, u32>; 2]; 2],
    scale: Val<'k, f32>,
}

impl<'k> Work<'k> {
    /// Loads a lane's limbs of a span of a column, and the span's scale.
    fn load_values(&self, span: Val<'k, u32>, column: u32) -> Values<'k> {
        let (group, part) = (self.lane >> 2, self.lane & 3);
        let first = group * (self.limb_columns * 32);
        let lines = [0, 1].map(|limb| self.k.constant(2 * column + limb).copied());
        let column = self.k.constant(column).copied();
        match self.limbs {
            LimbSource::Prepared(buffer) => Values {
                limbs: lines.map(|line| {
                    let at = buffer.group(span, line).plus_bytes(first).at(part * 2);
                    at.load_constant_vector()
                }),
                scale: buffer.scale(span, column).load_constant(),
            },
            LimbSource::Own(buffer) => Values {
                limbs: lines.map(|line| {
                    buffer.group(span, line).plus_bytes(first).at(part * 2).load_vector()
                }),
                scale: buffer.scale(span, column).load(),
            },
        }
    }
}

impl<'k> Values<'k> {
    /// Adds the products with 8 weights to `sum`.
    fn multiply_add(
        &self,
        k: &'k KernelBuilder,
        weights: &LaneWeights<'k>,
        sum: Val<'k, f32>,
    ) -> Val<'k, f32> {
        let dot = |words: [Val<'k, u32>; 2]| {
            let [high, low] = self.limbs.map(|limbs| {
                let low = k.dp4a(words[0], limbs[0], 0);
                k.dp4a(words[1], limbs[1], low).convert::<f32>("rn")
            });
            low.mul_add(1.0 / 128.0, high)
        };
        let product = dot(weights.q) * weights.scale;
        let product = match weights.offset {
            Some(offset) => {
                let ones = k.constant(0x0101_0101u32);
                dot([ones; 2]).mul_add(-offset, product)
            }
            None => product,
        };
        product.mul_add(self.scale, sum)
    }
}

impl PtxKernel for Dot {
    fn name(&self) -> String {
        let mut name = Name::new("matvec_dot").with(self.product.format.name());
        let own_spans = self.own_spans();
        if own_spans.is_some() {
            name = self.product.append_source_to(name);
        }
        let name = name.with(format_args!("n{}", self.product.columns));
        match own_spans {
            Some(spans) => name.with(format_args!("spans{spans}")).build(),
            None => name.build(),
        }
    }

    fn default_target(&self) -> Target {
        Target::SM_75
    }

    fn write(&self, target: Target) -> PtxEntry {
        typed::kernel(&self.name(), target, [WARPS * 32, 1, 1], |k| self.body(k))
    }

    fn pdl_reads(&self) -> Option<&'static [usize]> {
        // The weights.
        Some(if self.own_spans().is_some() { &[0] } else { &[] })
    }

    fn launch(&self) -> LaunchShape {
        let blocks = self.product.rows.div_ceil(u64::from(WARPS * ROWS));
        LaunchShape { grid: [blocks as u32, 1, 1], block: [WARPS * 32, 1, 1], dynamic_shared: 0 }
    }

    fn interface(&self) -> KernelInterface {
        let MatVec { rows, k, columns, .. } = self.product;
        let [weights, x, y] = self.product.buffers();
        let len = layout(columns).bytes(k);
        let limbs = BufferParameter { name: "limbs", element: PtxType::B8, len, ..x };
        let x = if self.quantises_activations() { x } else { limbs };
        KernelInterface {
            buffers: vec![weights, x, y],
            parameters: vec![
                Parameter::Pointer(0),
                Parameter::Pointer(1),
                Parameter::Pointer(2),
                Parameter::U32(rows as u32),
                Parameter::U32(k as u32),
            ],
        }
    }
}
