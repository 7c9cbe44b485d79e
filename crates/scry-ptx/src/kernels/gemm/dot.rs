//! Products of a few rows with many columns, both of which lie along K: a warp
//! computes the results of one or two columns, which it reads once.
//!
//! Memory limits it: the rows stay in the caches, so that each element of the columns comes from
//! memory once, 16 bytes for a lane at a time. This is what decoding with a model's weights asks
//! for, one line of weights for each result.
//!
//! Lines that begin anywhere are read number by number, and so are rows that lie across K. If there
//! are few columns then, the warps of a block share them, each a part of the depth; and of deep
//! products the blocks of a cluster do, where there are clusters. Columns that lie across K are
//! read by neighbouring lanes ([`across`]).

mod cluster_reduce;
mod strided_columns;

use super::epilogue::Factors;
use super::memory::{load_number, load_number_where, store_number, wide};
use super::rasterization::{Division, Place, TileOrder, tile_of_team};
use super::{Gemm, Layout, Order};
use crate::kernels::name::Name;
use crate::kernels::{
    BufferParameter, GpuSpec, KernelInterface, LaunchShape, Parameter, PtxKernel,
};
use crate::module::PtxEntry;
use crate::target::Target;
use crate::typed::{self, Code, F16, Global, Ptr, Val, Var};
use crate::types::PtxType;
use cluster_reduce::Inbox;

/// Rows at most.
pub(super) const ROWS: u64 = 8;
/// Warps of a block.
const WARPS: u32 = 8;
/// Blocks that share columns, at most.
const TEAM: u32 = 8;
/// Times that few blocks can wait for memory as long as tensor cores would take, with all that
/// comes before.
const ROUNDS: u64 = 8;
/// Numbers of columns beyond which eight rows are too many for CUDA cores.
const MANY: u64 = 1 << 21;
/// Bytes of a load.
const PIECE: u64 = 16;

/// A product of at most [`ROWS`] rows.
#[derive(Debug, Clone)]
pub(super) struct Dot {
    gemm: Gemm,
    buffers: Vec<BufferParameter>,
    /// Whether the product was transposed, so that the bias is one of rows.
    flipped: bool,
    /// Whether the warps of a block share columns.
    shared: bool,
    /// Blocks that do.
    team: u32,
}

impl Dot {
    pub(super) fn new(
        gemm: &Gemm,
        buffers: Vec<BufferParameter>,
        flipped: bool,
        machine: GpuSpec,
    ) -> Self {
        let mut dot = Self { gemm: *gemm, buffers, flipped, shared: false, team: 1 };
        let most = 4 * u64::from(machine.multiprocessors);
        dot.shared = !dot.by_pieces() && (dot.has_columns_across() || dot.blocks() < most);
        if dot.shared && machine.target.has(90) {
            let wanted = gemm.k.div_ceil(dot.at_once()).min(TEAM.into()).min(most / dot.blocks());
            dot.team = 1 << wanted.max(1).ilog2();
        }
        dot
    }

    /// Whether a product is one of these.
    pub(super) fn takes(gemm: &Gemm) -> bool {
        gemm.m <= ROWS
    }

    /// Whether numbers are multiplied one by one sooner than they are copied to lines that tensor
    /// cores take, and multiplied there.
    pub(super) fn is_soon(gemm: &Gemm, machine: GpuSpec) -> bool {
        let mut dot = Self::new(gemm, Vec::new(), false, machine);
        let many = gemm.n >= 2 * u64::from(machine.multiprocessors);
        dot.team = if machine.target.has(90) { TEAM } else { 1 };
        let few = gemm.n.saturating_mul(gemm.k) <= MANY && !dot.has_columns_across();
        let light = dot.rows() < 8 || few;
        light && (many || gemm.k <= ROUNDS * dot.at_once() * u64::from(dot.team))
    }

    /// Blocks of one product, without those that share columns.
    fn blocks(&self) -> u64 {
        let blocks = self.gemm.n.div_ceil(self.block_columns().into());
        blocks.saturating_mul(self.gemm.batch).max(1)
    }

    /// Depth of what a block that shares columns has under way.
    fn at_once(&self) -> u64 {
        let lanes = if self.has_columns_across() { 1 } else { 32 };
        u64::from(lanes * WARPS * self.loads())
    }

    /// Whether columns lie across K.
    fn has_columns_across(&self) -> bool {
        self.gemm.b.order == Order::Rows
    }

    /// Whether rows lie across K.
    fn is_across(&self) -> bool {
        self.gemm.a.order == Order::Columns
    }

