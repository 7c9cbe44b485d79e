//! Chooses the kernel variant of a GEMM: the one with the fewest cycles in a cost model of the
//! multiprocessor.

use super::variant::{HopperTile, ROW_BYTES};
use crate::kernels::GpuSpec;
use crate::kernels::gemm::{Gemm, MatrixLayout};

/// A configuration of the Hopper GEMM kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// The tile shape of a block or cluster.
    pub tile: HopperTile,
    /// Split-K through global memory: the number of slices of K, whose partial results a second
    /// kernel adds up. 1 for split-K within a cluster.
    pub splits: u32,
    /// Whether the transposed GEMM is computed, so that the longer side is M: an MMA instruction
    /// has at least 64 rows.
    pub transposed: bool,
}

impl Choice {
    /// Whether the results are those of [`Store::Cluster`](super::Store::Cluster): the blocks of a
    /// cluster split K, or the GEMM is transposed. They have any layout, and a block computes one
    /// tile only.
    #[must_use]
    pub const fn stores_by_cluster(&self) -> bool {
        self.splits == 1 && (self.tile.split_k > 1 || self.transposed)
    }
}

/// Candidate tile widths. Each block's share of a multicast tile of `b` must be a multiple of 8
/// rows.
const TILE_COLUMNS: [u32; 6] = [16, 32, 64, 128, 192, 256];
const SPLITS: [u32; 12] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64];

// The following constants were measured on an H200; cycles are at 1.755 GHz.

/// L2 bytes per cycle and multiprocessor.
const L2_BYTES_PER_CYCLE: u64 = 72;
/// Device memory bytes per cycle, for the whole device.
const MEMORY_BYTES_PER_CYCLE: u64 = 2400;
/// Device memory bytes per cycle that one block can get.
const MAX_BLOCK_BYTES_PER_CYCLE: u64 = 28;
/// Latency of device memory under load, in cycles.
const LATENCY_CYCLES: u64 = 7000;
/// Bytes of shared memory per block that the model assumes for pipeline stages.
const STAGE_MEMORY_BYTES: u32 = 200 * 1024;
/// Launch overhead: cycles before the first MMA and after the last one.
const LAUNCH_CYCLES: u64 = 4000;
/// The additional overhead of launching clusters.
const CLUSTER_LAUNCH_CYCLES: u64 = 2000;
/// Overhead per stage, in cycles.
const STAGE_CYCLES: u64 = 50;
/// Minimum cycles of a stage's MMAs, for any number of columns.
const MIN_STAGE_MMA_CYCLES: u64 = 280;
/// Cycles of a tile's epilogue in addition to those of the stores.
const EPILOGUE_CYCLES: u64 = 600;
/// Bytes per cycle that a block stores through TMA.
const TMA_STORE_BYTES_PER_CYCLE: u64 = 27;
/// Bytes per cycle that a block stores from registers.
const LANE_STORE_BYTES_PER_CYCLE: u64 = 12;
/// Cycles for the first cluster barrier and access to distributed shared memory.
const CLUSTER_BARRIER_CYCLES: u64 = 2500;

/// The inputs of the choice.
#[derive(Debug, Clone, Copy)]
pub(in crate::kernels::gemm) struct Problem {
    /// The GEMM, with a row-major result.
    pub gemm: Gemm,
    /// Whether `a` is M-major, and `b` N-major.
    pub mn_major: (bool, bool),
    /// Whether TMA can store the results.
    pub tma_stores: bool,
    /// Number of TF32 terms per operand element.
    pub terms: u32,
    /// The GPU.
    pub gpu: GpuSpec,
}

impl Problem {
    /// Returns the choice with the fewest modelled cycles.
    pub(in crate::kernels::gemm) fn choose(&self) -> Choice {
        self.choose_if(|_| true)
    }

    /// Returns the choice with the fewest modelled cycles that needs no reduction kernel.
    pub(super) fn choose_single_kernel(&self) -> Choice {
        self.choose_if(|choice| choice.splits == 1)
    }

    /// Returns the choice with the fewest modelled cycles for which a predicate is true, as it is
    /// for those without split-K.
    fn choose_if(&self, is_candidate: impl Fn(&Choice) -> bool) -> Choice {
        // Few numbers of slices pay off: checked first, since there are thousands of choices.
        let slices: Vec<u32> = SPLITS.into_iter().filter(|it| self.pays_off(*it)).collect();
        let slices = slices.as_slice();
        let candidates = [false, true].into_iter().flat_map(|transposed| {
            let choices = Self::candidate_tiles().flat_map(move |tile| {
                let splits = slices.iter().filter(move |it| it.is_multiple_of(tile.split_k));
                splits.map(move |it| Choice { tile, splits: it / tile.split_k, transposed })
            });
            choices.filter(|choice| self.unsupported_reason(choice).is_none())
        });
        candidates
            .filter(|choice| is_candidate(choice))
            .min_by_key(|choice| self.cycles(choice))
            .expect("a product without split-K is always possible")
    }

