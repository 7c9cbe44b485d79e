//! Split-K reduction: adds up partial results, always in the same order, and applies the epilogue.

use super::epilogue::EpilogueScalars;
use super::memory::{load_element, store_element, to_u64};
use super::{Gemm, Layout};
use crate::kernels::name::Name;
use crate::kernels::{
    BufferAccess, BufferParameter, KernelInterface, LaunchShape, Parameter, PtxKernel,
};
use crate::module::PtxEntry;
use crate::target::Target;
use crate::typed::{self, Global, KernelBuilder, Ptr, Val};
use crate::types::PtxType;

/// Threads per block.
const THREADS: u32 = 256;
/// Maximum results along x of the grid, unless a single row has more. So 32-bit indices suffice.
const MAX_BAND_RESULTS: u64 = 1 << 30;

/// Adds up partial results and applies the epilogue. The first buffer holds the partial results, if
/// there are any; then come the bias and `out` of the GEMM.
#[derive(Debug, Clone)]
pub(super) struct Reduce {
    /// The GEMM.
    pub gemm: Gemm,
    /// Slices of K.
    pub splits: u32,
    /// Stride between partial results, in elements.
    pub partial_stride: u64,
    /// Row stride of a partial result, in elements.
    pub row_stride: u64,
    /// Column stride of a partial result, in elements.
    pub column_stride: u64,
}

impl Reduce {
    fn output(&self) -> PtxType {
        self.gemm.output
    }

    /// Rows per band: each block row of the grid (y) computes a band of rows.
    fn band_rows(&self) -> u64 {
        (MAX_BAND_RESULTS / self.gemm.n).clamp(1, self.gemm.m)
    }

    /// Whether the grid can cover all results.
    pub(super) fn fits_grid(&self) -> bool {
        self.gemm.m.div_ceil(self.band_rows()) <= 65535 && self.gemm.batch <= 65535
    }

    /// Elements of all partial results.
    fn len(&self) -> u64 {
        self.partial_stride * u64::from(self.splits) * self.gemm.batch
    }
}

/// The kernel's parameters.
struct Params<'k> {
    k: &'k KernelBuilder,
    partials: Option<Ptr<'k, Global, f32>>,
    bias: Option<Ptr<'k, Global, u8>>,
    out: Ptr<'k, Global, u8>,
    splits: Val<'k, u32>,
    /// Stride between partial results, and their row and column strides, in elements.
    partial_strides: [Val<'k, u64>; 3],
    /// Batch, row and column stride of the results, in elements.
    out_strides: [Val<'k, u64>; 3],
    m: Val<'k, u32>,
    n: Val<'k, u32>,
    band_rows: Val<'k, u32>,
    scalars: EpilogueScalars<'k>,
}

impl PtxKernel for Reduce {
    fn name(&self) -> String {
        let name = Name::new("gemm_reduce").with(self.output().name());
        self.gemm.epilogue.append_to(name.with_if(self.splits == 0, "k0"), false).build()
    }

    fn default_target(&self) -> Target {
        if self.output() == PtxType::Bf16 { Target::SM_80 } else { Target::SM_75 }
    }

    fn write(&self, target: Target) -> PtxEntry {
        typed::kernel(&self.name(), target, [THREADS, 1, 1], |k| {
            k.pdl_wait();
            k.pdl_launch_dependents();
            let params = Params::new(k, self);
            let flat = k.block_id(0) * THREADS + k.thread_id();
            let row_in_band = flat / params.n;
            let row = k.block_id(1) * params.band_rows + row_in_band;
            let column = flat - row_in_band * params.n;
            k.if_then(row_in_band.lt(params.band_rows) & row.lt(params.m), || {
                self.store_result(&params, row, column)
            });
        })
    }

    fn pdl_reads(&self) -> Option<&'static [usize]> {
        Some(&[])
    }

    fn launch(&self) -> LaunchShape {
        let Gemm { m, n, batch, .. } = self.gemm;
        let band_rows = self.band_rows();
        let blocks = (band_rows * n).div_ceil(THREADS.into());
        LaunchShape {
            grid: [blocks as u32, m.div_ceil(band_rows) as u32, batch as u32],
            block: [THREADS, 1, 1],
            dynamic_shared: 0,
        }
    }

    fn interface(&self) -> KernelInterface {
        let Gemm { m, n, out, epilogue, .. } = self.gemm;
        let product = self.gemm.buffers().expect("the product's buffers were checked");
        let element = PtxType::F32;
        let partials = BufferParameter {
            name: "partials",
            access: BufferAccess::Read,
            element,
            len: self.len(),
        };
        let mut buffers: Vec<_> = (self.splits > 0).then_some(partials).into_iter().collect();
        buffers.extend(product.into_iter().skip(2));
        let mut parameters: Vec<_> = (0..buffers.len()).map(Parameter::Pointer).collect();
        let (row, column) = match out.order {
            Layout::RowMajor => (out.ld, 1),
            Layout::ColMajor => (1, out.ld),
        };
        parameters.push(Parameter::U32(self.splits));
        let strides =
            [self.partial_stride, self.row_stride, self.column_stride, out.stride, row, column];
        parameters.extend(strides.map(Parameter::U64));
        parameters.extend([m, n, self.band_rows()].map(|size| Parameter::U32(size as u32)));
        parameters.extend([epilogue.alpha, epilogue.beta].map(Parameter::F32));
        KernelInterface { buffers, parameters }
    }
}

