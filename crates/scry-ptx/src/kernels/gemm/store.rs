//! Stores results from registers, neighbours of a row at a time, through the epilogue.

use super::epilogue::EpilogueScalars;
use super::{Activation, Gemm};
use crate::kernels::Parameter;
use crate::kernels::name::Name;
use crate::typed::{Bf16, F16, Global, KernelBuilder, Number, Ptr, Val};
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
pub(super) struct StoreVariant {
    pub output: PtxType,
    pub reads_out: bool,
    pub bias: BiasAxis,
    pub activation: Activation,
    /// Whether vector stores of four can be used: rows are multiples of four, and aligned.
    pub is_vectorized: bool,
}

impl StoreVariant {
    /// Returns the variant for a GEMM; with `transposed` it is the transpose of the requested one.
    pub(super) fn new(gemm: &Gemm, transposed: bool) -> Self {
        let epilogue = &gemm.epilogue;
        let bias = match (epilogue.bias, transposed) {
            (false, _) => BiasAxis::None,
            (true, false) => BiasAxis::Columns,
            (true, true) => BiasAxis::Rows,
        };
        Self {
            output: gemm.output,
            reads_out: epilogue.reads_out(),
            bias,
            activation: epilogue.activation,
            is_vectorized: [gemm.n, gemm.out.ld, gemm.out.stride].iter().all(|n| n % 4 == 0),
        }
    }

    /// Returns the variant for partial results, whose rows are padded to multiples of four.
    pub(super) const fn partial_results() -> Self {
        Self {
            output: PtxType::F32,
            reads_out: false,
            bias: BiasAxis::None,
            activation: Activation::None,
            is_vectorized: true,
        }
    }

    /// Appends the variant to a kernel's name.
    pub(super) fn append_to(&self, name: Name) -> Name {
        let bias = match self.bias {
            BiasAxis::None => None,
            BiasAxis::Columns => Some('n'),
            BiasAxis::Rows => Some('m'),
        };
        let name = name.with_if(self.is_vectorized, "vec4");
        name.epilogue(self.reads_out, bias, self.activation)
    }

    /// Returns what [`Results::declare`] declares after the buffers' addresses.
    pub(super) fn parameters(gemm: &Gemm, split_stride: u64) -> [Parameter; 5] {
        let epilogue = &gemm.epilogue;
        [
            Parameter::U32(gemm.out.ld as u32),
            Parameter::U64(gemm.out.stride),
            Parameter::U64(split_stride),
            Parameter::F32(epilogue.alpha),
            Parameter::F32(epilogue.beta),
        ]
    }
}

/// The results as values of a kernel.
pub(super) struct Results<'k> {
    k: &'k KernelBuilder,
    store: StoreVariant,
    bias: Option<Ptr<'k, Global, u8>>,
    out: Ptr<'k, Global, u8>,
    ld: Val<'k, u32>,
    stride: Val<'k, u64>,
    split_stride: Val<'k, u64>,
    scalars: EpilogueScalars<'k>,
}

impl<'k> Results<'k> {
    pub(super) fn declare(k: &'k KernelBuilder, store: StoreVariant) -> Self {
        let bias = (store.bias != BiasAxis::None).then(|| k.pointer_param("bias"));
        Self {
            k,
            store,
            bias,
            out: k.pointer_param("out"),
            ld: k.scalar_param("out_ld"),
            stride: k.scalar_param("out_stride"),
            split_stride: k.scalar_param("split_stride"),
            scalars: EpilogueScalars {
                alpha: k.scalar_param("alpha"),
                beta: k.scalar_param("beta"),
            },
        }
    }

