//! Quantised matrix products: weights are dequantised to the activations' type in scratch memory,
//! and a GEMM follows; on tensor cores for 16-bit floats.

use super::format::BlockFormat;
use super::matvec_shape::{MAX_COLUMNS, MatVec, Prologue, argument_error};
use super::unpack::dequantize_plan;
use crate::kernels::gemm::{Gemm, Layout, MAX_SIZE};
use crate::kernels::{BufferParameter, BufferSlot, GpuSpec, Plan, PlanError, Step};
use crate::types::PtxType;

/// A product `y[c, i] = sum(weights[i, l] * x[c, l])` of a row-major `rows` × `k` matrix of
/// quantised weights, and `columns` contiguous columns of `k` activations; `y` has `rows`
/// contiguous results per column. Accumulators are `f32`.
///
/// Up to 8 columns are multiplied as a [`MatVec`] if `y` is `f32`. All other products need scratch
/// memory for the weights, rounded to the type of the activations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MatMul {
    /// Format of the weights.
    pub format: BlockFormat,
    /// Rows of the matrix.
    pub rows: u64,
    /// Columns of the matrix, a multiple of the format's block.
    pub k: u64,
    /// Columns of activations.
    pub columns: u64,
    /// Type of the activations: `F16`, `Bf16` or `F32`.
    pub activations: PtxType,
    /// Type of the results: that of the activations, or `F32`.
    pub output: PtxType,
}

impl MatMul {
    /// Returns the launches for a GPU: buffers are weights, activations, results.
    ///
    /// # Errors
    /// [`PlanError::Argument`] if a size is out of range or a type not supported;
    /// [`PlanError::Target`] before `sm_80`, for 16-bit activations that are not multiplied as a
    /// [`MatVec`].
    pub fn plan(&self, gpu: GpuSpec) -> Result<Plan, PlanError> {
        if self.columns <= MAX_COLUMNS.into() && self.output == PtxType::F32 {
            return self.as_matvec().plan(gpu);
        }
        self.check()?;
        let gemm = self.gemm();
        let [x, weights, y] = gemm.buffers()?.try_into().expect("there is no bias");
        let dequantise = dequantize_plan(self.format, weights.element, weights.len)?;
        let product = gemm.plan(gpu)?;
        let blocks = BufferParameter { name: "weights", ..dequantise.arguments[0].clone() };
        let mut plan = Plan {
            arguments: vec![
                blocks,
                BufferParameter { name: "x", ..x },
                BufferParameter { name: "y", ..y },
            ],
            scratch: vec![weights.len * u64::from(weights.element.size())],
            steps: Vec::new(),
        };
        plan.append(dequantise, [BufferSlot::Argument(0), BufferSlot::Scratch(0)]);
        plan.append(
            product,
            [BufferSlot::Argument(1), BufferSlot::Scratch(0), BufferSlot::Argument(2)],
        );
        plan.checked_for(gpu.target)
    }

    fn check(&self) -> Result<(), PlanError> {
        let block = self.format.block_len() as u64;
        if !self.k.is_multiple_of(block) {
            let problem = format!("{}, not a multiple of {block}", self.k);
            return Err(argument_error("matmul", "k", problem, "pass rows of whole blocks"));
        }
        let sizes = [("rows", self.rows), ("k", self.k), ("columns", self.columns)];
        if let Some((name, size)) = sizes.into_iter().find(|(_, size)| *size > MAX_SIZE) {
            let problem = format!("{size}, beyond {MAX_SIZE}");
            return Err(argument_error("matmul", name, problem, "split the product into several"));
        }
        let (activations, output) = (self.activations, self.output);
        if !matches!(activations, PtxType::F16 | PtxType::Bf16 | PtxType::F32) {
            let problem = activations.name().to_owned();
            return Err(argument_error("matmul", "activations", problem, "use f32, f16 or bf16"));
        }
        if output != activations && output != PtxType::F32 {
            let problem = format!("{} for activations of {}", output.name(), activations.name());
            let help = "results have the type of the activations, or f32";
            return Err(argument_error("matmul", "output", problem, help));
        }
        Ok(())
    }

    fn as_matvec(&self) -> MatVec {
        let Self { format, rows, k, columns, activations, .. } = *self;
        let (columns, prologue) = (columns as u32, Prologue::None);
        MatVec { format, rows, k, columns, activations, prologue }
    }

    /// Returns the GEMM with dequantised weights. Activations are `a` and weights `b`, since the
    /// results of a column of activations are contiguous.
    fn gemm(&self) -> Gemm {
        let gemm = Gemm::new(self.columns, self.rows, self.k, self.activations);
        Gemm { output: self.output, ..gemm.with_layouts(Layout::RowMajor, Layout::ColMajor) }
    }
}

impl Plan {
    /// Appends the steps of another plan, whose arguments are the given buffers of this one.
    fn append<const N: usize>(&mut self, other: Self, arguments: [BufferSlot; N]) {
        let first = self.scratch.len();
        self.scratch.extend(other.scratch);
        self.steps.extend(other.steps.into_iter().map(|step| {
            let place = |place: &BufferSlot| match *place {
                BufferSlot::Argument(nth) => arguments[nth],
                BufferSlot::Scratch(nth) => BufferSlot::Scratch(first + nth),
            };
            Step { buffers: step.buffers.iter().map(place).collect(), ..step }
        }));
    }
}
