//! Plans GEMMs without `wgmma`: on all GPUs those in `f32`, small ones and skinny ones; on GPUs
//! without `wgmma` also the others, on tensor cores with `mma.sync`.

use super::{Product, add_reduction};
use crate::kernels::gemm::dot::Dot;
use crate::kernels::gemm::ffma::{self, Ffma};
use crate::kernels::gemm::mma::{self, Mma};
use crate::kernels::gemm::params::GemmLaunch;
use crate::kernels::gemm::rasterization::Division;
use crate::kernels::gemm::reduce::Reduce;
use crate::kernels::gemm::repack::is_tma_aligned;
use crate::kernels::gemm::simple::GemmKernel;
use crate::kernels::gemm::store::StoreVariant;
use crate::kernels::gemm::{Epilogue, Gemm, Layout, MatrixLayout, Precision, argument_error};
use crate::kernels::{BufferParameter, BufferSlot, GpuSpec, Plan, PlanError, PtxKernel, Step};
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
    /// Slices of K (split-K), whose partial results a second launch adds up.
    splits: u32,
}

/// Candidate numbers of slices of K.
const SPLITS: [u32; 12] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64];
/// Device memory bytes per cycle.
const MEMORY_BYTES_PER_CYCLE: u128 = 2400;
/// Launch overhead: cycles before the first multiply-add and after the last one.
const LAUNCH_CYCLES: u128 = 4000;
/// Cycles of the reduction per slice.
const SPLIT_CYCLES: u128 = 125;
/// Overhead per block, in cycles.
const BLOCK_CYCLES: u128 = 1500;
/// Upper bound, exclusive, of leading dimensions: element offsets within a tile are 32-bit
/// integers.
const MAX_LD: u64 = 1 << 24;

/// Maximum number of results and maximum K of a small GEMM, which the tiled reference kernel
/// computes faster than the others.
const MAX_SMALL_RESULTS: u64 = 1 << 18;
pub(super) const MAX_SMALL_K: u64 = 64;

/// Maximum multiply-adds, and maximum K, of a GEMM with unaligned operands that are copied as they
/// are. Repacking, a launch of its own, takes longer than the slower copies of these.
const MAX_UNALIGNED_MUL_ADDS: u64 = 1 << 28;
const MAX_UNALIGNED_K: u64 = 1 << 15;

/// Whether a GEMM is computed by these kernels rather than with `wgmma`.
pub(super) fn is_portable(gemm: &Gemm, gpu: GpuSpec) -> bool {
    let product = Product::new(gemm);
    let is_portable =
        || product.as_skinny(gpu).is_some() || product.unaligned_choice(gpu).is_some();
    computes_in_f32(gemm, gpu)
        || !gpu.is_hopper()
        || is_small(gemm)
        || (product.fits_32_bit_offsets() && is_portable())
}

fn is_small(gemm: &Gemm) -> bool {
    let results = gemm.m.saturating_mul(gemm.n).saturating_mul(gemm.batch);
    results <= MAX_SMALL_RESULTS && gemm.k <= MAX_SMALL_K
}

/// Whether a GEMM is computed in `f32`. Without `wgmma`, TF32x3 is computed in `f32` too, which is
/// about as accurate.
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
    let in_f32 = computes_in_f32(gemm, gpu);
    if !gpu.target.supports(Target::SM_80) || !product.fits_32_bit_offsets() || is_small(gemm) {
        return product.launch_tiled(plan);
    }
    if let Some(dot) = product.as_skinny(gpu) {
        return dot.launch_dot(plan, gpu);
    }
    if let Some(choice) = product.unaligned_choice(gpu) {
        return product.launch_portable(plan, choice);
    }
    let (steps, scratch) = (plan.steps.len(), plan.scratch.len());
    if !in_f32 {
        product.repack_unaligned(&mut plan)?;
    }
    let units = match in_f32 {
        true => ffma::TILES.iter().map(Unit::Ffma).collect(),
        false => mma::TILES.iter().map(Unit::Mma).collect(),
    };
    // Repacking may have made a leading dimension too large.
    match product.choose(units, gpu).filter(|_| product.fits_32_bit_offsets()) {
        Some(choice) => product.launch_portable(plan, choice),
        None => {
            plan.steps.truncate(steps);
            plan.scratch.truncate(scratch);
            product.launch_tiled(plan)
        }
    }
}

