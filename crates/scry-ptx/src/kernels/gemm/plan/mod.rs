//! Plans the launches of a GEMM.

mod portable;
mod portfolio;

pub use portfolio::Portfolio;

use super::hopper::{
    BiasAxis, Choice, EpilogueKind, HopperGemm, HopperTile, Major, PdlPrefetch, Problem, Store,
    Streamed, Variant, WorkDivision,
};
use super::reduce::Reduce;
use super::repack::{Repack, Source, is_tma_aligned};
use super::tf32::Split;
use super::{Epilogue, Gemm, Layout, MatrixLayout, Precision, SPLIT_PRODUCT, argument_error};
use crate::kernels::{BufferSlot, GpuSpec, Plan, PlanError, PtxKernel, Step};
use crate::target::Target;
use crate::types::PtxType;

impl Gemm {
    /// Returns the launches that compute the GEMM on a GPU.
    ///
    /// # Errors
    /// [`PlanError::Argument`] for an invalid GEMM, see [`Gemm::buffers`], or one with too many
    /// tiles. [`PlanError::Target`] before `sm_80` if results are `bf16`.
    pub fn plan(&self, gpu: GpuSpec) -> Result<Plan, PlanError> {
        self.plan_with(gpu, None)
    }

    /// Returns the launches with a given choice of kernel instead of the cost model's.
    ///
    /// # Errors
    /// As [`Gemm::plan`]. With a choice also [`PlanError::Target`] if the GPU lacks `wgmma`, and
    /// [`PlanError::Argument`] if the kernel does not support the choice, or the precision is full
    /// `f32`.
    pub fn plan_with(&self, gpu: GpuSpec, choice: Option<Choice>) -> Result<Plan, PlanError> {
        self.unchecked_plan(gpu, choice)?.checked_for(gpu.target)
    }

    /// Returns the launches, whose kernels the GPU's target may not support.
    fn unchecked_plan(&self, gpu: GpuSpec, choice: Option<Choice>) -> Result<Plan, PlanError> {
        let arguments = self.buffers()?;
        let mut plan = Plan { arguments, ..Plan::default() };
        if self.is_empty() {
            return Ok(plan);
        }
        if self.k == 0 {
            // There are no partial results: the reduction applies the epilogue to zeros.
            let reduce = Reduce {
                gemm: *self,
                splits: 0,
                partial_stride: 0,
                row_stride: 0,
                column_stride: 0,
            };
            return add_reduction(plan, self, reduce, None);
        }
        if choice.is_none() && portable::is_portable(self, gpu) {
            return portable::plan(plan, self, gpu);
        }
        check_gpu(self, gpu)?;
        let mut product = Product::new(self);
        product.repack_operands(&mut plan)?;
        let problem = product.problem(gpu);
        let choice = choice.unwrap_or_else(|| problem.choose());
        if let Some(reason) = problem.unsupported_reason(&choice) {
            let help = "leave the choice to the plan";
            return Err(argument_error("choice", format!("a tile {reason}"), help));
        }
        product.launch(plan, gpu, &choice)
    }
}

fn check_gpu(gemm: &Gemm, gpu: GpuSpec) -> Result<(), PlanError> {
    let needed = Target::SM_90A;
    if !gpu.target.supports(needed) {
        let (kernel, target) = ("gemm_sm90".to_owned(), gpu.target);
        return Err(PlanError::Target { kernel, needed, target });
    }
    if gemm.element == PtxType::F32 && gemm.precision == Precision::Full {
        let help = "choose a precision that tensor cores support";
        return Err(argument_error("precision", "full f32".to_owned(), help));
    }
    Ok(())
}

/// A GEMM while it is planned, with the buffers that hold its operands so far.
struct Product {
    /// The requested GEMM.
    requested: Gemm,
    /// The same, or its transpose, so that results are row-major.
    gemm: Gemm,
    transposed: bool,
    /// Buffers of the operands of `gemm`.
    a: BufferSlot,
    b: BufferSlot,
    /// Whether kernels must not depend on the number of rows, of a [`Portfolio`].
    has_any_rows: bool,
}