    /// Returns the writer of a thread whose results start at row and column `first` of a GEMM of
    /// size `mn`.
    pub(super) fn writer(
        &self,
        first: [Val<'k, u32>; 2],
        mn: [Val<'k, u32>; 2],
        batch: Val<'k, u32>,
        split: Val<'k, u32>,
    ) -> Writer<'_, 'k> {
        let to_u64 = |x: Val<'k, u32>| x.convert::<u64>("");
        let matrix = to_u64(batch) * self.stride + to_u64(split) * self.split_stride;
        Writer { results: self, first, mn, matrix }
    }
}

/// Writes the stores of a thread's results.
pub(super) struct Writer<'a, 'k> {
    results: &'a Results<'k>,
    first: [Val<'k, u32>; 2],
    mn: [Val<'k, u32>; 2],
    /// Element offset of the matrix.
    matrix: Val<'k, u64>,
}

/// Writes the stores of a row of a thread's results.
pub(super) struct Row<'a, 'k> {
    writer: &'a Writer<'a, 'k>,
    row: Val<'k, u32>,
    /// Element offset of the first result.
    element: Val<'k, u64>,
}

impl<'k> Writer<'_, 'k> {
    /// Stores the row that is `offset` rows below the first one, if it is in bounds.
    pub(super) fn row(&self, offset: u32, write: impl FnOnce(&Row<'_, 'k>)) {
        let (k, row) = (self.results.k, self.first[0] + offset);
        k.if_then(row.lt(self.mn[0]), || {
            let to_u64 = |x: Val<'k, u32>| x.convert::<u64>("");
            let line = to_u64(row) * to_u64(self.results.ld) + to_u64(self.first[1]);
            write(&Row { writer: self, row, element: self.matrix + line });
        });
    }
}

impl<'k> Row<'_, 'k> {
    /// Stores 1, 2 or 4 neighbouring results, `offset` columns after the first one, as far as they
    /// are in bounds.
    pub(super) fn write<const N: usize>(&self, offset: u32, accumulators: [Val<'k, f32>; N]) {
        match self.writer.results.store.output {
            PtxType::F16 => self.write_as::<F16, N>(offset, accumulators),
            PtxType::Bf16 => self.write_as::<Bf16, N>(offset, accumulators),
            _ => self.write_as::<f32, N>(offset, accumulators),
        }
    }

    fn write_as<T: Number, const N: usize>(&self, offset: u32, accumulators: [Val<'k, f32>; N]) {
        let (results, columns) = (self.writer.results, self.writer.mn[1]);
        let (k, column) = (results.k, self.writer.first[1] + offset);
        let address = results.out.cast::<T>().at_wide(self.element).at(offset);
        if results.store.is_vectorized {
            k.if_then(column.lt(columns), || {
                self.write_vector::<T, N>(column, address, accumulators)
            });
            return;
        }
        for (nth, sum) in accumulators.into_iter().enumerate() {
            let column = column + nth as u32;
            k.if_then(column.lt(columns), || {
                self.write_vector::<T, 1>(column, address.at(nth as u32), [sum])
            });
        }
    }

    fn write_vector<T: Number, const N: usize>(
        &self,
        column: Val<'k, u32>,
        address: Ptr<'k, Global, T>,
        accumulators: [Val<'k, f32>; N],
    ) {
        let results = self.writer.results;
        let store = results.store;
        let previous = store.reads_out.then(|| address.load_vector::<N>().map(to_f32));
        let bias = self.bias::<T, N>(column);
        let values: [Val<'k, T>; N] = std::array::from_fn(|nth| {
            let (previous, bias) =
                (previous.map(|previous| previous[nth]), bias.map(|bias| bias[nth]));
            from_f32(results.scalars.finish(store.activation, accumulators[nth], previous, bias))
        });
        address.store_vector(values);
    }

    fn bias<T: Number, const N: usize>(&self, column: Val<'k, u32>) -> Option<[Val<'k, f32>; N]> {
        let results = self.writer.results;
        let bias = results.bias?.cast::<T>();
        Some(match results.store.bias {
            BiasAxis::Rows => [to_f32(bias.at(self.row).load_constant()); N],
            _ => bias.at(column).load_constant_vector::<N>().map(to_f32),
        })
    }
}

/// Converts to `f32`. A `bf16` is the upper 16 bits of an `f32`; Ampere has no instruction that
/// converts it.
fn to_f32<T: Number>(value: Val<'_, T>) -> Val<'_, f32> {
    match T::TYPE {
        PtxType::F32 => value.cast(),
        PtxType::Bf16 => (value.cast::<u16>().convert::<u32>("") << 16).cast(),
        _ => value.convert(""),
    }
}

fn from_f32<T: Number>(value: Val<'_, f32>) -> Val<'_, T> {
    if T::TYPE == PtxType::F32 { value.cast() } else { value.convert("rn") }
}