    /// Columns of a block.
    fn block_columns(&self) -> u32 {
        if self.has_columns_across() {
            return strided_columns::COLUMNS;
        }
        self.columns() * if self.shared { 1 } else { WARPS }
    }

    /// Rows that the text has.
    fn rows(&self) -> u32 {
        (self.gemm.m as u32).next_power_of_two()
    }

    /// Columns of a warp: several share what is read of the rows, which is much if there are many.
    fn columns(&self) -> u32 {
        if self.rows() == 1 { 1 } else { 2 }
    }

    /// Whether lines begin at multiples of 16 bytes.
    fn by_pieces(&self) -> bool {
        let size = u64::from(self.gemm.element.size());
        let whole = |layout: &Layout| {
            [layout.leading, layout.stride].iter().all(|n| n.is_multiple_of(16 / size))
        };
        let along = !self.is_across() && !self.has_columns_across();
        along && whole(&self.gemm.a) && whole(&self.gemm.b)
    }

    pub(super) fn division(&self) -> Division {
        Division::new(&self.gemm, [self.rows(), self.block_columns()], 1, 1)
    }

    /// Elements from one row of the results to the next, and from one column.
    fn distances(&self) -> [u64; 2] {
        let out = &self.gemm.out;
        if out.order == Order::Rows { [out.leading, 1] } else { [1, out.leading] }
    }
}

impl PtxKernel for Dot {
    fn name(&self) -> String {
        let Gemm { element, output, epilogue, .. } = &self.gemm;
        let name = Name::new("gemm_dot").types(*element, *output);
        let name = name.layout(!self.is_across(), !self.has_columns_across());
        let name = name.with(format_args!("m{}", self.rows())).with_if(self.by_pieces(), "vec");
        let name = match (self.shared, self.team) {
            (false, _) => name,
            (true, 1) => name.with("smem"),
            (true, team) => name.with(format_args!("splitk{team}")),
        };
        epilogue.named(name, self.flipped).build()
    }

    fn default_target(&self) -> Target {
        if self.team > 1 { Target::SM_90 } else { Target::SM_80 }
    }

    fn write(&self, target: Target) -> PtxEntry {
        let block = [32 * WARPS, 1, 1];
        let mut kernel = typed::kernel(&self.name(), target, block, |k| {
            let terms = Terms::declare(k, self);
            let size = [self.rows(), self.block_columns()];
            let at = tile_of_team(k, &terms.order, size, self.team);
            if self.has_columns_across() {
                return strided_columns::write(&terms, self, &at);
            } else if self.shared {
                return terms.shared(self, &at);
            }
            let column = at.column + (k.thread_id() >> 5) * self.columns();
            k.when(column.lt(terms.n), || {
                let sum = terms.of_lane(&terms.sums(self, &at, column));
                terms.finish_lane(self, &at, column, sum);
            });
        });
        kernel.cluster = (self.team > 1).then_some([self.team, 1, 1]);
        kernel
    }

    fn launch(&self) -> LaunchShape {
        let grid = self.division().grid().expect("it was checked when the kernel was chosen");
        let [blocks, y, z] = grid;
        let block = [32 * WARPS, 1, 1];
        LaunchShape { grid: [blocks * self.team, y, z], block, dynamic_shared: 0 }
    }

    fn interface(&self) -> KernelInterface {
        let Gemm { m, n, k, a, b, out, epilogue, .. } = &self.gemm;
        let mut parameters: Vec<_> = (0..self.buffers.len()).map(Parameter::Pointer).collect();
        parameters.extend([*m, *n, *k].map(|side| Parameter::U32(side as u32)));
        let [row, column] = self.distances();
        let distances = [a.leading, b.leading, a.stride, b.stride, row, column, out.stride];
        parameters.extend(distances.map(Parameter::U64));
        parameters.extend([epilogue.alpha, epilogue.beta].map(Parameter::F32));
        parameters.extend(self.division().parameters());
        KernelInterface { buffers: self.buffers.clone(), parameters }
    }
}

