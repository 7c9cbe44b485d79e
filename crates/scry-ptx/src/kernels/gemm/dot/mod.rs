//! Skinny GEMM on CUDA cores: at most [`ROWS`] rows of `a`, both operands K-major. Each warp
//! computes one or two columns of the result, and reads each column of `b` once.
//!
//! The kernel is memory-bound: `a` stays in L1 and L2, and each element of `b` is loaded from
//! device memory once, 16 bytes per lane. This is the GEMV of decoding with a model's weights.
//!
//! Rows that are not 16-byte aligned are loaded element by element, and so are operands that are
//! not K-major. With few columns, the warps of a block split K (`smem`), and for large K the blocks
//! of a cluster do too where clusters exist. Columns that are strided along K are read by
//! neighbouring lanes ([`strided_columns`]).

mod cluster_reduce;
mod strided_columns;

use super::epilogue::EpilogueScalars;
use super::memory::{load_number, load_number_where, store_number, wide};
use super::rasterization::{Division, Place, TileOrder, tile_of_cluster};
use super::{Gemm, Layout, MatrixLayout};
use crate::kernels::name::Name;
use crate::kernels::{
    BufferParameter, GpuSpec, KernelInterface, LaunchShape, Parameter, PtxKernel,
};
use crate::module::PtxEntry;
use crate::target::Target;
use crate::typed::{self, Code, F16, Global, Ptr, Val, Var};
use crate::types::PtxType;
use cluster_reduce::ReceiveBuffer;

/// Maximum number of rows.
pub(super) const ROWS: u64 = 8;
/// Warps per block.
const WARPS: u32 = 8;
/// Maximum number of blocks that split K for the same columns.
const MAX_SPLIT_K: u32 = 8;
/// Load rounds that a small grid may wait for memory before the tensor-core path, with its
/// repacking kernels, is faster.
const ROUNDS: u64 = 8;
/// Number of columns above which eight rows are faster on tensor cores.
const MAX_COLUMNS_8_ROWS: u64 = 1 << 21;
/// Bytes per vector load.
const VECTOR_BYTES: u64 = 16;

