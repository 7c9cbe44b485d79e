//! Plans GEMMs without `wgmma`: in `f32` on all GPUs, and on Ampere-style tensor cores elsewhere.

use super::{Product, finish};
use crate::kernels::gemm::dot::Dot;
use crate::kernels::gemm::ffma::{self, Ffma};
use crate::kernels::gemm::mma::{self, Mma};
use crate::kernels::gemm::params::Launched;
use crate::kernels::gemm::rasterization::Division;
use crate::kernels::gemm::reduce::Reduce;
use crate::kernels::gemm::repack::fits;
use crate::kernels::gemm::simple::GemmKernel;
use crate::kernels::gemm::store::Sink;
use crate::kernels::gemm::{Epilogue, Gemm, Layout, MatrixLayout, Precision, refusal};
use crate::kernels::{BufferParameter, GpuSpec, Place, Plan, PlanError, PtxKernel, Step};
use crate::target::Target;
use crate::types::PtxType;

/// The unit that computes a tile.
#[derive(Debug, Clone, Copy)]
pub(super) enum Unit {
    /// CUDA cores (FFMA), in `f32`.
    Ffma(&'static ffma::FfmaTile),
    /// Tensor cores (`mma.sync`).
    Mma(&'static mma::MmaTile),
}

/// How a GEMM is computed.
#[derive(Debug, Clone, Copy)]
struct Choice {
    unit: Unit,
    /// Slices of K (split-K), whose partial results are added up later.
    parts: u32,
}

/// Numbers of slices to choose from.
const PARTS: [u32; 12] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64];
/// Device memory bytes per cycle.
const MEMORY_BYTES: u128 = 2400;
/// Launch overhead: cycles before the first multiply-add and after the last one.
const LAUNCH: u128 = 4000;
/// Cycles of the reduction per slice.
const PART: u128 = 125;
/// Overhead per block, in cycles.
const BLOCK: u128 = 1500;
/// Maximum leading dimension: element offsets within a tile are 32-bit integers.
const MAX_LD: u64 = 1 << 24;

/// Results and K of GEMMs that are faster than the setup of tensor cores.
const SMALL: (u64, u64) = (1 << 18, 64);

/// Whether a GEMM is computed by these kernels rather than with `wgmma`.
pub(super) fn is_portable(gemm: &Gemm, gpu: GpuSpec) -> bool {
    let product = Product::new(gemm);
    let few = || product.fits_32_bit_offsets() && product.as_skinny(gpu).is_some();
    computes_in_f32(gemm, gpu) || !gpu.is_hopper() || is_small(gemm) || few()
}

fn is_small(gemm: &Gemm) -> bool {
    let results = gemm.m.saturating_mul(gemm.n).saturating_mul(gemm.batch);
    results <= SMALL.0 && gemm.k <= SMALL.1
}

/// Whether it is computed in `f32`. Without `wgmma`, TF32x3 is too: `f32` is at least as accurate.
fn computes_in_f32(gemm: &Gemm, gpu: GpuSpec) -> bool {
    let hopper = gpu.is_hopper();
    gemm.element == PtxType::F32
        && match gemm.precision {
            Precision::Full => true,
            Precision::Tf32x3 => !hopper,
            Precision::Tf32 => false,
        }
}

/// Returns the launches of a GEMM that is not empty.
pub(super) fn plan(mut plan: Plan, gemm: &Gemm, gpu: GpuSpec) -> Result<Plan, PlanError> {
    let mut product = Product::new(gemm);
    let exact = computes_in_f32(gemm, gpu);
    if !gpu.target.runs(Target::SM_80) || !product.fits_32_bit_offsets() || is_small(gemm) {
        return product.launch_naive(plan);
    }
    if let Some(dot) = product.as_skinny(gpu) {
        return dot.launch_dot(plan, gpu);
    }
    let (steps, scratch) = (plan.steps.len(), plan.scratch.len());
    if !exact {
        product.align_lines(&mut plan)?;
    }
    // Rows of a repacked operand have K elements.
    match product.choose(exact, gpu).filter(|_| product.fits_32_bit_offsets()) {
        Some(choice) => product.launch_portable(plan, choice),
        None => {
            plan.steps.truncate(steps);
            plan.scratch.truncate(scratch);
            product.launch_naive(plan)
        }
    }
}

impl Unit {
    fn tile(self) -> [u32; 2] {
        match self {
            Self::Ffma(tile) => [tile.rows, tile.columns],
            Self::Mma(tile) => [tile.rows, tile.columns],
        }
    }

    fn shared_bytes(self, gemm: &Gemm) -> u32 {
        match self {
            Self::Ffma(tile) => ffma::shared_bytes(gemm, tile),
            Self::Mma(tile) => mma::shared_bytes(gemm, tile),
        }
    }

    fn blocks(self) -> u32 {
        match self {
            Self::Ffma(tile) => tile.blocks,
            Self::Mma(tile) => tile.blocks,
        }
    }

