//! Skinny GEMM on CUDA cores: at most [`MAX_ROWS`] rows of `a`. If both operands are K-major, each
//! warp computes one or two columns of the result, and reads each column of `b` once.
//!
//! The kernel is memory-bound: `a` stays in L1 and L2, and each element of `b` is loaded from
//! device memory once, 16 bytes per lane. This is the GEMV of decoding with a model's weights.
//!
//! Operands that are not K-major, or whose rows are not 16-byte aligned, are loaded element by
//! element. With few columns, the warps of a block split K (`smem` in names), and for large K the
//! blocks of a cluster do too where clusters exist. If the columns of `b` are strided along K,
//! neighbouring lanes read neighbouring columns ([`strided_columns`]).

mod cluster_reduce;
mod strided_columns;

use super::epilogue::EpilogueScalars;
use super::memory::{load_element, load_element_if, store_element, to_u64};
use super::rasterization::{BlockTile, Division, TileOrder, cluster_tile};
use super::{Gemm, Layout, MatrixLayout};
use crate::kernels::name::Name;
use crate::kernels::{
    BufferParameter, GpuSpec, KernelInterface, LaunchShape, Parameter, PtxKernel,
};
use crate::module::PtxEntry;
use crate::target::Target;
use crate::typed::{self, F16, Global, KernelBuilder, Ptr, Val, Var};
use crate::types::PtxType;
use cluster_reduce::ReceiveBuffer;

/// Maximum number of rows.
pub(super) const MAX_ROWS: u64 = 8;
/// Warps per block.
const WARPS: u32 = 8;
/// Maximum number of blocks that split K for the same columns.
const MAX_SPLIT_K: u32 = 8;
/// Maximum rounds of loads, each of which waits for memory, of a small grid. With more, tensor
/// cores are faster, despite their repacking kernels.
const MAX_LOAD_ROUNDS: u64 = 8;
/// Maximum elements of `b` with five to eight rows, or three to eight if `b` is strided along K:
/// above it they are faster on tensor cores.
const MAX_ELEMENTS: u64 = 1 << 21;
/// Bytes per vector load.
const VECTOR_BYTES: u64 = 16;

/// A GEMM of at most [`MAX_ROWS`] rows.
#[derive(Debug, Clone)]
pub(super) struct Dot {
    gemm: Gemm,
    buffers: Vec<BufferParameter>,
    /// Whether the GEMM was transposed, so that the bias is per row.
    transposed: bool,
    /// Whether the warps of a block split K for the same columns.
    splits_k_in_block: bool,
    /// Blocks of a cluster that split K.
    split_k: u32,
}

impl Dot {
    pub(super) fn new(
        gemm: &Gemm,
        buffers: Vec<BufferParameter>,
        transposed: bool,
        gpu: GpuSpec,
    ) -> Self {
        let mut dot =
            Self { gemm: *gemm, buffers, transposed, splits_k_in_block: false, split_k: 1 };
        let max_blocks = 4 * u64::from(gpu.multiprocessors);
        // Without the split, a warp loads all of a column, in rounds.
        let is_short = gemm.k <= MAX_LOAD_ROUNDS * u64::from(32 * dot.loads_in_flight())
            && dot.blocks() >= gpu.multiprocessors.into();
        let has_few_blocks = dot.blocks() < max_blocks && !is_short;
        dot.splits_k_in_block = !dot.is_vectorized() && (dot.b_is_row_major() || has_few_blocks);
        if dot.splits_k_in_block && gpu.target.has(90) {
            let wanted = gemm
                .k
                .div_ceil(dot.k_in_flight())
                .min(MAX_SPLIT_K.into())
                .min(max_blocks / dot.blocks());
            dot.split_k = 1 << wanted.max(1).ilog2();
        }
        dot
    }

    /// Whether this kernel supports the GEMM.
    pub(super) fn supports(gemm: &Gemm) -> bool {
        gemm.m <= MAX_ROWS
    }

    /// Whether element-wise loads are faster than repacking the operands for tensor cores.
    pub(super) fn is_faster_unaligned(gemm: &Gemm, gpu: GpuSpec) -> bool {
        let mut dot = Self::new(gemm, Vec::new(), false, gpu);
        let has_enough_columns = gemm.n >= 2 * u64::from(gpu.multiprocessors);
        dot.split_k = if gpu.target.has(90) { MAX_SPLIT_K } else { 1 };
        let is_small = gemm.n.saturating_mul(gemm.k) <= MAX_ELEMENTS;
        let is_cheap = match (dot.rows(), dot.b_is_row_major()) {
            (1 | 2, _) | (4, false) => true,
            (4, true) | (8, false) => is_small,
            (_, _) => false,
        };
        is_cheap
            && (has_enough_columns
                || gemm.k <= MAX_LOAD_ROUNDS * dot.k_in_flight() * u64::from(dot.split_k))
    }

