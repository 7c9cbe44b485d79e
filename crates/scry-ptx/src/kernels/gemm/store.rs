//! Stores results from registers, neighbours of a row at a time, through the epilogue.

use super::epilogue::EpilogueScalars;
use super::{Activation, Gemm};
use crate::kernels::Parameter;
use crate::kernels::name::Name;
use crate::typed::{Bf16, Code, F16, Global, Number, Ptr, Val};
use crate::types::PtxType;

/// The dimension of the bias.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum BiasAxis {
    None,
    Columns,
    /// Per row, of a transposed GEMM.
    Rows,
}

/// The compile-time part of the epilogue and the store of row-major results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Sink {
    pub output: PtxType,
    pub reads: bool,
    pub bias: BiasAxis,
    pub activation: Activation,
    /// Whether vector stores of four can be used: rows are multiples of four, and aligned.
    pub quads: bool,
}

impl Sink {
    /// Returns that of a GEMM, which may be a transposed one.
    pub(super) fn new(gemm: &Gemm, transposed: bool) -> Self {
        let epilogue = &gemm.epilogue;
        let bias = match (epilogue.bias, transposed) {
            (false, _) => BiasAxis::None,
            (true, false) => BiasAxis::Columns,
            (true, true) => BiasAxis::Rows,
        };
        Self {
            output: gemm.output,
            reads: epilogue.reads_out(),
            bias,
            activation: epilogue.activation,
            quads: [gemm.n, gemm.out.ld, gemm.out.stride].iter().all(|n| n % 4 == 0),
        }
    }

    /// Returns that of partial results, in rows padded to multiples of four.
    pub(super) const fn accumulators() -> Self {
        Self {
            output: PtxType::F32,
            reads: false,
            bias: BiasAxis::None,
            activation: Activation::None,
            quads: true,
        }
    }

    /// Appends itself to a kernel's name.
    pub(super) fn named(&self, name: Name) -> Name {
        let bias = match self.bias {
            BiasAxis::None => None,
            BiasAxis::Columns => Some('n'),
            BiasAxis::Rows => Some('m'),
        };
        let name = name.with_if(self.quads, "vec4");
        name.epilogue(self.reads, bias, self.activation)
    }

    /// Returns what [`Results::declare`] declares after the buffers' addresses.
    pub(super) fn parameters(gemm: &Gemm, part_stride: u64) -> [Parameter; 5] {
        let epilogue = &gemm.epilogue;
        [
            Parameter::U32(gemm.out.ld as u32),
            Parameter::U64(gemm.out.stride),
            Parameter::U64(part_stride),
            Parameter::F32(epilogue.alpha),
            Parameter::F32(epilogue.beta),
        ]
    }
}

/// The results as values of a kernel.
pub(super) struct Results<'k> {
    k: &'k Code,
    sink: Sink,
    bias: Option<Ptr<'k, Global, u8>>,
    out: Ptr<'k, Global, u8>,
    ld: Val<'k, u32>,
    stride: Val<'k, u64>,
    part_stride: Val<'k, u64>,
    scalars: EpilogueScalars<'k>,
}

impl<'k> Results<'k> {
    pub(super) fn declare(k: &'k Code, sink: Sink) -> Self {
        let bias = (sink.bias != BiasAxis::None).then(|| k.pointer("bias"));
        Self {
            k,
            sink,
            bias,
            out: k.pointer("out"),
            ld: k.number("out_leading"),
            stride: k.number("out_stride"),
            part_stride: k.number("part_stride"),
            scalars: EpilogueScalars { alpha: k.number("alpha"), beta: k.number("beta") },
        }
    }