    /// Returns the candidate tiles; of two with equal cycles the first one is chosen.
    fn candidate_tiles() -> impl Iterator<Item = HopperTile> {
        let shapes = TILE_COLUMNS
            .into_iter()
            .flat_map(|columns| [2, 1, 3].map(|warpgroups| (warpgroups, columns)));
        shapes.flat_map(|(warpgroups, columns)| {
            // With three warpgroups, barriers over a cluster cost more than multicast saves.
            let clusters = if warpgroups < 3 { 1..=2 } else { 1..=1 };
            let clusters =
                clusters.map(move |cluster_m| HopperTile::new(warpgroups, columns, cluster_m));
            let split = [2, 4, 8].map(|split_k| HopperTile::split(warpgroups, columns, split_k));
            clusters.chain(split)
        })
    }

    /// Pipeline stages over the whole K.
    fn stages(&self) -> u64 {
        self.gemm.k.div_ceil((ROW_BYTES / self.gemm.element.size()).into())
    }

    /// Returns the stages per slice of K, or `None` if a slice would be empty.
    fn stages_per_split(&self, splits: u32) -> Option<u64> {
        let (stages, splits) = (self.stages(), u64::from(splits));
        let stages_per_split = stages.div_ceil(splits.max(1)).max(1);
        (stages.div_ceil(stages_per_split) == splits).then_some(stages_per_split)
    }

    /// Whether this many slices of K are long enough to pay for a reduction.
    fn pays_off(&self, slices: u32) -> bool {
        self.stages_per_split(slices)
            .is_some_and(|stages_per_split| slices == 1 || stages_per_split >= 4)
    }