impl Product {
    fn new(requested: &Gemm) -> Self {
        let product = Self {
            requested: *requested,
            gemm: normalise(requested),
            transposed: false,
            a: BufferSlot::Argument(0),
            b: BufferSlot::Argument(1),
            has_any_rows: false,
        };
        if requested.out.order == Layout::ColMajor { product.transposed() } else { product }
    }

    /// Returns the transposed GEMM.
    fn transposed(&self) -> Self {
        Self {
            requested: self.requested,
            gemm: self.gemm.transposed(),
            transposed: !self.transposed,
            a: self.b,
            b: self.a,
            has_any_rows: self.has_any_rows,
        }
    }

    /// Adds steps that repack operands whose layout tensor cores or TMA do not support.
    fn repack_operands(&mut self, plan: &mut Plan) -> Result<(), PlanError> {
        if self.gemm.element == PtxType::F32 {
            self.repack_f32_operands(plan)
        } else {
            self.repack_16bit_operands(plan)
        }
    }

    /// Repacks 16-bit operands that TMA cannot load, both in one step.
    fn repack_16bit_operands(&mut self, plan: &mut Plan) -> Result<(), PlanError> {
        let Gemm { m, n, k, batch, element, .. } = self.gemm;
        let (mut sources, mut buffers) = (Vec::new(), Vec::new());
        let operands =
            [(&mut self.gemm.a, &mut self.a, m, k), (&mut self.gemm.b, &mut self.b, k, n)];
        for (layout, buffer, rows, columns) in operands {
            if is_tma_aligned(layout, rows, columns, batch, 2) {
                continue;
            }
            let source = Source::new(*layout, rows, columns, batch);
            if source.chunk_count().is_none() {
                return Err(too_many_lines(batch, source.lines));
            }
            *layout = source.repacked_layout();
            buffers.extend([*buffer, allocate_scratch(buffer, plan, source.bytes())]);
            sources.push(source);
        }
        if !sources.is_empty() {
            let kernel: Box<dyn PtxKernel> = Box::new(Repack { sources, element });
            plan.steps.push(Step { kernel, buffers });
        }
        Ok(())
    }

    /// Repacks `f32` operands as K-major, the only layout that `wgmma` supports for TF32; as two
    /// terms for TF32x3.
    fn repack_f32_operands(&mut self, plan: &mut Plan) -> Result<(), PlanError> {
        let terms = self.terms();
        self.repack_f32(plan, terms, |is_k_major| is_k_major && terms == 1)
    }

    /// Repacks `f32` operands K-major, with this many TF32 terms. An operand with aligned rows is
    /// not repacked if `keeps_aligned` returns true, given whether the operand is K-major.
    fn repack_f32(
        &mut self,
        plan: &mut Plan,
        terms: u32,
        keeps_aligned: impl Fn(bool) -> bool,
    ) -> Result<(), PlanError> {
        let Gemm { m, n, k, batch, .. } = self.gemm;
        let operands = [
            (&mut self.gemm.a, &mut self.a, m, Layout::RowMajor),
            (&mut self.gemm.b, &mut self.b, n, Layout::ColMajor),
        ];
        for (layout, buffer, mn_extent, k_major) in operands {
            let is_k_major = layout.order == k_major;
            let (rows, columns) =
                if k_major == Layout::RowMajor { (mn_extent, k) } else { (k, mn_extent) };
            if keeps_aligned(is_k_major) && is_tma_aligned(layout, rows, columns, batch, 4) {
                continue;
            }
            let split = Split { terms, ..Split::new(*layout, [mn_extent, k], is_k_major, batch) };
            if !split.fits_grid() {
                return Err(too_many_lines(batch, mn_extent));
            }
            *layout = split.result_layout();
            let buffers = vec![*buffer, allocate_scratch(buffer, plan, split.bytes())];
            plan.steps.push(Step { kernel: Box::new(split), buffers });
        }
        Ok(())
    }