impl Unit {
    /// Rows and columns of the tile.
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

    /// Maximum resident blocks per multiprocessor (occupancy).
    fn max_resident_blocks(self) -> u32 {
        match self {
            Self::Ffma(tile) => tile.resident_blocks,
            Self::Mma(tile) => tile.resident_blocks,
        }
    }

    /// Multiply-adds per cycle and multiprocessor, measured with as many blocks as fit, for
    /// operands of `size` bytes per element.
    fn multiply_adds_per_cycle(self, size: u32) -> u32 {
        match (self, size) {
            (Self::Ffma(tile), _) => tile.mul_adds_per_cycle,
            (Self::Mma(tile), 2) => tile.mul_adds_per_cycle,
            (Self::Mma(tile), _) => tile.mul_adds_per_cycle / 2,
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
        let fits = |layout: &MatrixLayout| layout.ld < MAX_LD;
        fits(&self.gemm.a) && fits(&self.gemm.b) && self.gemm.out.ld < 1 << 32
    }

    /// Returns the GEMM or its transpose if the skinny-GEMM kernel ([`Dot`]) supports it and is
    /// faster: than tensor cores that need repacked operands; or for `f32`, and 16-bit types
    /// without `wgmma`, if operands are K-major with enough columns for all multiprocessors.
    fn as_skinny(&self, gpu: GpuSpec) -> Option<Self> {
        let both = [Self { ..*self }, self.transposed()];
        let is_16bit = self.gemm.element.size() == 2;
        let needs_repacking = is_16bit && !self.is_aligned();
        let hopper = is_16bit && gpu.is_hopper();
        let worth_it = |gemm: &Gemm| {
            let has_enough_columns = gemm.n >= 2 * u64::from(gpu.multiprocessors);
            let is_k_major = gemm.a.order == Layout::RowMajor && gemm.b.order == Layout::ColMajor;
            (needs_repacking && Dot::is_faster_unaligned(gemm, gpu))
                || (!hopper && has_enough_columns && is_k_major)
        };
        let candidates = both.into_iter().filter(|product| Dot::supports(&product.gemm));
        let candidates = candidates.filter(|product| worth_it(&product.gemm));
        // K-major operands are read faster.
        candidates.min_by_key(|product| product.gemm.b.order == Layout::RowMajor)
    }

    /// Returns the choice for a small GEMM of 16-bit operands with unaligned rows, which are copied
    /// as they are.
    fn unaligned_choice(&self, gpu: GpuSpec) -> Option<Choice> {
        let Gemm { m, n, k, batch, element, .. } = self.gemm;
        let mul_adds = [m, n, k].into_iter().fold(batch, u64::saturating_mul);
        let is_small = mul_adds <= MAX_UNALIGNED_MUL_ADDS && k <= MAX_UNALIGNED_K;
        let is_worth_it = element.size() == 2 && !self.is_aligned() && is_small;
        let units = mma::UNALIGNED_TILES.iter().map(Unit::Mma).collect();
        is_worth_it.then(|| self.choose(units, gpu)).flatten()
    }

    /// Whether tensor cores support the 16-bit operands' layouts without repacking.
    pub(super) fn is_aligned(&self) -> bool {
        let Gemm { m, n, k, batch, a, b, .. } = self.gemm;
        is_tma_aligned(&a, m, k, batch, 2) && is_tma_aligned(&b, k, n, batch, 2)
    }

    fn launch_dot(&self, mut plan: Plan, gpu: GpuSpec) -> Result<Plan, PlanError> {
        let buffers = self.kernel_buffers(&self.gemm, 1)?;
        let kernel = Dot::new(&self.gemm, buffers, self.transposed, gpu);
        if kernel.division().grid().is_none() {
            return Err(too_many_tiles(&kernel.division()));
        }
        plan.steps.push(Step { kernel: Box::new(kernel), buffers: self.step_buffers(&plan) });
        Ok(plan)
    }

    /// Repacks operands whose rows are not 16-byte aligned.
    fn repack_unaligned(&mut self, plan: &mut Plan) -> Result<(), PlanError> {
        match self.gemm.element {
            PtxType::F32 => self.repack_f32(plan, 1, |_| true),
            _ => self.repack_16bit_operands(plan),
        }
    }

    /// Returns the choice with the fewest modelled cycles; `None` if no tile fits in shared memory.
    fn choose(&self, mut units: Vec<Unit>, gpu: GpuSpec) -> Option<Choice> {
        units.retain(|unit| unit.shared_bytes(&self.gemm) <= gpu.shared_memory);
        let choices = units
            .into_iter()
            .flat_map(|unit| SPLITS.into_iter().map(move |splits| Choice { unit, splits }));
        let possible = choices.filter(|choice| choice.splits == 1 || self.can_divide(choice));
        possible.min_by_key(|choice| self.cycles(choice, gpu))
    }

    fn division(&self, choice: &Choice) -> Division {
        let k_dim = choice.unit.k_dim(self.gemm.element.size());
        Division::new(&self.gemm, choice.unit.tile(), k_dim, choice.splits)
    }

    /// Whether no slice of K is empty, and slices are long enough to be worth the reduction.
    fn can_divide(&self, choice: &Choice) -> bool {
        let division = self.division(choice);
        let k_dim = choice.unit.k_dim(self.gemm.element.size());
        division.splits == choice.splits && division.split_k_dim >= 4 * k_dim
    }

    /// Returns the modelled cycles of a choice. They may exceed 64 bits.
    fn cycles(&self, choice: &Choice, gpu: GpuSpec) -> u128 {
        let division = self.division(choice);
        let [rows, columns] = choice.unit.tile().map(u128::from);
        let tiles = division.tiles.map(u128::from).iter().product::<u128>();
        let blocks = tiles * u128::from(choice.splits) * u128::from(self.gemm.batch);
        let blocks_per_multiprocessor = blocks.div_ceil(u128::from(gpu.multiprocessors).max(1));
        let max_resident = u128::from(choice.unit.max_resident_blocks());
        let rate = u128::from(choice.unit.multiply_adds_per_cycle(self.gemm.element.size()));
        // A small grid does not fill a multiprocessor. Since each block runs faster than at full
        // occupancy, throughput is still at least half of that at full occupancy.
        let share = max_resident + blocks_per_multiprocessor.min(max_resident);
        let work = rows * columns * u128::from(division.split_k_dim);
        let compute_cycles = blocks_per_multiprocessor * work * 2 * max_resident / (rate * share)
            + blocks_per_multiprocessor.div_ceil(max_resident) * BLOCK_CYCLES;
        LAUNCH_CYCLES + compute_cycles.max(self.memory_cycles()) + self.reduction_cycles(choice)
    }

    fn memory_cycles(&self) -> u128 {
        let Gemm { m, n, k, batch, .. } = self.gemm;
        let [m, n, k, batch] = [m, n, k, batch].map(u128::from);
        let [element, output] =
            [self.gemm.element, self.gemm.output].map(|ty| u128::from(ty.size()));
        batch * ((m + n) * k * element + m * n * output) / MEMORY_BYTES_PER_CYCLE
    }

    fn reduction_cycles(&self, choice: &Choice) -> u128 {
        let [m, n, batch] = [self.gemm.m, self.gemm.n, self.gemm.batch].map(u128::from);
        match u128::from(choice.splits) {
            1 => 0,
            splits => {
                LAUNCH_CYCLES
                    + SPLIT_CYCLES * splits
                    + m * n * batch * 4 * (2 * splits + 1) / MEMORY_BYTES_PER_CYCLE
            }
        }
    }

    /// Adds the launch of the GEMM, and that of the split-K reduction.
    fn launch_portable(&self, mut plan: Plan, choice: Choice) -> Result<Plan, PlanError> {
        let division = self.division(&choice);
        if division.grid().is_none() {
            return Err(too_many_tiles(&division));
        }
        if choice.splits == 1 {
            let store = StoreVariant::new(&self.gemm, self.transposed);
            let kernel = self.kernel(&self.gemm, choice.unit, store, division)?;
            plan.steps.push(Step { kernel, buffers: self.step_buffers(&plan) });
            return Ok(plan);
        }
        let Gemm { m, n, batch, .. } = self.gemm;
        let ld = n.next_multiple_of(4);
        let (partial_stride, splits) = (ld * m, u64::from(choice.splits));
        let out = MatrixLayout { order: Layout::RowMajor, ld, stride: partial_stride * splits };
        let accumulators =
            Gemm { out, output: PtxType::F32, epilogue: Epilogue::NONE, ..self.gemm };
        let kernel =
            self.kernel(&accumulators, choice.unit, StoreVariant::partial_results(), division)?;
        let scratch = BufferSlot::Scratch(plan.scratch.len());
        plan.scratch.push(partial_stride.saturating_mul(4 * splits).saturating_mul(batch));
        plan.steps.push(Step { kernel, buffers: vec![self.a, self.b, scratch] });
        let (row_stride, column_stride) = if self.transposed { (1, ld) } else { (ld, 1) };
        let reduce = Reduce {
            gemm: self.requested,
            splits: choice.splits,
            partial_stride,
            row_stride,
            column_stride,
        };
        add_reduction(plan, &self.requested, reduce, Some(scratch))
    }

    /// Returns the buffers that a step with the final results binds.
    fn step_buffers(&self, plan: &Plan) -> Vec<BufferSlot> {
        let mut places = vec![self.a, self.b];
        places.extend((2..plan.arguments.len()).map(BufferSlot::Argument));
        places
    }

    fn kernel(
        &self,
        gemm: &Gemm,
        unit: Unit,
        store: StoreVariant,
        division: Division,
    ) -> Result<Box<dyn PtxKernel>, PlanError> {
        let buffers = self.kernel_buffers(gemm, division.splits)?;
        let product = GemmLaunch { gemm: *gemm, buffers, division, store };
        Ok(match unit {
            Unit::Ffma(tile) => Box::new(Ffma::new(product, *tile)),
            Unit::Mma(tile) => Box::new(Mma::new(product, *tile)),
        })
    }

    /// Returns the buffers that a kernel declares. Unlike those of `gemm`, the bias has an element
    /// per column of the requested GEMM, and partial results are contiguous.
    fn kernel_buffers(&self, gemm: &Gemm, splits: u32) -> Result<Vec<BufferParameter>, PlanError> {
        let mut buffers = gemm.buffers()?;
        for buffer in &mut buffers {
            match buffer.name {
                "bias" => buffer.len = self.requested.n,
                "out" if splits > 1 => buffer.len = gemm.out.stride * gemm.batch,
                _ => {}
            }
        }
        Ok(buffers)
    }

    /// Adds the launch of the tiled reference kernel, which supports every GEMM.
    fn launch_tiled(&self, mut plan: Plan) -> Result<Plan, PlanError> {
        let kernel = GemmKernel::of(&self.requested, Some(16))?;
        let buffers = (0..plan.arguments.len()).map(BufferSlot::Argument).collect();
        plan.steps.push(Step { kernel: Box::new(kernel), buffers });
        Ok(plan)
    }
}

fn too_many_tiles(division: &Division) -> PlanError {
    let [down, across] = division.tiles;
    let problem = format!("{down} by {across} tiles with split-K {}, too many", division.splits);
    argument_error("out", problem, "split the product into several with fewer rows or columns")
}