    /// Multiply-adds per cycle and multiprocessor, measured with as many blocks as fit.
    fn rate(self, size: u32) -> u32 {
        match (self, size) {
            (Self::Ffma(tile), _) => tile.rate,
            (Self::Mma(tile), 2) => tile.rate,
            (Self::Mma(tile), _) => tile.rate / 2,
        }
    }

    /// Elements along K per stage.
    fn k_dim(self, size: u32) -> u32 {
        match self {
            Self::Ffma(tile) => tile.k_dim,
            Self::Mma(_) => mma::k_dim(size),
        }
    }
}

impl Product {
    /// Whether element offsets within a tile fit in 32 bits.
    fn fits_32_bit_offsets(&self) -> bool {
        let near = |layout: &MatrixLayout| layout.ld < MAX_LD;
        near(&self.gemm.a) && near(&self.gemm.b) && self.gemm.out.ld < 1 << 32
    }

    /// Returns the GEMM or its transpose for the skinny-GEMM kernel, if it fits: enough columns for
    /// all multiprocessors, and no tensor cores that support its layout without repacking.
    fn as_skinny(&self, gpu: GpuSpec) -> Option<Self> {
        let both = [Self { ..*self }, self.transposed()];
        let halves = self.gemm.element.size() == 2;
        let copied = halves && !self.is_aligned();
        let hopper = halves && gpu.is_hopper();
        let worth_it = |gemm: &Gemm| {
            let many = gemm.n >= 2 * u64::from(gpu.multiprocessors);
            let along = gemm.a.order == Layout::RowMajor && gemm.b.order == Layout::ColMajor;
            (copied && Dot::is_faster_unaligned(gemm, gpu)) || (!hopper && many && along)
        };
        let good = both.into_iter().filter(|product| Dot::supports(&product.gemm));
        let good = good.filter(|product| worth_it(&product.gemm));
        // K-major operands are read faster.
        good.min_by_key(|product| product.gemm.b.order == Layout::RowMajor)
    }

    /// Whether tensor cores support the 16-bit operands' layouts.
    fn is_aligned(&self) -> bool {
        let Gemm { m, n, k, batch, a, b, .. } = self.gemm;
        fits(&a, m, k, batch, 2) && fits(&b, k, n, batch, 2)
    }

    fn launch_dot(&self, mut plan: Plan, gpu: GpuSpec) -> Result<Plan, PlanError> {
        let buffers = self.buffers_of(&self.gemm, 1)?;
        let kernel = Dot::new(&self.gemm, buffers, self.transposed, gpu);
        if kernel.division().grid().is_none() {
            return Err(too_many_tiles(&kernel.division()));
        }
        plan.steps.push(Step { kernel: Box::new(kernel), buffers: self.places(&plan) });
        Ok(plan)
    }

    /// Repacks operands whose rows are not 16-byte aligned.
    fn align_lines(&mut self, plan: &mut Plan) -> Result<(), PlanError> {
        match self.gemm.element {
            PtxType::F32 => self.repack_f32(plan, 1, |_| true),
            _ => self.align_16bit(plan),
        }
    }

    /// Returns the choice with the fewest modelled cycles; `None` if no tile fits in shared memory.
    fn choose(&self, exact: bool, gpu: GpuSpec) -> Option<Choice> {
        let mut units: Vec<_> = match exact {
            true => ffma::TILES.iter().map(Unit::Ffma).collect(),
            false => mma::TILES.iter().map(Unit::Mma).collect(),
        };
        units.retain(|unit| unit.shared_bytes(&self.gemm) <= gpu.shared_memory);
        let choices = units
            .into_iter()
            .flat_map(|unit| PARTS.into_iter().map(move |parts| Choice { unit, parts }));
        let possible = choices.filter(|choice| choice.parts == 1 || self.can_divide(choice));
        possible.min_by_key(|choice| self.cycles(choice, gpu))
    }

    fn division(&self, choice: &Choice) -> Division {
        let k_dim = choice.unit.k_dim(self.gemm.element.size());
        Division::new(&self.gemm, choice.unit.tile(), k_dim, choice.parts)
    }

    /// Whether no slice of K is empty, or too short to be worth the reduction.
    fn can_divide(&self, choice: &Choice) -> bool {
        let division = self.division(choice);
        let k_dim = choice.unit.k_dim(self.gemm.element.size());
        division.parts == choice.parts && division.part_k_dim >= 4 * k_dim
    }