    /// Returns the TF32 terms per element: 1 for 16-bit operands, whatever the precision.
    fn terms(&self) -> u32 {
        let Gemm { element, precision, .. } = self.gemm;
        if element == PtxType::F32 && precision == Precision::Tf32x3 { 2 } else { 1 }
    }

    fn problem(&self, gpu: GpuSpec) -> Problem {
        let mn_major =
            (self.gemm.a.order == Layout::ColMajor, self.gemm.b.order == Layout::RowMajor);
        let tma_stores = self.tma_stores();
        Problem { gemm: self.gemm, mn_major, tma_stores, terms: self.terms(), gpu }
    }

    fn variant(
        &self,
        tile: HopperTile,
        output: PtxType,
        store: Store,
        epilogue: EpilogueKind,
    ) -> Variant {
        let major = |order, inner| if order == inner { Major::K } else { Major::Mn };
        Variant {
            element: self.gemm.element,
            terms: self.terms(),
            output,
            a: major(self.gemm.a.order, Layout::RowMajor),
            b: major(self.gemm.b.order, Layout::ColMajor),
            tile,
            streamed: Streamed::default(),
            store,
            epilogue,
            pdl: self.pdl(),
        }
    }

    /// Returns the operand to prefetch: the one that dominates the traffic, unless a preceding step
    /// of the plan writes it.
    fn pdl(&self) -> PdlPrefetch {
        let Gemm { m, n, k, .. } = self.gemm;
        if self.has_any_rows {
            return PdlPrefetch::None;
        }
        let pdl = PdlPrefetch::for_sizes([m, n, k]);
        let buffer = if pdl == PdlPrefetch::A { self.a } else { self.b };
        if matches!(buffer, BufferSlot::Argument(_)) { pdl } else { PdlPrefetch::None }
    }

    /// Adds the launch of the GEMM, and that of the split-K reduction.
    fn launch(&self, mut plan: Plan, gpu: GpuSpec, choice: &Choice) -> Result<Plan, PlanError> {
        if choice.splits == 1 {
            let product = if choice.transposed { self.transposed() } else { Self { ..*self } };
            let kernel = product.final_kernel(gpu, choice)?;
            let bias = kernel.variant.epilogue.bias != BiasAxis::None;
            let mut buffers = vec![product.a, product.b];
            buffers.extend(bias.then_some(BufferSlot::Argument(2)));
            buffers.push(BufferSlot::Argument(plan.arguments.len() - 1));
            plan.steps.push(Step { kernel: Box::new(kernel), buffers });
            return Ok(plan);
        }
        let kernel = self.partial_kernel(gpu, choice)?;
        let reduce = self.reduce_kernel(&kernel);
        let scratch = BufferSlot::Scratch(plan.scratch.len());
        plan.scratch.push(4 * reduce.partial_stride * u64::from(choice.splits) * self.gemm.batch);
        let buffers = vec![self.a, self.b, scratch];
        plan.steps.push(Step { kernel: Box::new(kernel), buffers });
        add_reduction(plan, &self.requested, reduce, Some(scratch))
    }

    /// Whether TMA can store the results, in multiples of 16 bytes per row.
    fn tma_stores(&self) -> bool {
        let Gemm { m, n, batch, output, out, epilogue, .. } = self.gemm;
        let size = u64::from(output.size());
        !epilogue.reads_out()
            && (n * size).is_multiple_of(16)
            && is_tma_aligned(&out, m, n, batch, size)
    }