/// The parameters.
struct Terms<'k> {
    k: &'k Code,
    operands: [Ptr<'k, Global, u8>; 2],
    bias: Option<Ptr<'k, Global, u8>>,
    out: Ptr<'k, Global, u8>,
    m: Val<'k, u32>,
    n: Val<'k, u32>,
    depth: Val<'k, u32>,
    leading: [Val<'k, u64>; 2],
    strides: [Val<'k, u64>; 2],
    /// Elements from one row of the results to the next, from one column, and from one product.
    to: [Val<'k, u64>; 3],
    factors: Factors<'k>,
    order: TileOrder<'k>,
}

/// Lines that a warp multiplies: the rows, and its columns.
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
            depth: k.number("k"),
            leading: ["a_leading", "b_leading"].map(|name| k.number(name)),
            strides: ["a_stride", "b_stride"].map(|name| k.number(name)),
            to: ["to_row", "to_column", "to_product"].map(|name| k.number(name)),
            factors: Factors { alpha: k.number("alpha"), beta: k.number("beta") },
            order: TileOrder::declare(k),
        }
    }

    /// Sums of each row with each column of the warp; all lanes have them.
    fn sums(&self, dot: &Dot, at: &Place<'k>, column: Val<'k, u32>) -> Vec<Val<'k, f32>> {
        let (k, element) = (self.k, dot.gemm.element);
        // Lines beyond the end are replaced by the last one: results of them are dropped.
        let line = |side: usize, nth: Val<'k, u32>, last: Val<'k, u32>| {
            let line = wide(nth.min(last - 1));
            let next_to = side == 0 && dot.is_across();
            let line = if next_to { line } else { line * self.leading[side] };
            let first = wide(at.batch) * self.strides[side] + line;
            self.operands[side].at_wide(first * u64::from(element.size()))
        };
        let row = |nth| line(0, k.constant(nth).copied(), self.m);
        let lines = [
            (0..dot.rows()).map(row).collect(),
            (0..dot.columns()).map(|nth| line(1, column + nth, self.n)).collect(),
        ];
        let sums: Vec<_> = (0..dot.rows() * dot.columns()).map(|_| k.var(0.0f32)).collect();
        match dot.by_pieces() {
            true => self.add_pieces(dot, &lines, &sums),
            false => self.add_numbers(dot, &lines, &sums),
        }
        sums.iter().map(|sum| k.reduce_warp(sum.get(), 32, |a, b| a + b)).collect()
    }

    /// Adds what there is for all lanes, several loads at a time so that memory is busy; then the
    /// rest number by number.
    fn add_pieces(&self, dot: &Dot, lines: &Lines<'k>, sums: &[Var<'k, f32>]) {
        let (k, step, element) = (self.k, dot.step(), dot.gemm.element);
        let done = k.var(0u32);
        k.repeat(|exit| {
            exit.when((done.get() + step).gt(self.depth));
            let at = wide(done.get()) * u64::from(element.size()) + wide(k.lane()) * PIECE;
            let read = |line: &Ptr<'k, Global, u8>| dot.read(line.at_wide(at));
            let all = lines.each_ref().map(|side| side.iter().map(read).collect::<Vec<_>>());
            add(
                &all.map(|side| side.into_iter().map(|line| numbers(&line, element)).collect()),
                sums,
            );
            done.set(done.get() + step);
        });
        k.for_range(done.get() + k.lane(), self.depth, 32, |depth| {
            let read = |line: &Ptr<'k, Global, u8>| {
                let at = line.at_wide(wide(depth) * u64::from(element.size()));
                vec![load_number(at, element, true)]
            };
            add(&lines.each_ref().map(|side| side.iter().map(read).collect()), sums);
        });
    }

    /// Adds number by number, several at a time; beyond the end there are zeros.
    fn add_numbers(&self, dot: &Dot, lines: &Lines<'k>, sums: &[Var<'k, f32>]) {
        let (k, element, loads) = (self.k, dot.gemm.element, dot.loads());
        let (first, lanes) = match (dot.shared, dot.team) {
            (false, _) => (k.lane(), 32),
            (true, 1) => (k.thread_id(), 32 * WARPS),
            (true, team) => (k.cluster_rank() * (32 * WARPS) + k.thread_id(), 32 * WARPS * team),
        };
        k.for_range(first, self.depth, lanes * loads, |first| {
            let places: Vec<_> = (0..loads).map(|nth| first + nth * lanes).collect();
            let there: Vec<_> = places.iter().map(|depth| depth.lt(self.depth)).collect();
            let side = |side: usize| {
                let apart = side == 0 && dot.is_across();
                let offset = |depth: &Val<'k, u32>| {
                    let depth = if apart { wide(*depth) * self.leading[0] } else { wide(*depth) };
                    depth * u64::from(element.size())
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
            add(&[side(0), side(1)], sums);
        });
    }

    /// The sum of which this lane writes the result.
    fn of_lane(&self, sums: &[Val<'k, f32>]) -> Val<'k, f32> {
        let lane = self.k.lane();
        (1..).zip(&sums[1..]).fold(sums[0], |mine, (nth, sum)| lane.equals(nth).select(*sum, mine))
    }

    /// The same, of what all warps have.
    fn together(&self, sums: &[Val<'k, f32>]) -> Val<'k, f32> {
        let (k, lane) = (self.k, self.k.lane());
        let memory = k.shared::<f32>(32 * WARPS, 16).at(lane);
        memory.at(k.warp() * 32).store(self.of_lane(sums));
        k.sync();
        (1..WARPS).fold(memory.load(), |sum, warp| sum + memory.at(warp * 32).load())
    }

    /// What a block does that shares columns.
    fn shared(&self, dot: &Dot, at: &Place<'k>) {
        let (k, lane) = (self.k, self.k.lane());
        let values = dot.rows() * dot.columns();
        let inbox = (dot.team > 1).then(|| Inbox::new(k, dot.team, values));
        let sum = self.together(&self.sums(dot, at, at.column));
        let finish = |sum| self.finish_lane(dot, at, at.column, sum);
        inbox.iter().for_each(|_| k.wait_cluster());
        k.when(k.warp().equals(0), || match inbox {
            None => finish(sum),
            Some(inbox) => {
                k.when(lane.lt(values), || inbox.send(lane, sum));
                inbox.at_first(|| finish(inbox.total(lane.min(values - 1))));
            }
        });
    }

    /// Writes the results: those of each row and column by a lane of its own.
    fn finish_lane(&self, dot: &Dot, at: &Place<'k>, first: Val<'k, u32>, sum: Val<'k, f32>) {
        let lane = self.k.lane();
        self.finish(dot, at, [lane / dot.columns(), first + lane % dot.columns()], sum);
    }

    /// Writes a result.
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
            let biased = if dot.flipped { row } else { column };
            let bias =
                self.bias.map(|bias| load_number(bias.at_wide(wide(biased) * size), element, true));
            let was = epilogue.reads().then(|| load_number(to, element, false));
            let value = self.factors.finish(epilogue.activation, sum, was, bias);
            store_number(to, element, value);
        });
    }
}

impl Dot {
    /// Loads of a line at a time.
    fn loads(&self) -> u32 {
        match (self.by_pieces(), self.rows()) {
            (true, 1 | 2) => 4,
            (true, 8) if self.gemm.element.size() == 2 => 1,
            (true, _) => 2,
            (false, 1 | 2) => 8,
            (false, _) if self.has_columns_across() => 8,
            (false, _) => 4,
        }
    }

    /// Depth of what a warp reads in pieces at a time.
    fn step(&self) -> u32 {
        32 * self.loads() * PIECE as u32 / self.gemm.element.size()
    }

    /// The words that a lane reads of a line in a step; those of the warp's lanes lie one after the
    /// other.
    fn read<'k>(&self, at: Ptr<'k, Global, u8>) -> Vec<Val<'k, u32>> {
        let load = |nth: u32| at.offset(i64::from(nth) * 32 * PIECE as i64);
        let words = |nth| load(nth).cast().load_constant_vector::<4>();
        (0..self.loads()).flat_map(words).collect()
    }
}

fn numbers<'k>(words: &[Val<'k, u32>], element: PtxType) -> Vec<Val<'k, f32>> {
    words.iter().flat_map(|word| unpacked(*word, element)).collect()
}

/// The numbers in a word.
fn unpacked(word: Val<'_, u32>, element: PtxType) -> Vec<Val<'_, f32>> {
    match element {
        PtxType::F16 => [word, word >> 16].map(half).into(),
        PtxType::Bf16 => vec![(word << 16).cast(), (word & 0xffff_0000).cast()],
        _ => vec![word.cast()],
    }
}

/// The f16 in the low bits of a word.
fn half(word: Val<'_, u32>) -> Val<'_, f32> {
    word.convert::<u16>("").cast::<F16>().convert("")
}

/// Adds the products of each row with each column to their sum.
fn add<'k>([rows, columns]: &[Vec<Vec<Val<'k, f32>>>; 2], sums: &[Var<'k, f32>]) {
    let pairs = rows.iter().flat_map(|row| columns.iter().map(move |column| (row, column)));
    for ((row, column), sum) in pairs.zip(sums) {
        for (a, b) in row.iter().zip(column) {
            sum.set(a.mul_add(*b, sum.get()));
        }
    }
}
