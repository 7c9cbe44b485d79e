//! Split-K reduction: adds up partial results, always in the same order, and applies the epilogue.

use super::epilogue::EpilogueScalars;
use super::memory::{load_number, store_number, wide};
use super::{Gemm, Layout};
use crate::kernels::name::Name;
use crate::kernels::{
    BufferAccess, BufferParameter, KernelInterface, LaunchShape, Parameter, PtxKernel,
};
use crate::module::PtxEntry;
use crate::target::Target;
use crate::typed::{self, Code, Global, Ptr, Val};
use crate::types::PtxType;

/// Threads per block.
const THREADS: u32 = 256;
/// Maximum results of a launch along x, so that 32-bit indices suffice.
const MAX_SLICE: u64 = 1 << 30;

/// Adds up partial results and applies the epilogue. The first buffer holds the partial results, if
/// there are any; then come the bias and `out` of the GEMM.
#[derive(Debug, Clone)]
pub(super) struct Reduce {
    /// The GEMM.
    pub gemm: Gemm,
    /// Slices of K.
    pub splits: u32,
    /// Stride between partial results, in elements.
    pub partial: u64,
    /// Row stride of a partial result, in elements.
    pub row: u64,
    /// Column stride of a partial result, in elements.
    pub column: u64,
}

impl Reduce {
    fn output(&self) -> PtxType {
        self.gemm.output
    }

    /// Rows per launch slice along x.
    fn slice(&self) -> u64 {
        (MAX_SLICE / self.gemm.n).clamp(1, self.gemm.m)
    }

    /// Whether the grid can cover all results.
    pub(super) fn fits(&self) -> bool {
        self.gemm.m.div_ceil(self.slice()) <= 65535 && self.gemm.batch <= 65535
    }

    fn len(&self) -> u64 {
        self.partial * u64::from(self.splits) * self.gemm.batch
    }
}

/// The kernel's parameters.
struct Terms<'k> {
    k: &'k Code,
    partials: Option<Ptr<'k, Global, f32>>,
    bias: Option<Ptr<'k, Global, u8>>,
    out: Ptr<'k, Global, u8>,
    splits: Val<'k, u32>,
    /// Strides of partial results, their rows and columns, in elements.
    from: [Val<'k, u64>; 3],
    /// Strides of results, their rows and columns, in elements.
    to: [Val<'k, u64>; 3],
    m: Val<'k, u32>,
    n: Val<'k, u32>,
    slice: Val<'k, u32>,
    scalars: EpilogueScalars<'k>,
}

impl PtxKernel for Reduce {
    fn name(&self) -> String {
        let name = Name::new("gemm_reduce").with(self.output().name());
        self.gemm.epilogue.named(name.with_if(self.splits == 0, "k0"), false).build()
    }

    fn default_target(&self) -> Target {
        Target::SM_80
    }

    fn write(&self, target: Target) -> PtxEntry {
        typed::kernel(&self.name(), target, [THREADS, 1, 1], |k| {
            k.pdl_wait();
            k.pdl_launch_dependents();
            let terms = Terms::new(k, self);
            let flat = k.block_id(0) * THREADS + k.thread_id();
            let below = flat / terms.n;
            let row = k.block_id(1) * terms.slice + below;
            let column = flat - below * terms.n;
            k.when(below.lt(terms.slice) & row.lt(terms.m), || self.one(&terms, row, column));
        })
    }

    fn pdl_reads(&self) -> Option<&'static [usize]> {
        Some(&[])
    }

    fn launch(&self) -> LaunchShape {
        let Gemm { m, n, batch, .. } = self.gemm;
        let slice = self.slice();
        let blocks = (slice * n).div_ceil(THREADS.into());
        LaunchShape {
            grid: [blocks as u32, m.div_ceil(slice) as u32, batch as u32],
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
        let distances = [self.partial, self.row, self.column, out.stride, row, column];
        parameters.extend(distances.map(Parameter::U64));
        parameters.extend([m, n, self.slice()].map(|size| Parameter::U32(size as u32)));
        parameters.extend([epilogue.alpha, epilogue.beta].map(Parameter::F32));
        KernelInterface { buffers, parameters }
    }
}

impl<'k> Terms<'k> {
    fn new(k: &'k Code, reduce: &Reduce) -> Self {
        Self {
            k,
            partials: (reduce.splits > 0).then(|| k.pointer("partials")),
            bias: reduce.gemm.epilogue.bias.then(|| k.pointer("bias")),
            out: k.pointer("out"),
            splits: k.number("splits"),
            from: ["from_result", "from_row", "from_column"].map(|name| k.number(name)),
            to: ["to_result", "to_row", "to_column"].map(|name| k.number(name)),
            m: k.number("m"),
            n: k.number("n"),
            slice: k.number("slice"),
            scalars: EpilogueScalars { alpha: k.number("alpha"), beta: k.number("beta") },
        }
    }

    /// Returns the sum over the slices.
    fn sum<'a>(&'a self, row: Val<'a, u32>, column: Val<'a, u32>) -> Val<'a, f32> {
        let sum = self.k.var::<f32>(0.0);
        if let Some(partials) = self.partials {
            let [result, of_row, of_column] = self.from;
            let first = wide(self.k.block_id(2) * self.splits) * result;
            let at = first + wide(row) * of_row + wide(column) * of_column;
            let at = partials.at_wide(at);
            self.k.for_range(0, self.splits, 1, |nth| {
                sum.set(sum.get() + at.at_wide(wide(nth) * result).load());
            });
        }
        sum.get()
    }
}

impl Reduce {
    /// Computes one result.
    fn one<'a>(&self, terms: &'a Terms<'a>, row: Val<'a, u32>, column: Val<'a, u32>) {
        let (element, epilogue) = (self.output(), &self.gemm.epilogue);
        let size = u64::from(element.size());
        let sum = terms.sum(row, column);
        let [result, of_row, of_column] = terms.to;
        let to = wide(terms.k.block_id(2)) * result + wide(row) * of_row + wide(column) * of_column;
        let to = terms.out.at_wide(to * size);
        let bias =
            terms.bias.map(|bias| load_number(bias.at_wide(wide(column) * size), element, false));
        let previous = epilogue.reads_out().then(|| load_number(to, element, false));
        let value = terms.scalars.finish(epilogue.activation, sum, previous, bias);
        store_number(to, element, value);
    }
}