/// A GEMM of at most [`ROWS`] rows.
#[derive(Debug, Clone)]
pub(super) struct Dot {
    gemm: Gemm,
    buffers: Vec<BufferParameter>,
    /// Whether the GEMM was transposed, so that the bias is per row.
    transposed: bool,
    /// Whether the warps of a block split K for the same columns.
    shared: bool,
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
        let mut dot = Self { gemm: *gemm, buffers, transposed, shared: false, split_k: 1 };
        let most = 4 * u64::from(gpu.multiprocessors);
        dot.shared = !dot.is_vectorized() && (dot.b_is_row_major() || dot.blocks() < most);
        if dot.shared && gpu.target.has(90) {
            let wanted =
                gemm.k.div_ceil(dot.at_once()).min(MAX_SPLIT_K.into()).min(most / dot.blocks());
            dot.split_k = 1 << wanted.max(1).ilog2();
        }
        dot
    }

    /// Whether this kernel supports the GEMM.
    pub(super) fn supports(gemm: &Gemm) -> bool {
        gemm.m <= ROWS
    }

    /// Whether element-wise loads are faster than repacking the operands for tensor cores.
    pub(super) fn is_faster_unaligned(gemm: &Gemm, gpu: GpuSpec) -> bool {
        let mut dot = Self::new(gemm, Vec::new(), false, gpu);
        let many = gemm.n >= 2 * u64::from(gpu.multiprocessors);
        dot.split_k = if gpu.target.has(90) { MAX_SPLIT_K } else { 1 };
        let few = gemm.n.saturating_mul(gemm.k) <= MAX_COLUMNS_8_ROWS && !dot.b_is_row_major();
        let light = dot.rows() < 8 || few;
        light && (many || gemm.k <= ROUNDS * dot.at_once() * u64::from(dot.split_k))
    }

    /// Blocks per matrix of the batch, not counting those that split K.
    fn blocks(&self) -> u64 {
        let blocks = self.gemm.n.div_ceil(self.block_columns().into());
        blocks.saturating_mul(self.gemm.batch).max(1)
    }

    /// Elements along K that a block which splits K has in flight.
    fn at_once(&self) -> u64 {
        let lanes = if self.b_is_row_major() { 1 } else { 32 };
        u64::from(lanes * WARPS * self.loads())
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
        self.columns() * if self.shared { 1 } else { WARPS }
    }

    /// Rows that the kernel is unrolled for.
    fn rows(&self) -> u32 {
        (self.gemm.m as u32).next_power_of_two()
    }

    /// Columns per warp: several with many rows, so that they share the loads of `a`.
    fn columns(&self) -> u32 {
        if self.rows() == 1 { 1 } else { 2 }
    }

    /// Whether rows are 16-byte aligned, so that vector loads can be used.
    fn is_vectorized(&self) -> bool {
        let size = u64::from(self.gemm.element.size());
        let whole = |layout: &MatrixLayout| {
            [layout.ld, layout.stride].iter().all(|n| n.is_multiple_of(16 / size))
        };
        let along = !self.a_is_k_strided() && !self.b_is_row_major();
        along && whole(&self.gemm.a) && whole(&self.gemm.b)
    }

    pub(super) fn division(&self) -> Division {
        Division::new(&self.gemm, [self.rows(), self.block_columns()], 1, 1)
    }

    /// Row and column stride of the result, in elements.
    fn distances(&self) -> [u64; 2] {
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
        let name = match (self.shared, self.split_k) {
            (false, _) => name,
            (true, 1) => name.with("smem"),
            (true, split_k) => name.with(format_args!("splitk{split_k}")),
        };
        epilogue.named(name, self.transposed).build()
    }

    fn default_target(&self) -> Target {
        if self.split_k > 1 { Target::SM_90 } else { Target::SM_80 }
    }

    fn write(&self, target: Target) -> PtxEntry {
        let block = [32 * WARPS, 1, 1];
        let mut kernel = typed::kernel(&self.name(), target, block, |k| {
            let terms = Terms::declare(k, self);
            let size = [self.rows(), self.block_columns()];
            let at = tile_of_cluster(k, &terms.order, size, self.split_k);
            if self.b_is_row_major() {
                return strided_columns::write(&terms, self, &at);
            } else if self.shared {
                return terms.shared(self, &at);
            }
            let column = at.column + (k.thread_id() >> 5) * self.columns();
            k.when(column.lt(terms.n), || {
                let sum = terms.of_lane(&terms.accumulators(self, &at, column));
                terms.finish_lane(self, &at, column, sum);
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
        parameters.extend([*m, *n, *k].map(|side| Parameter::U32(side as u32)));
        let [row, column] = self.distances();
        let distances = [a.ld, b.ld, a.stride, b.stride, row, column, out.stride];
        parameters.extend(distances.map(Parameter::U64));
        parameters.extend([epilogue.alpha, epilogue.beta].map(Parameter::F32));
        parameters.extend(self.division().parameters());
        KernelInterface { buffers: self.buffers.clone(), parameters }
    }
}

/// The kernel's parameters.
struct Terms<'k> {
    k: &'k Code,
    operands: [Ptr<'k, Global, u8>; 2],
    bias: Option<Ptr<'k, Global, u8>>,
    out: Ptr<'k, Global, u8>,
    m: Val<'k, u32>,
    n: Val<'k, u32>,
    k_dim: Val<'k, u32>,
    ld: [Val<'k, u64>; 2],
    strides: [Val<'k, u64>; 2],
    /// Row, column and batch stride of the result, in elements.
    to: [Val<'k, u64>; 3],
    scalars: EpilogueScalars<'k>,
    order: TileOrder<'k>,
}

/// Pointers to the rows and columns that a warp multiplies.
type Lines<'k> = [Vec<Ptr<'k, Global, u8>>; 2];

impl<'k> Terms<'k> {
    fn declare(k: &'k Code, dot: &Dot) -> Self {
        let operands = [k.pointer("a"), k.pointer("b")];
        let bias = dot.gemm.epilogue.bias.then(|| k.pointer("bias"));
        Self {
            k,
            operands,
            bias,
            out: k.pointer("out"),
            m: k.number("m"),
            n: k.number("n"),
            k_dim: k.number("k"),
            ld: ["a_leading", "b_leading"].map(|name| k.number(name)),
            strides: ["a_stride", "b_stride"].map(|name| k.number(name)),
            to: ["to_row", "to_column", "to_product"].map(|name| k.number(name)),
            scalars: EpilogueScalars { alpha: k.number("alpha"), beta: k.number("beta") },
            order: TileOrder::declare(k),
        }
    }

    /// Returns the accumulators of each row with each column of the warp, reduced over its lanes.
    fn accumulators(&self, dot: &Dot, at: &Place<'k>, column: Val<'k, u32>) -> Vec<Val<'k, f32>> {
        let (k, element) = (self.k, dot.gemm.element);
        // Rows and columns beyond the end are clamped to the last one; their results are dropped.
        let line = |side: usize, nth: Val<'k, u32>, last: Val<'k, u32>| {
            let line = wide(nth.min(last - 1));
            let next_to = side == 0 && dot.a_is_k_strided();
            let line = if next_to { line } else { line * self.ld[side] };
            let first = wide(at.batch) * self.strides[side] + line;
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

    /// Accumulates with vector loads while all lanes have data, several loads in flight; then the
    /// rest element by element.
    fn accumulate_vectors(&self, dot: &Dot, lines: &Lines<'k>, accumulators: &[Var<'k, f32>]) {
        let (k, step, element) = (self.k, dot.step(), dot.gemm.element);
        let done = k.var(0u32);
        k.repeat(|exit| {
            exit.when((done.get() + step).gt(self.k_dim));
            let at = wide(done.get()) * u64::from(element.size()) + wide(k.lane()) * VECTOR_BYTES;
            let read = |line: &Ptr<'k, Global, u8>| dot.read(line.at_wide(at));
            let all = lines.each_ref().map(|side| side.iter().map(read).collect::<Vec<_>>());
            add(
                &all.map(|side| side.into_iter().map(|line| numbers(&line, element)).collect()),
                accumulators,
            );
            done.set(done.get() + step);
        });
        k.for_range(done.get() + k.lane(), self.k_dim, 32, |k_index| {
            let read = |line: &Ptr<'k, Global, u8>| {
                let at = line.at_wide(wide(k_index) * u64::from(element.size()));
                vec![load_number(at, element, true)]
            };
            add(&lines.each_ref().map(|side| side.iter().map(read).collect()), accumulators);
        });
    }

    /// Accumulates element by element, several loads in flight; beyond the end elements are zero.
    fn accumulate_elements(&self, dot: &Dot, lines: &Lines<'k>, accumulators: &[Var<'k, f32>]) {
        let (k, element, loads) = (self.k, dot.gemm.element, dot.loads());
        let (first, lanes) = match (dot.shared, dot.split_k) {
            (false, _) => (k.lane(), 32),
            (true, 1) => (k.thread_id(), 32 * WARPS),
            (true, split_k) => {
                (k.cluster_rank() * (32 * WARPS) + k.thread_id(), 32 * WARPS * split_k)
            }
        };
        k.for_range(first, self.k_dim, lanes * loads, |first| {
            let places: Vec<_> = (0..loads).map(|nth| first + nth * lanes).collect();
            let there: Vec<_> = places.iter().map(|k_index| k_index.lt(self.k_dim)).collect();
            let side = |side: usize| {
                let apart = side == 0 && dot.a_is_k_strided();
                let offset = |k_index: &Val<'k, u32>| {
                    let k_index = if apart { wide(*k_index) * self.ld[0] } else { wide(*k_index) };
                    k_index * u64::from(element.size())
                };
                let offsets: Vec<_> = places.iter().map(offset).collect();
                let read = |line: &Ptr<'k, Global, u8>| {
                    let numbers = offsets.iter().zip(&there).map(|(offset, there)| {
                        load_number_where(line.at_wide(*offset), element, *there)
                    });
                    numbers.collect::<Vec<_>>()
                };
                lines[side].iter().map(read).collect::<Vec<_>>()
            };
            add(&[side(0), side(1)], accumulators);
        });
    }

    /// Returns the sum whose result this lane writes.
    fn of_lane(&self, accumulators: &[Val<'k, f32>]) -> Val<'k, f32> {
        let lane = self.k.lane();
        (1..)
            .zip(&accumulators[1..])
            .fold(accumulators[0], |mine, (nth, sum)| lane.equals(nth).select(*sum, mine))
    }

    /// Returns the same sum, reduced over all warps of the block through shared memory.
    fn reduce_block(&self, accumulators: &[Val<'k, f32>]) -> Val<'k, f32> {
        let (k, lane) = (self.k, self.k.lane());
        let memory = k.shared::<f32>(32 * WARPS, 16).at(lane);
        memory.at(k.warp() * 32).store(self.of_lane(accumulators));
        k.sync();
        (1..WARPS).fold(memory.load(), |sum, warp| sum + memory.at(warp * 32).load())
    }

    /// Writes the body of a block whose warps split K.
    fn shared(&self, dot: &Dot, at: &Place<'k>) {
        let (k, lane) = (self.k, self.k.lane());
        let values = dot.rows() * dot.columns();
        let receive = (dot.split_k > 1).then(|| ReceiveBuffer::new(k, dot.split_k, values));
        let sum = self.reduce_block(&self.accumulators(dot, at, at.column));
        let finish = |sum| self.finish_lane(dot, at, at.column, sum);
        receive.iter().for_each(|_| k.wait_cluster());
        k.when(k.warp().equals(0), || match receive {
            None => finish(sum),
            Some(receive) => {
                k.when(lane.lt(values), || receive.send(lane, sum));
                receive.at_first(|| finish(receive.total(lane.min(values - 1))));
            }
        });
    }

    /// Writes the results, one row and column per lane.
    fn finish_lane(&self, dot: &Dot, at: &Place<'k>, first: Val<'k, u32>, sum: Val<'k, f32>) {
        let lane = self.k.lane();
        self.finish(dot, at, [lane / dot.columns(), first + lane % dot.columns()], sum);
    }

    /// Applies the epilogue to a sum and stores the result.
    fn finish(
        &self,
        dot: &Dot,
        at: &Place<'k>,
        [row, column]: [Val<'k, u32>; 2],
        sum: Val<'k, f32>,
    ) {
        let (element, epilogue) = (dot.gemm.output, &dot.gemm.epilogue);
        self.k.when(row.lt(self.m) & column.lt(self.n), || {
            let [of_row, of_column, of_product] = self.to;
            let size = u64::from(element.size());
            let to = wide(at.batch) * of_product + wide(row) * of_row + wide(column) * of_column;
            let to = self.out.at_wide(to * size);
            let biased = if dot.transposed { row } else { column };
            let bias =
                self.bias.map(|bias| load_number(bias.at_wide(wide(biased) * size), element, true));
            let previous = epilogue.reads_out().then(|| load_number(to, element, false));
            let value = self.scalars.finish(epilogue.activation, sum, previous, bias);
            store_number(to, element, value);
        });
    }
}

impl Dot {
    /// Vector loads per row that are in flight.
    fn loads(&self) -> u32 {
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
        32 * self.loads() * VECTOR_BYTES as u32 / self.gemm.element.size()
    }

    /// Loads a lane's words of a row in an iteration. The warp's loads are coalesced.
    fn read<'k>(&self, at: Ptr<'k, Global, u8>) -> Vec<Val<'k, u32>> {
        let load = |nth: u32| at.offset(i64::from(nth) * 32 * VECTOR_BYTES as i64);
        let words = |nth| load(nth).cast().load_constant_vector::<4>();
        (0..self.loads()).flat_map(words).collect()
    }
}

fn numbers<'k>(words: &[Val<'k, u32>], element: PtxType) -> Vec<Val<'k, f32>> {
    words.iter().flat_map(|word| unpacked(*word, element)).collect()
}

/// Unpacks a word into its elements, as `f32`.
fn unpacked(word: Val<'_, u32>, element: PtxType) -> Vec<Val<'_, f32>> {
    match element {
        PtxType::F16 => [word, word >> 16].map(half).into(),
        PtxType::Bf16 => vec![(word << 16).cast(), (word & 0xffff_0000).cast()],
        _ => vec![word.cast()],
    }
}

/// Converts the `f16` in the low bits of a word.
fn half(word: Val<'_, u32>) -> Val<'_, f32> {
    word.convert::<u16>("").cast::<F16>().convert("")
}

/// Accumulates the products of each row with each column.
fn add<'k>([rows, columns]: &[Vec<Vec<Val<'k, f32>>>; 2], accumulators: &[Var<'k, f32>]) {
    let pairs = rows.iter().flat_map(|row| columns.iter().map(move |column| (row, column)));
    for ((row, column), sum) in pairs.zip(accumulators) {
        for (a, b) in row.iter().zip(column) {
            sum.set(a.mul_add(*b, sum.get()));
        }
    }
}