    /// Returns the writer of a thread whose results start at a row and column of a GEMM of size
    /// `ends`.
    pub(super) fn writer(
        &self,
        first: [Val<'k, u32>; 2],
        ends: [Val<'k, u32>; 2],
        batch: Val<'k, u32>,
        part: Val<'k, u32>,
    ) -> Writer<'_, 'k> {
        let wide = |x: Val<'k, u32>| x.convert::<u64>("");
        let matrix = wide(batch) * self.stride + wide(part) * self.part_stride;
        Writer { results: self, first, ends, matrix }
    }
}

/// Stores the results of a thread.
pub(super) struct Writer<'a, 'k> {
    results: &'a Results<'k>,
    first: [Val<'k, u32>; 2],
    ends: [Val<'k, u32>; 2],
    /// Element offset of the matrix.
    matrix: Val<'k, u64>,
}

/// A row of a writer's results.
pub(super) struct Row<'a, 'k> {
    writer: &'a Writer<'a, 'k>,
    row: Val<'k, u32>,
    /// Element offset of the first result.
    element: Val<'k, u64>,
}

impl<'k> Writer<'_, 'k> {
    /// Stores the row `offset` rows below the first one, if it is in bounds.
    pub(super) fn row(&self, offset: u32, write: impl FnOnce(&Row<'_, 'k>)) {
        let (k, row) = (self.results.k, self.first[0] + offset);
        k.when(row.lt(self.ends[0]), || {
            let wide = |x: Val<'k, u32>| x.convert::<u64>("");
            let line = wide(row) * wide(self.results.ld) + wide(self.first[1]);
            write(&Row { writer: self, row, element: self.matrix + line });
        });
    }
}

impl<'k> Row<'_, 'k> {
    /// Stores 1, 2 or 4 neighbours, `offset` columns after the first one, as far as they are in
    /// bounds.
    pub(super) fn write<const N: usize>(&self, offset: u32, accumulators: [Val<'k, f32>; N]) {
        match self.writer.results.sink.output {
            PtxType::F16 => self.write_as::<F16, N>(offset, accumulators),
            PtxType::Bf16 => self.write_as::<Bf16, N>(offset, accumulators),
            _ => self.write_as::<f32, N>(offset, accumulators),
        }
    }

    fn write_as<T: Number, const N: usize>(&self, offset: u32, accumulators: [Val<'k, f32>; N]) {
        let (results, end) = (self.writer.results, self.writer.ends[1]);
        let (k, column) = (results.k, self.writer.first[1] + offset);
        let at = results.out.cast::<T>().at_wide(self.element).at(offset);
        if results.sink.quads {
            k.when(column.lt(end), || self.neighbours::<T, N>(column, at, accumulators));
            return;
        }
        for (nth, sum) in accumulators.into_iter().enumerate() {
            let column = column + nth as u32;
            k.when(column.lt(end), || self.neighbours::<T, 1>(column, at.at(nth as u32), [sum]));
        }
    }

    fn neighbours<T: Number, const N: usize>(
        &self,
        column: Val<'k, u32>,
        at: Ptr<'k, Global, T>,
        accumulators: [Val<'k, f32>; N],
    ) {
        let results = self.writer.results;
        let sink = results.sink;
        let was = sink.reads.then(|| at.load_vector::<N>().map(widened));
        let bias = self.bias::<T, N>(column);
        let done: [Val<'k, T>; N] = std::array::from_fn(|nth| {
            let (was, bias) = (was.map(|was| was[nth]), bias.map(|bias| bias[nth]));
            narrowed(results.scalars.finish(sink.activation, accumulators[nth], was, bias))
        });
        at.store_vector(done);
    }

    fn bias<T: Number, const N: usize>(&self, column: Val<'k, u32>) -> Option<[Val<'k, f32>; N]> {
        let results = self.writer.results;
        let bias = results.bias?.cast::<T>();
        Some(match results.sink.bias {
            BiasAxis::Rows => [widened(bias.at(self.row).load_constant()); N],
            _ => bias.at(column).load_constant_vector::<N>().map(widened),
        })
    }
}

/// Converts to `f32`. `bf16` is its upper half: Ampere has no conversion instruction for it.
fn widened<T: Number>(value: Val<'_, T>) -> Val<'_, f32> {
    match T::TYPE {
        PtxType::F32 => value.cast(),
        PtxType::Bf16 => (value.cast::<u16>().convert::<u32>("") << 16).cast(),
        _ => value.convert(""),
    }
}

fn narrowed<T: Number>(value: Val<'_, f32>) -> Val<'_, T> {
    if T::TYPE == PtxType::F32 { value.cast() } else { value.convert("rn") }
}