impl<'k> Params<'k> {
    fn new(k: &'k KernelBuilder, reduce: &Reduce) -> Self {
        Self {
            k,
            partials: (reduce.splits > 0).then(|| k.pointer_param("partials")),
            bias: reduce.gemm.epilogue.bias.then(|| k.pointer_param("bias")),
            out: k.pointer_param("out"),
            splits: k.scalar_param("splits"),
            partial_strides: ["partial_stride", "partial_row_stride", "partial_column_stride"]
                .map(|name| k.scalar_param(name)),
            out_strides: ["batch", "row", "column"]
                .map(|axis| k.scalar_param(&format!("out_{axis}_stride"))),
            m: k.scalar_param("m"),
            n: k.scalar_param("n"),
            band_rows: k.scalar_param("band_rows"),
            scalars: EpilogueScalars {
                alpha: k.scalar_param("alpha"),
                beta: k.scalar_param("beta"),
            },
        }
    }

    /// Returns the sum of a result over the slices of K; 0 if there are none.
    fn sum<'a>(&'a self, row: Val<'a, u32>, column: Val<'a, u32>) -> Val<'a, f32> {
        let sum = self.k.var::<f32>(0.0);
        if let Some(partials) = self.partials {
            let [partial_stride, row_stride, column_stride] = self.partial_strides;
            let first = to_u64(self.k.block_id(2) * self.splits) * partial_stride;
            let at = first + to_u64(row) * row_stride + to_u64(column) * column_stride;
            let at = partials.at_wide(at);
            self.k.for_range(0, self.splits, 1, |nth| {
                sum.set(sum.get() + at.at_wide(to_u64(nth) * partial_stride).load());
            });
        }
        sum.get()
    }
}

impl Reduce {
    /// Computes and stores one result.
    fn store_result<'a>(&self, params: &'a Params<'a>, row: Val<'a, u32>, column: Val<'a, u32>) {
        let (element, epilogue) = (self.output(), &self.gemm.epilogue);
        let size = u64::from(element.size());
        let sum = params.sum(row, column);
        let [batch_stride, row_stride, column_stride] = params.out_strides;
        let to = to_u64(params.k.block_id(2)) * batch_stride
            + to_u64(row) * row_stride
            + to_u64(column) * column_stride;
        let to = params.out.at_wide(to * size);
        let bias = params
            .bias
            .map(|bias| load_element(bias.at_wide(to_u64(column) * size), element, false));
        let previous = epilogue.reads_out().then(|| load_element(to, element, false));
        let value = params.scalars.finish(epilogue.activation, sum, previous, bias);
        store_element(to, element, value);
    }
}