    /// Blocks over all matrices of the batch, at least 1, not counting those that split K.
    fn blocks(&self) -> u64 {
        let blocks = self.gemm.n.div_ceil(self.block_columns().into());
        blocks.saturating_mul(self.gemm.batch).max(1)
    }

    /// Elements along K that a block has in flight if its warps split K.
    fn k_in_flight(&self) -> u64 {
        let lanes = if self.b_is_row_major() { 1 } else { 32 };
        u64::from(lanes * WARPS * self.loads_in_flight())
    }

    /// Whether `b` is strided along K.
    fn b_is_row_major(&self) -> bool {
        self.gemm.b.order == Layout::RowMajor
    }

    /// Whether `a` is strided along K.
    fn a_is_k_strided(&self) -> bool {
        self.gemm.a.order == Layout::ColMajor
    }

    /// Columns per block.
    fn block_columns(&self) -> u32 {
        if self.b_is_row_major() {
            return strided_columns::COLUMNS;
        }
        self.columns() * if self.splits_k_in_block { 1 } else { WARPS }
    }

    /// Rows that the kernel is unrolled for.
    fn rows(&self) -> u32 {
        (self.gemm.m as u32).next_power_of_two()
    }

    /// Columns per warp: two with several rows, so that the columns share the loads of `a`.
    fn columns(&self) -> u32 {
        if self.rows() == 1 { 1 } else { 2 }
    }

    /// Whether rows are 16-byte aligned, so that vector loads can be used.
    fn is_vectorized(&self) -> bool {
        let size = u64::from(self.gemm.element.size());
        let is_aligned = |layout: &MatrixLayout| {
            [layout.ld, layout.stride].iter().all(|n| n.is_multiple_of(16 / size))
        };
        let is_k_major = !self.a_is_k_strided() && !self.b_is_row_major();
        is_k_major && is_aligned(&self.gemm.a) && is_aligned(&self.gemm.b)
    }

    pub(super) fn division(&self) -> Division {
        Division::new(&self.gemm, [self.rows(), self.block_columns()], 1, 1)
    }

    /// Row and column stride of the result, in elements.
    fn out_strides(&self) -> [u64; 2] {
        let out = &self.gemm.out;
        if out.order == Layout::RowMajor { [out.ld, 1] } else { [1, out.ld] }
    }
}

impl PtxKernel for Dot {
    fn name(&self) -> String {
        let Gemm { element, output, epilogue, .. } = &self.gemm;
        let name = Name::new("gemm_dot").types(*element, *output);
        let name = name.layout(!self.a_is_k_strided(), !self.b_is_row_major());
        let name = name.with(format_args!("m{}", self.rows())).with_if(self.is_vectorized(), "vec");
        let name = match (self.splits_k_in_block, self.split_k) {
            (false, _) => name,
            (true, 1) => name.with("smem"),
            (true, split_k) => name.with(format_args!("splitk{split_k}")),
        };
        epilogue.append_to(name, self.transposed).build()
    }

    fn default_target(&self) -> Target {
        if self.split_k > 1 { Target::SM_90 } else { Target::SM_80 }
    }

    fn write(&self, target: Target) -> PtxEntry {
        let block = [32 * WARPS, 1, 1];
        let mut kernel = typed::kernel(&self.name(), target, block, |k| {
            let params = Params::declare(k, self);
            let size = [self.rows(), self.block_columns()];
            let at = cluster_tile(k, &params.order, size, self.split_k);
            if self.b_is_row_major() {
                return strided_columns::write(&params, self, &at);
            } else if self.splits_k_in_block {
                return params.write_splitting_block(self, &at);
            }
            let column = at.column + (k.thread_id() >> 5) * self.columns();
            k.if_then(column.lt(params.n), || {
                let sum = params.lane_sum(&params.accumulators(self, &at, column));
                params.finish_lane(self, &at, column, sum);
            });
        });
        kernel.cluster = (self.split_k > 1).then_some([self.split_k, 1, 1]);
        kernel
    }