    /// Returns why no kernel supports the choice, as the end of "a tile …"; `None` if one does.
    pub(in crate::kernels::gemm) fn unsupported_reason(
        &self,
        choice: &Choice,
    ) -> Option<&'static str> {
        let Choice { tile, splits, transposed } = *choice;
        let HopperTile { warpgroups, columns, cluster_m, split_k } = tile;
        let mn_major = if transposed { self.mn_major.0 } else { self.mn_major.1 };
        let max_columns = if self.terms == 2 { 128 } else { 192 + 64 * u32::from(warpgroups < 3) };
        let reasons = [
            (!matches!(warpgroups, 1..=3), "with other than 1 to 3 warpgroups"),
            (columns == 0 || !columns.is_multiple_of(16), "whose columns are not a multiple of 16"),
            (
                mn_major && !columns.is_multiple_of(64),
                "whose columns are not a multiple of 64, with `b` N-major",
            ),
            (columns > max_columns, "with more columns than registers can hold"),
            (!matches!(cluster_m, 1 | 2), "for a cluster of other than 1 or 2 blocks"),
            (
                !matches!(split_k, 1 | 2 | 4 | 8),
                "split over other than 1, 2, 4 or 8 blocks of a cluster",
            ),
            (
                cluster_m > 1 && (split_k > 1 || transposed),
                "that both shares `b` and splits K or is transposed",
            ),
            (self.stages_per_split(splits).is_none(), "with empty slices of K"),
            (splits > 1 && (split_k > 1 || transposed), "that splits K twice or is transposed"),
        ];
        reasons
            .into_iter()
            .find(|(applies, _)| *applies)
            .map(|(_, unsupported_reason)| unsupported_reason)
    }

    /// Returns the modelled cycles of a choice.
    pub(super) fn cycles(&self, choice: &Choice) -> u64 {
        let Choice { tile, splits, transposed } = *choice;
        let Gemm { m, n, batch, .. } = self.gemm;
        let (rows, columns) = if transposed { (n, m) } else { (m, n) };
        let clusters = rows
            .div_ceil(u64::from(tile.rows() * tile.cluster_m))
            .saturating_mul(columns.div_ceil(tile.columns.into()))
            .saturating_mul(u64::from(splits))
            .saturating_mul(batch);
        let k_stages = self.stages().div_ceil(u64::from(splits * tile.split_k));
        let waves = clusters.div_ceil(self.resident_clusters(&tile));
        let tile_cycles = k_stages * self.stage_cycles(choice) + self.epilogue_cycles(choice);
        let (compute_cycles, memory_cycles) =
            (waves.saturating_mul(tile_cycles), self.memory_cycles(choice, clusters));
        let launch =
            if tile.blocks() > 1 { LAUNCH_CYCLES + CLUSTER_LAUNCH_CYCLES } else { LAUNCH_CYCLES };
        // No results are stored while the first tile is computed.
        let first_store = tile_cycles.min(self.result_bytes() / MEMORY_BYTES_PER_CYCLE);
        let overhead = launch + first_store;
        let reduction = self.reduction_cycles(choice);
        overlapped(compute_cycles, memory_cycles).saturating_add(overhead).saturating_add(reduction)
    }

    /// Clusters that are resident at the same time. Larger clusters cannot use all multiprocessors.
    fn resident_clusters(&self, tile: &HopperTile) -> u64 {
        let multiprocessors = self.gpu.multiprocessors;
        let usable =
            if tile.split_k > 2 { multiprocessors - multiprocessors / 11 } else { multiprocessors };
        u64::from(usable / tile.blocks()).max(1)
    }

    /// Cycles per stage: the maximum of those of the MMAs, which also read `b` from shared memory,
    /// and those of the loads.
    fn stage_cycles(&self, choice: &Choice) -> u64 {
        let Choice { tile, transposed, .. } = choice;
        let mma_units = (tile.columns / 2).max(16 + tile.columns / 4);
        // With two terms per operand, three products are computed.
        let mma_cycles =
            u64::from(4 * tile.warpgroups * mma_units * (2 * self.terms - 1)) * 11 / 10;
        let [a, b] = [self.gemm.a, self.gemm.b].map(|layout| self.load_cost_quarters(&layout));
        let (a, b) = if *transposed { (b, a) } else { (a, b) };
        let lines = tile.rows() * a + tile.columns * b / tile.cluster_m;
        let load_cycles = u64::from(lines * self.terms * ROW_BYTES / 4) / L2_BYTES_PER_CYCLE;
        STAGE_CYCLES + overlapped(mma_cycles, load_cycles).max(MIN_STAGE_MMA_CYCLES)
    }

    /// Cost of loading a row of a tile, in quarters of the cost of an aligned row.
    fn load_cost_quarters(&self, layout: &MatrixLayout) -> u32 {
        let elements = u64::from(ROW_BYTES / self.gemm.element.size());
        if layout.ld.is_multiple_of(elements) { 4 } else { 9 }
    }

    /// Cycles of a tile's epilogue.
    fn epilogue_cycles(&self, choice: &Choice) -> u64 {
        let Choice { tile, splits, .. } = *choice;
        let results = u64::from(tile.rows() * tile.columns);
        let size = if splits > 1 { 4 } else { self.gemm.output.size() };
        let bytes = results * u64::from(size);
        if choice.stores_by_cluster() {
            CLUSTER_BARRIER_CYCLES + results * u64::from(tile.split_k) / 4
        } else if (splits > 1 || self.tma_stores) && (tile.columns * size).is_multiple_of(ROW_BYTES)
        {
            EPILOGUE_CYCLES + bytes / TMA_STORE_BYTES_PER_CYCLE
        } else {
            EPILOGUE_CYCLES + bytes / LANE_STORE_BYTES_PER_CYCLE
        }
    }

    /// Cycles for the loads of all operands from device memory, and the stores of all results.
    fn memory_cycles(&self, choice: &Choice, clusters: u64) -> u64 {
        let Choice { tile, transposed, .. } = *choice;
        let Gemm { m, n, k, batch, element, .. } = self.gemm;
        let element_bytes = u64::from(element.size() * self.terms);
        let matrices = (m * k).saturating_add(k * n).saturating_mul(element_bytes);
        let operands = matrices.saturating_mul(batch);
        let total = operands.saturating_add(self.result_bytes());
        // A block's bandwidth is limited by its bytes in flight.
        let (m, n) = if transposed { (n, m) } else { (m, n) };
        let lines = m.min(tile.rows().into()) + n.min(tile.columns.into());
        let stages =
            (STAGE_MEMORY_BYTES / ((tile.rows() + tile.columns) * self.terms * ROW_BYTES)).min(16);
        let bytes_in_flight = lines * u64::from(stages * self.terms * ROW_BYTES);
        let rate = (bytes_in_flight / LATENCY_CYCLES).clamp(1, MAX_BLOCK_BYTES_PER_CYCLE);
        let blocks = clusters.min(self.resident_clusters(&tile)) * u64::from(tile.blocks());
        (total / MEMORY_BYTES_PER_CYCLE).max(operands / (blocks * rate))
    }

    fn result_bytes(&self) -> u64 {
        let Gemm { m, n, batch, output, .. } = self.gemm;
        (m * n).saturating_mul(output.size().into()).saturating_mul(batch)
    }

    /// Cycles of the split-K reduction kernel.
    fn reduction_cycles(&self, choice: &Choice) -> u64 {
        if choice.splits == 1 {
            return 0;
        }
        let bytes = (self.gemm.m * self.gemm.n).saturating_mul(self.gemm.batch * 4);
        LAUNCH_CYCLES
            + bytes.saturating_mul(u64::from(2 * choice.splits + 1)) / MEMORY_BYTES_PER_CYCLE
    }
}

/// Cycles of two overlapped phases: the shorter one is not hidden completely.
fn overlapped(a: u64, b: u64) -> u64 {
    a.max(b).saturating_add(a.min(b) / 16)
}
