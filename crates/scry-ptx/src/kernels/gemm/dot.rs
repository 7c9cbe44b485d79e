//! Products of a few rows with many columns, both of which lie along the common dimension: a warp
//! computes the results of one or two columns, which it reads once.
//!
//! Memory limits it: the rows stay in the caches, so that each element of the columns comes from
//! memory once, 16 bytes for a lane at a time. This is what decoding with a model's weights asks
//! for, one line of weights for each result.

use super::epilogue::Factors;
use super::memory::{load_number, store_number, wide};
use super::order::{Division, Place, TileOrder, tile_of};
use super::{Gemm, Layout, Order};
use crate::kernels::{Buffer, Interface, Kernel, LaunchShape, Parameter};
use crate::module::PtxKernel;
use crate::target::Target;
use crate::typed::{self, Code, F16, Global, Ptr, Val, Var};
use crate::types::PtxType;

/// Rows at most.
pub(super) const ROWS: u64 = 8;
/// Warps of a block.
const WARPS: u32 = 8;

/// A product of at most [`ROWS`] rows.
#[derive(Debug, Clone)]
pub(super) struct Dot {
    gemm: Gemm,
    buffers: Vec<Buffer>,
    /// Whether the product was transposed, so that the bias is one of rows.
    flipped: bool,
}

impl Dot {
    pub(super) fn new(gemm: &Gemm, buffers: Vec<Buffer>, flipped: bool) -> Self {
        Self { gemm: *gemm, buffers, flipped }
    }

    /// Whether a product is one of these.
    pub(super) fn takes(gemm: &Gemm) -> bool {
        gemm.m <= ROWS && gemm.a.order == Order::Rows && gemm.b.order == Order::Columns
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
        whole(&self.gemm.a) && whole(&self.gemm.b)
    }

    pub(super) fn division(&self) -> Division {
        Division::new(&self.gemm, [self.rows(), self.columns() * WARPS], 1, 1)
    }

    /// Elements from one row of the results to the next, and from one column.
    fn distances(&self) -> [u64; 2] {
        let out = &self.gemm.out;
        if out.order == Order::Rows { [out.leading, 1] } else { [1, out.leading] }
    }
}

impl Kernel for Dot {
    fn name(&self) -> String {
        let Gemm { element, output, epilogue, .. } = &self.gemm;
        let to = if element == output { "" } else { "_to_f32" };
        let how = if self.by_pieces() { 'v' } else { 's' };
        let turned = if self.flipped && epilogue.bias { "_rows" } else { "" };
        let rows = self.rows();
        format!("gemm_dot_{}{to}_{rows}{how}{}{turned}", element.name(), epilogue.tag())
    }

    fn default_target(&self) -> Target {
        Target::SM_80
    }

    fn write(&self, target: Target) -> PtxKernel {
        typed::kernel(&self.name(), target, [32 * WARPS, 1, 1], |k| {
            let terms = Terms::declare(k, self);
            let at = tile_of(k, &terms.order, [self.rows(), self.columns() * WARPS]);
            let column = at.column + (k.thread_id() >> 5) * self.columns();
            k.when(column.lt(terms.n), || {
                let sums = terms.sums(self, &at, column);
                terms.finish(self, &at, column, &sums);
            });
        })
    }

    fn launch(&self) -> LaunchShape {
        LaunchShape {
            grid: self.division().grid().expect("it was checked when the kernel was chosen"),
            block: [32 * WARPS, 1, 1],
            dynamic_shared: 0,
        }
    }