    /// Returns the modelled cycles of a choice. They may exceed 64 bits.
    fn cycles(&self, choice: &Choice, gpu: GpuSpec) -> u128 {
        let division = self.division(choice);
        let [rows, columns] = choice.unit.tile().map(u128::from);
        let tiles = division.tiles.map(u128::from).iter().product::<u128>();
        let blocks = tiles * u128::from(choice.parts) * u128::from(self.gemm.batch);
        let load = blocks.div_ceil(u128::from(gpu.multiprocessors).max(1));
        let most = u128::from(choice.unit.blocks());
        let rate = u128::from(choice.unit.rate(self.gemm.element.size()));
        // A small grid does not fill a multiprocessor, but each block runs faster than at full
        // occupancy.
        let share = most + load.min(most);
        let work = rows * columns * u128::from(division.part_k_dim);
        let computing = load * work * 2 * most / (rate * share) + load.div_ceil(most) * BLOCK;
        LAUNCH + computing.max(self.memory_cycles()) + self.adding_cycles(choice)
    }

    fn memory_cycles(&self) -> u128 {
        let Gemm { m, n, k, batch, .. } = self.gemm;
        let [m, n, k, batch] = [m, n, k, batch].map(u128::from);
        let [element, output] =
            [self.gemm.element, self.gemm.output].map(|ty| u128::from(ty.size()));
        batch * ((m + n) * k * element + m * n * output) / MEMORY_BYTES
    }

    fn adding_cycles(&self, choice: &Choice) -> u128 {
        let [m, n, batch] = [self.gemm.m, self.gemm.n, self.gemm.batch].map(u128::from);
        match u128::from(choice.parts) {
            1 => 0,
            parts => LAUNCH + PART * parts + m * n * batch * 4 * (2 * parts + 1) / MEMORY_BYTES,
        }
    }

    /// Adds the launch of the GEMM, and that of the split-K reduction.
    fn launch_portable(&self, mut plan: Plan, choice: Choice) -> Result<Plan, PlanError> {
        let division = self.division(&choice);
        if division.grid().is_none() {
            return Err(too_many_tiles(&division));
        }
        if choice.parts == 1 {
            let sink = Sink::new(&self.gemm, self.transposed);
            let kernel = self.kernel(&self.gemm, choice.unit, sink, division)?;
            plan.steps.push(Step { kernel, buffers: self.places(&plan) });
            return Ok(plan);
        }
        let Gemm { m, n, batch, .. } = self.gemm;
        let ld = n.next_multiple_of(4);
        let (partial, parts) = (ld * m, u64::from(choice.parts));
        let out = MatrixLayout { order: Layout::RowMajor, ld, stride: partial * parts };
        let accumulators =
            Gemm { out, output: PtxType::F32, epilogue: Epilogue::NONE, ..self.gemm };
        let kernel = self.kernel(&accumulators, choice.unit, Sink::accumulators(), division)?;
        let scratch = Place::Scratch(plan.scratch.len());
        plan.scratch.push(partial.saturating_mul(4 * parts).saturating_mul(batch));
        plan.steps.push(Step { kernel, buffers: vec![self.a, self.b, scratch] });
        let (row, column) = if self.transposed { (1, ld) } else { (ld, 1) };
        let reduce = Reduce { gemm: self.requested, splits: choice.parts, partial, row, column };
        finish(plan, &self.requested, reduce, Some(scratch))
    }

    /// Returns the places of a kernel's buffers.
    fn places(&self, plan: &Plan) -> Vec<Place> {
        let mut places = vec![self.a, self.b];
        places.extend((2..plan.arguments.len()).map(Place::Argument));
        places
    }

    fn kernel(
        &self,
        gemm: &Gemm,
        unit: Unit,
        sink: Sink,
        division: Division,
    ) -> Result<Box<dyn PtxKernel>, PlanError> {
        let buffers = self.buffers_of(gemm, division.parts)?;
        let product = Launched { gemm: *gemm, buffers, division, sink };
        Ok(match unit {
            Unit::Ffma(tile) => Box::new(Ffma::new(product, *tile)),
            Unit::Mma(tile) => Box::new(Mma::new(product, *tile)),
        })
    }

    /// Returns a kernel's buffers: for a transposed GEMM the bias is per row, and partial results
    /// are contiguous.
    fn buffers_of(&self, gemm: &Gemm, parts: u32) -> Result<Vec<BufferParameter>, PlanError> {
        let mut buffers = gemm.buffers()?;
        for buffer in &mut buffers {
            match buffer.name {
                "bias" => buffer.len = self.requested.n,
                "out" if parts > 1 => buffer.len = gemm.out.stride * gemm.batch,
                _ => {}
            }
        }
        Ok(buffers)
    }

    /// Adds the launch of the naive kernel, which supports everything.
    fn launch_naive(&self, mut plan: Plan) -> Result<Plan, PlanError> {
        let kernel = GemmKernel::of(&self.requested, Some(16))?;
        let buffers = (0..plan.arguments.len()).map(Place::Argument).collect();
        plan.steps.push(Step { kernel: Box::new(kernel), buffers });
        Ok(plan)
    }
}

fn too_many_tiles(division: &Division) -> PlanError {
    let [down, across] = division.tiles;
    let problem = format!("{down} by {across} tiles in {} parts, too many", division.parts);
    refusal("out", problem, "compute the product in parts")
}