    /// Returns the kernel that computes the final results.
    fn final_kernel(&self, gpu: GpuSpec, choice: &Choice) -> Result<HopperGemm, PlanError> {
        let Gemm { output, out, epilogue, .. } = self.gemm;
        let store = if choice.stores_by_cluster() {
            Store::Cluster(out.order)
        } else if self.tma_stores() && choice.tile.columns.is_multiple_of(128 / output.size()) {
            Store::Tiles
        } else {
            Store::Lanes
        };
        let epilogue = EpilogueKind::of(&epilogue, self.transposed);
        let variant = self.variant(choice.tile, output, store, epilogue);
        let mut kernel = HopperGemm::new(self.gemm, variant, 1, gpu)?;
        if self.has_any_rows {
            kernel.variant.streamed = Streamed::default();
        }
        Ok(kernel)
    }

    /// Returns the kernel that computes partial results.
    fn partial_kernel(&self, gpu: GpuSpec, choice: &Choice) -> Result<HopperGemm, PlanError> {
        let store =
            if choice.tile.columns.is_multiple_of(32) { Store::Tiles } else { Store::Lanes };
        let variant = self.variant(choice.tile, PtxType::F32, store, EpilogueKind::NONE);
        let ld = self.gemm.n.next_multiple_of(4);
        let out = MatrixLayout { order: Layout::RowMajor, ld, stride: ld * self.gemm.m };
        let gemm = Gemm { out, output: PtxType::F32, epilogue: Epilogue::NONE, ..self.gemm };
        HopperGemm::new(gemm, variant, choice.splits, gpu)
    }

    /// Returns the kernel that reduces another kernel's partial results.
    fn reduce_kernel(&self, kernel: &HopperGemm) -> Reduce {
        let MatrixLayout { ld, stride, .. } = kernel.gemm.out;
        let (row_stride, column_stride) = if self.transposed { (1, ld) } else { (ld, 1) };
        let WorkDivision { splits, .. } = kernel.division;
        Reduce { gemm: self.requested, splits, partial_stride: stride, row_stride, column_stride }
    }
}

/// Normalises layouts: a single row or column of contiguous elements counts as K-major.
fn normalise(requested: &Gemm) -> Gemm {
    let as_k_major = |layout: MatrixLayout, lines: u64, order: Layout| match layout {
        MatrixLayout { ld: 1, stride, .. } if lines == 1 && layout.order != order => {
            MatrixLayout { order, ld: requested.k, stride }
        }
        _ => layout,
    };
    let a = as_k_major(requested.a, requested.m, Layout::RowMajor);
    Gemm { a, b: as_k_major(requested.b, requested.n, Layout::ColMajor), ..*requested }
}

/// Allocates scratch memory for a repacked operand, and sets its buffer to that memory for later
/// steps.
fn allocate_scratch(buffer: &mut BufferSlot, plan: &mut Plan, bytes: u64) -> BufferSlot {
    *buffer = BufferSlot::Scratch(plan.scratch.len());
    plan.scratch.push(bytes);
    *buffer
}

fn too_many_lines(batch: u64, lines: u64) -> PlanError {
    let problem = format!(
        "{batch} matrices of {lines} rows or columns to repack, above the limit of a launch"
    );
    argument_error("operand", problem, SPLIT_PRODUCT)
}

/// Adds the split-K reduction to a plan, which ends with it. `partials` is the buffer of the
/// partial results; `None` if K is 0.
fn add_reduction(
    mut plan: Plan,
    gemm: &Gemm,
    reduce: Reduce,
    partials: Option<BufferSlot>,
) -> Result<Plan, PlanError> {
    if !reduce.fits_grid() {
        let Gemm { batch, m, n, .. } = gemm;
        let problem = format!("{batch} matrices of {m} by {n}, above the limit of a launch");
        return Err(argument_error("out", problem, SPLIT_PRODUCT));
    }
    let mut buffers: Vec<_> = partials.into_iter().collect();
    buffers.extend((2..plan.arguments.len()).map(BufferSlot::Argument));
    plan.steps.push(Step { kernel: Box::new(reduce), buffers });
    Ok(plan)
}