    fn launch(&self) -> LaunchShape {
        let grid = self.division().grid().expect("it was checked when the kernel was chosen");
        let [blocks, y, z] = grid;
        let block = [32 * WARPS, 1, 1];
        LaunchShape { grid: [blocks * self.split_k, y, z], block, dynamic_shared: 0 }
    }

    fn interface(&self) -> KernelInterface {
        let Gemm { m, n, k, a, b, out, epilogue, .. } = &self.gemm;
        let mut parameters: Vec<_> = (0..self.buffers.len()).map(Parameter::Pointer).collect();
        parameters.extend([*m, *n, *k].map(|size| Parameter::U32(size as u32)));
        let [row, column] = self.out_strides();
        let strides = [a.ld, b.ld, a.stride, b.stride, row, column, out.stride];
        parameters.extend(strides.map(Parameter::U64));
        parameters.extend([epilogue.alpha, epilogue.beta].map(Parameter::F32));
        parameters.extend(self.division().parameters());
        KernelInterface { buffers: self.buffers.clone(), parameters }
    }
}

/// The kernel's parameters.
struct Params<'k> {
    k: &'k KernelBuilder,
    operands: [Ptr<'k, Global, u8>; 2],
    bias: Option<Ptr<'k, Global, u8>>,
    out: Ptr<'k, Global, u8>,
    m: Val<'k, u32>,
    n: Val<'k, u32>,
    k_dim: Val<'k, u32>,
    ld: [Val<'k, u64>; 2],
    strides: [Val<'k, u64>; 2],
    /// Row, column and batch stride of the result, in elements.
    out_strides: [Val<'k, u64>; 3],
    scalars: EpilogueScalars<'k>,
    order: TileOrder<'k>,
}

/// Pointers to the rows and columns that a warp multiplies.
type Lines<'k> = [Vec<Ptr<'k, Global, u8>>; 2];

impl<'k> Params<'k> {
    fn declare(k: &'k KernelBuilder, dot: &Dot) -> Self {
        let operands = [k.pointer_param("a"), k.pointer_param("b")];
        let bias = dot.gemm.epilogue.bias.then(|| k.pointer_param("bias"));
        Self {
            k,
            operands,
            bias,
            out: k.pointer_param("out"),
            m: k.scalar_param("m"),
            n: k.scalar_param("n"),
            k_dim: k.scalar_param("k"),
            ld: ["a_ld", "b_ld"].map(|name| k.scalar_param(name)),
            strides: ["a_stride", "b_stride"].map(|name| k.scalar_param(name)),
            out_strides: ["row", "column", "batch"]
                .map(|axis| k.scalar_param(&format!("out_{axis}_stride"))),
            scalars: EpilogueScalars {
                alpha: k.scalar_param("alpha"),
                beta: k.scalar_param("beta"),
            },
            order: TileOrder::declare(k),
        }
    }

    /// Returns the accumulators of each row with each column of the warp, reduced over its lanes.
    fn accumulators(
        &self,
        dot: &Dot,
        at: &BlockTile<'k>,
        column: Val<'k, u32>,
    ) -> Vec<Val<'k, f32>> {
        let (k, element) = (self.k, dot.gemm.element);
        // Rows and columns beyond the end are clamped to the last one; their results are dropped.
        let line = |side: usize, nth: Val<'k, u32>, last: Val<'k, u32>| {
            let line = to_u64(nth.min(last - 1));
            let is_strided = side == 0 && dot.a_is_k_strided();
            let line = if is_strided { line } else { line * self.ld[side] };
            let first = to_u64(at.batch) * self.strides[side] + line;
            self.operands[side].at_wide(first * u64::from(element.size()))
        };
        let row = |nth| line(0, k.constant(nth).copied(), self.m);
        let lines = [
            (0..dot.rows()).map(row).collect(),
            (0..dot.columns()).map(|nth| line(1, column + nth, self.n)).collect(),
        ];
        let accumulators: Vec<_> = (0..dot.rows() * dot.columns()).map(|_| k.var(0.0f32)).collect();
        match dot.is_vectorized() {
            true => self.accumulate_vectors(dot, &lines, &accumulators),
            false => self.accumulate_elements(dot, &lines, &accumulators),
        }
        accumulators.iter().map(|sum| k.reduce_warp(sum.get(), 32, |a, b| a + b)).collect()
    }

    /// Accumulates with vector loads, several of them in flight, while all lanes have data; then
    /// the remaining elements one by one.
    fn accumulate_vectors(&self, dot: &Dot, lines: &Lines<'k>, accumulators: &[Var<'k, f32>]) {
        let (k, step, element) = (self.k, dot.step(), dot.gemm.element);
        let k_done = k.var(0u32);
        k.loop_(|exit| {
            exit.break_if((k_done.get() + step).gt(self.k_dim));
            let at =
                to_u64(k_done.get()) * u64::from(element.size()) + to_u64(k.lane()) * VECTOR_BYTES;
            let read = |line: &Ptr<'k, Global, u8>| dot.load(line.at_wide(at));
            let line_words = lines.each_ref().map(|side| side.iter().map(read).collect::<Vec<_>>());
            accumulate(
                &line_words
                    .map(|side| side.into_iter().map(|line| unpack(&line, element)).collect()),
                accumulators,
            );
            k_done.set(k_done.get() + step);
        });
        k.for_range(k_done.get() + k.lane(), self.k_dim, 32, |k_index| {
            let read = |line: &Ptr<'k, Global, u8>| {
                let at = line.at_wide(to_u64(k_index) * u64::from(element.size()));
                vec![load_element(at, element, true)]
            };
            accumulate(&lines.each_ref().map(|side| side.iter().map(read).collect()), accumulators);
        });
    }

    /// Accumulates element by element, with several loads in flight. Elements beyond the end are
    /// zero.
    fn accumulate_elements(&self, dot: &Dot, lines: &Lines<'k>, accumulators: &[Var<'k, f32>]) {
        let (k, element, loads) = (self.k, dot.gemm.element, dot.loads_in_flight());
        let (first, lanes) = match (dot.splits_k_in_block, dot.split_k) {
            (false, _) => (k.lane(), 32),
            (true, 1) => (k.thread_id(), 32 * WARPS),
            (true, split_k) => {
                (k.cluster_rank() * (32 * WARPS) + k.thread_id(), 32 * WARPS * split_k)
            }
        };
        k.for_range(first, self.k_dim, lanes * loads, |first| {
            let k_indices: Vec<_> = (0..loads).map(|nth| first + nth * lanes).collect();
            let in_bounds: Vec<_> =
                k_indices.iter().map(|k_index| k_index.lt(self.k_dim)).collect();
            let side = |side: usize| {
                let is_strided = side == 0 && dot.a_is_k_strided();
                let offset = |k_index: &Val<'k, u32>| {
                    let k_index =
                        if is_strided { to_u64(*k_index) * self.ld[0] } else { to_u64(*k_index) };
                    k_index * u64::from(element.size())
                };
                let offsets: Vec<_> = k_indices.iter().map(offset).collect();
                let read = |line: &Ptr<'k, Global, u8>| {
                    let values = offsets.iter().zip(&in_bounds).map(|(offset, in_bounds)| {
                        load_element_if(line.at_wide(*offset), element, *in_bounds)
                    });
                    values.collect::<Vec<_>>()
                };
                lines[side].iter().map(read).collect::<Vec<_>>()
            };
            accumulate(&[side(0), side(1)], accumulators);
        });
    }

    /// Returns the accumulator whose result this lane stores: that with the lane's index.
    fn lane_sum(&self, accumulators: &[Val<'k, f32>]) -> Val<'k, f32> {
        let lane = self.k.lane();
        (1..)
            .zip(&accumulators[1..])
            .fold(accumulators[0], |own, (nth, sum)| lane.eq(nth).select(*sum, own))
    }

    /// Returns the accumulator with the lane's index, reduced over all warps of the block through
    /// shared memory.
    fn reduce_block(&self, accumulators: &[Val<'k, f32>]) -> Val<'k, f32> {
        let (k, lane) = (self.k, self.k.lane());
        let memory = k.shared::<f32>(32 * WARPS, 16).at(lane);
        memory.at(k.warp() * 32).store(self.lane_sum(accumulators));
        k.sync();
        (1..WARPS).fold(memory.load(), |sum, warp| sum + memory.at(warp * 32).load())
    }

    /// Writes the body of a block whose warps split K.
    fn write_splitting_block(&self, dot: &Dot, at: &BlockTile<'k>) {
        let (k, lane) = (self.k, self.k.lane());
        let values = dot.rows() * dot.columns();
        let receive = (dot.split_k > 1).then(|| ReceiveBuffer::new(k, dot.split_k, values));
        let sum = self.reduce_block(&self.accumulators(dot, at, at.column));
        let finish = |sum| self.finish_lane(dot, at, at.column, sum);
        receive.iter().for_each(|_| k.wait_cluster());
        k.if_then(k.warp().eq(0), || match receive {
            None => finish(sum),
            Some(receive) => {
                k.if_then(lane.lt(values), || receive.send(lane, sum));
                receive.in_first_block(|| finish(receive.sum_over_blocks(lane.min(values - 1))));
            }
        });
    }

    /// Stores the results, one per lane.
    fn finish_lane(&self, dot: &Dot, at: &BlockTile<'k>, first: Val<'k, u32>, sum: Val<'k, f32>) {
        let lane = self.k.lane();
        self.finish(dot, at, [lane / dot.columns(), first + lane % dot.columns()], sum);
    }

    /// Applies the epilogue to a sum and stores the result.
    fn finish(
        &self,
        dot: &Dot,
        at: &BlockTile<'k>,
        [row, column]: [Val<'k, u32>; 2],
        sum: Val<'k, f32>,
    ) {
        let (element, epilogue) = (dot.gemm.output, &dot.gemm.epilogue);
        self.k.if_then(row.lt(self.m) & column.lt(self.n), || {
            let [row_stride, column_stride, batch_stride] = self.out_strides;
            let size = u64::from(element.size());
            let to = to_u64(at.batch) * batch_stride
                + to_u64(row) * row_stride
                + to_u64(column) * column_stride;
            let to = self.out.at_wide(to * size);
            let bias_index = if dot.transposed { row } else { column };
            let bias = self
                .bias
                .map(|bias| load_element(bias.at_wide(to_u64(bias_index) * size), element, true));
            let previous = epilogue.reads_out().then(|| load_element(to, element, false));
            let value = self.scalars.finish(epilogue.activation, sum, previous, bias);
            store_element(to, element, value);
        });
    }
}

impl Dot {
    /// Loads per row, of vectors or of single elements, that are in flight.
    fn loads_in_flight(&self) -> u32 {
        match (self.is_vectorized(), self.rows()) {
            (true, 1 | 2) => 4,
            (true, 8) if self.gemm.element.size() == 2 => 1,
            (true, _) => 2,
            (false, 1 | 2) => 8,
            (false, _) if self.b_is_row_major() => 8,
            (false, _) => 4,
        }
    }

    /// Elements along K that a warp loads per iteration with vector loads.
    fn step(&self) -> u32 {
        32 * self.loads_in_flight() * VECTOR_BYTES as u32 / self.gemm.element.size()
    }

    /// Loads the words of a row that a lane processes in an iteration. The warp's loads are
    /// coalesced.
    fn load<'k>(&self, at: Ptr<'k, Global, u8>) -> Vec<Val<'k, u32>> {
        let load = |nth: u32| at.offset(i64::from(nth) * 32 * VECTOR_BYTES as i64);
        let words = |nth| load(nth).cast().load_constant_vector::<4>();
        (0..self.loads_in_flight()).flat_map(words).collect()
    }
}

fn unpack<'k>(words: &[Val<'k, u32>], element: PtxType) -> Vec<Val<'k, f32>> {
    words.iter().flat_map(|word| unpack_word(*word, element)).collect()
}

/// Unpacks a word into its elements, as `f32`.
fn unpack_word(word: Val<'_, u32>, element: PtxType) -> Vec<Val<'_, f32>> {
    match element {
        PtxType::F16 => [word, word >> 16].map(f16_from_low_bits).into(),
        PtxType::Bf16 => vec![(word << 16).cast(), (word & 0xffff_0000).cast()],
        _ => vec![word.cast()],
    }
}

/// Converts the `f16` in the low bits of a word.
fn f16_from_low_bits(word: Val<'_, u32>) -> Val<'_, f32> {
    word.convert::<u16>("").cast::<F16>().convert("")
}

/// Accumulates the products of each row with each column.
fn accumulate<'k>([rows, columns]: &[Vec<Vec<Val<'k, f32>>>; 2], accumulators: &[Var<'k, f32>]) {
    let pairs = rows.iter().flat_map(|row| columns.iter().map(move |column| (row, column)));
    for ((row, column), sum) in pairs.zip(accumulators) {
        for (a, b) in row.iter().zip(column) {
            sum.set(a.mul_add(*b, sum.get()));
        }
    }
}