    fn interface(&self) -> Interface {
        let Gemm { m, n, k, a, b, out, epilogue, .. } = &self.gemm;
        let mut parameters: Vec<_> = (0..self.buffers.len()).map(Parameter::Pointer).collect();
        parameters.extend([*m, *n, *k].map(|side| Parameter::U32(side as u32)));
        let [row, column] = self.distances();
        let distances = [a.leading, b.leading, a.stride, b.stride, row, column, out.stride];
        parameters.extend(distances.map(Parameter::U64));
        parameters.extend([epilogue.alpha, epilogue.beta].map(Parameter::F32));
        parameters.extend(self.division().parameters());
        Interface { buffers: self.buffers.clone(), parameters }
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
            let line = wide(nth.min(last - 1)) * self.leading[side];
            let first = wide(at.batch) * self.strides[side] + line;
            self.operands[side].at_wide(first * u64::from(element.size()))
        };
        let row = |nth| line(0, k.constant(nth).copied(), self.m);
        let lines = [
            (0..dot.rows()).map(row).collect(),
            (0..dot.columns()).map(|nth| line(1, column + nth, self.n)).collect(),
        ];
        let sums: Vec<_> = (0..dot.rows() * dot.columns()).map(|_| k.var(0.0f32)).collect();
        let done = k.var(0u32);
        self.add_steps(dot, &lines, &sums, done);
        k.for_range(done.get() + k.lane(), self.depth, 32, |depth| {
            let read = |line: &Ptr<'k, Global, u8>| {
                let at = line.at_wide(wide(depth) * u64::from(element.size()));
                vec![load_number(at, element, true)]
            };
            add(&lines.each_ref().map(|side| side.iter().map(read).collect()), &sums);
        });
        sums.iter().map(|sum| k.reduce_warp(sum.get(), 32, |a, b| a + b)).collect()
    }

    /// Adds what there is for all lanes, several loads at a time so that memory is busy.
    fn add_steps(&self, dot: &Dot, lines: &Lines<'k>, sums: &[Var<'k, f32>], done: Var<'k, u32>) {
        let (k, step, element) = (self.k, dot.step(), dot.gemm.element);
        k.repeat(|exit| {
            exit.when((done.get() + step).gt(self.depth));
            let at = wide(done.get()) * u64::from(element.size()) + wide(k.lane()) * dot.bytes();
            let read = |line: &Ptr<'k, Global, u8>| dot.read(line.at_wide(at));
            let all = lines.each_ref().map(|side| side.iter().map(read).collect::<Vec<_>>());
            add(
                &all.map(|side| side.into_iter().map(|line| numbers(line, element)).collect()),
                sums,
            );
            done.set(done.get() + step);
        });
    }

    /// Writes the results: those of each row and column by a lane of its own.
    fn finish(&self, dot: &Dot, at: &Place<'k>, first: Val<'k, u32>, sums: &[Val<'k, f32>]) {
        let (lane, element, epilogue) = (self.k.lane(), dot.gemm.output, &dot.gemm.epilogue);
        let mine = (1..)
            .zip(&sums[1..])
            .fold(sums[0], |mine, (nth, sum)| lane.equals(nth).select(*sum, mine));
        let (row, column) = (lane / dot.columns(), first + lane % dot.columns());
        self.k.when(row.lt(self.m) & column.lt(self.n), || {
            let [of_row, of_column, of_product] = self.to;
            let size = u64::from(element.size());
            let to = wide(at.batch) * of_product + wide(row) * of_row + wide(column) * of_column;
            let to = self.out.at_wide(to * size);
            let biased = if dot.flipped { row } else { column };
            let bias =
                self.bias.map(|bias| load_number(bias.at_wide(wide(biased) * size), element, true));
            let was = epilogue.reads().then(|| load_number(to, element, false));
            let value = self.factors.finish(epilogue.activation, mine, was, bias);
            store_number(to, element, value);
        });
    }
}

/// What a lane has read of a line.
enum Read<'k> {
    /// Words of several numbers, or of one.
    Words(Vec<Val<'k, u32>>),
    Numbers(Vec<Val<'k, f32>>),
}

impl Dot {
    /// Bytes of a load.
    fn bytes(&self) -> u64 {
        if self.by_pieces() { 16 } else { self.gemm.element.size().into() }
    }

    /// Loads of a line in a step.
    fn loads(&self) -> u32 {
        match (self.by_pieces(), self.rows()) {
            (true, 1 | 2) => 4,
            (true, 8) if self.gemm.element.size() == 2 => 1,
            (true, _) => 2,
            (false, 1 | 2) => 8,
            (false, _) => 4,
        }
    }

    /// Depth of a step.
    fn step(&self) -> u32 {
        32 * self.loads() * self.bytes() as u32 / self.gemm.element.size()
    }

    /// What a lane reads of a line in a step; those of the warp's lanes lie one after the other.
    fn read<'k>(&self, at: Ptr<'k, Global, u8>) -> Read<'k> {
        let (element, bytes) = (self.gemm.element, self.bytes() as i64);
        let load = |nth: u32| at.offset(i64::from(nth) * 32 * bytes);
        let loads = 0..self.loads();
        if self.by_pieces() {
            let words = |nth| load(nth).cast().load_constant_vector::<4>();
            Read::Words(loads.flat_map(words).collect())
        } else {
            Read::Numbers(loads.map(|nth| load_number(load(nth), element, true)).collect())
        }
    }
}

fn numbers(read: Read<'_>, element: PtxType) -> Vec<Val<'_, f32>> {
    match read {
        Read::Words(words) => words.into_iter().flat_map(|word| unpacked(word, element)).collect(),
        Read::Numbers(numbers) => numbers,
    }
}

/// The numbers in a word.
fn unpacked(word: Val<'_, u32>, element: PtxType) -> Vec<Val<'_, f32>> {
    match element {
        PtxType::F16 => [word, word >> 16].map(half).into(),
        PtxType::Bf16 => vec![(word << 16).cast(), (word & 0xffff_0000).cast()],
        _ => vec![word.cast()],
    }
}

/// The binary16 in the low bits of a word.
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
