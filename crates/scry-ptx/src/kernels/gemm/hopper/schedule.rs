//! The persistent tile scheduler: which work items a block computes, in which order.

use super::variant::{HopperTile, Store, Variant};
use crate::kernels::Parameter;
use crate::kernels::gemm::memory::to_u64;
use crate::typed::{KernelBuilder, Val};

/// How a GEMM is divided into work items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkDivision {
    /// Slices of K (split-K), whose partial results are stored one after the other.
    pub splits: u32,
    /// Rows of clusters of tiles per rasterization band, which are computed close together in time.
    pub band: u32,
    /// Number of persistent blocks, a multiple of the cluster size.
    pub blocks: u32,
}

/// How a GEMM is divided into work items: parameters of the kernel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Schedule<'k> {
    k: &'k KernelBuilder,
    variant: Variant,
    /// Work items in total.
    work_items: Val<'k, u32>,
    /// Clusters of tiles of a result.
    tiles: Divisor<'k>,
    /// Slices of K.
    splits: Divisor<'k>,
    /// Rows of clusters of tiles per rasterization band, and clusters of tiles in a band.
    band: Divisor<'k>,
    band_tiles: Divisor<'k>,
    /// Number of full bands, and rows of clusters of tiles in the partial band after them.
    bands: Val<'k, u32>,
    last_band: Divisor<'k>,
    /// Pipeline stages over the whole K.
    k_stages: Val<'k, u32>,
    /// Pipeline stages per slice of K.
    split_k_stages: Val<'k, u32>,
}

/// Upper bound, exclusive, of the number of work items over all matrices of the batch.
pub(super) const MAX_WORK_ITEMS: u32 = 1 << 28;

/// A divisor of numbers below [`MAX_WORK_ITEMS`]. Division is replaced by a multiplication and a
/// shift: integer division is some thirty dependent instructions, which would delay the first tile.
#[derive(Debug, Clone, Copy)]
struct Divisor<'k> {
    number: Val<'k, u32>,
    /// The multiplier.
    factor: Val<'k, u32>,
    shift: Val<'k, u32>,
}

impl<'k> Divisor<'k> {
    fn declare(k: &'k KernelBuilder, name: &str) -> Self {
        let [factor, shift] =
            ["factor", "shift"].map(|part| k.scalar_param(&format!("{name}_{part}")));
        Self { number: k.scalar_param(name), factor, shift }
    }

    /// Returns what [`Divisor::declare`] declares.
    fn parameters(number: u32) -> [Parameter; 3] {
        let [factor, shift] = reciprocal(number);
        [factor, shift, number].map(Parameter::U32)
    }

    fn quotient(&self, dividend: Val<'k, u32>) -> Val<'k, u32> {
        let product: Val<'_, u64> = to_u64(dividend) * to_u64(self.factor);
        (product >> self.shift).convert("")
    }

    /// Returns quotient and remainder.
    fn divide(&self, number: Val<'k, u32>) -> [Val<'k, u32>; 2] {
        let quotient = self.quotient(number);
        [quotient, number - quotient * self.number]
    }
}

/// Returns the multiplier and the shift that replace the division of a number below
/// [`MAX_WORK_ITEMS`]. The multiplier is rounded up, so that `multiplier * divisor` exceeds
/// `2^shift` by less than the divisor; for such numbers the quotient is exact.
fn reciprocal(divisor: u32) -> [u32; 2] {
    let divisor = divisor.max(1);
    let shift = MAX_WORK_ITEMS.ilog2() + divisor.next_power_of_two().ilog2();
    [(1u64 << shift).div_ceil(divisor.into()) as u32, shift]
}

/// A work item.
#[derive(Debug, Clone, Copy)]
pub(super) struct WorkItem<'k> {
    /// First row.
    pub row: Val<'k, u32>,
    /// First column.
    pub column: Val<'k, u32>,
    /// Index in the batch.
    pub batch: Val<'k, u32>,
    /// Index of the result: in the batch, or of a split-K slice.
    pub result: Val<'k, u32>,
    /// First K tile.
    pub k_tile_start: Val<'k, u32>,
    /// End of its K tiles (exclusive).
    pub k_tile_end: Val<'k, u32>,
}

impl<'k> Schedule<'k> {
    /// Declares the parameters.
    pub(super) fn new(k: &'k KernelBuilder, variant: Variant) -> Self {
        let divisor = |name| Divisor::declare(k, name);
        Self {
            k,
            variant,
            work_items: k.scalar_param("work_items"),
            tiles: divisor("tiles"),
            splits: divisor("splits"),
            band: divisor("band"),
            band_tiles: divisor("band_tiles"),
            bands: k.scalar_param("bands"),
            last_band: divisor("last_band"),
            k_stages: k.scalar_param("k_stages"),
            split_k_stages: k.scalar_param("split_k_stages"),
        }
    }

    /// Returns what [`Schedule::new`] declares, for a grid of clusters of tiles (rows, columns) and
    /// the stages of K and of each slice.
    pub(super) fn parameters(
        division: &WorkDivision,
        [rows, columns]: [u32; 2],
        batch: u32,
        stages: [u32; 2],
    ) -> Vec<Parameter> {
        let WorkDivision { splits, band, .. } = *division;
        let mut parameters = vec![Parameter::U32(rows * columns * splits * batch)];
        let divisors = [rows * columns, splits, band, band * columns];
        parameters.extend(divisors.into_iter().flat_map(Divisor::parameters));
        parameters.push(Parameter::U32(rows / band));
        parameters.extend(Divisor::parameters(rows % band));
        parameters.extend(stages.map(Parameter::U32));
        parameters
    }

    /// Returns the block's rank in its cluster.
    pub(super) fn rank(&self) -> Val<'k, u32> {
        match self.variant.tile.blocks() {
            1 => self.k.constant(0),
            _ => self.k.cluster_rank(),
        }
    }

    /// Writes the loop over the block's work items. With [`Store::Cluster`] there is only one.
    pub(super) fn for_each(&self, write: impl FnOnce(WorkItem<'_>)) {
        if let Store::Cluster(_) = self.variant.store {
            return write(self.cluster_item());
        }
        let cluster = self.variant.tile.cluster_m;
        let (first, step) = (self.k.block_id(0) / cluster, self.k.block_count(0) / cluster);
        self.k.for_range(first, self.work_items, step, |nth| write(self.item(nth)));
    }

    /// Returns the work item of a block with [`Store::Cluster`].
    pub(super) fn cluster_item(&self) -> WorkItem<'_> {
        let HopperTile { split_k, .. } = self.variant.tile;
        let item = self.item(self.k.block_id(0) / split_k);
        let k_tile_start = self.rank() * self.split_k_stages;
        WorkItem {
            k_tile_start,
            k_tile_end: (k_tile_start + self.split_k_stages).min(self.k_stages),
            ..item
        }
    }

    /// Returns the `nth` work item. Rasterization goes down the rows of a band, then along the
    /// columns, so that concurrent blocks share operands in L2.
    fn item<'a>(&'a self, nth: Val<'a, u32>) -> WorkItem<'a> {
        let [result, index] = self.tiles.divide(nth);
        let [band, index] = self.band_tiles.divide(index);
        let is_full_band = band.lt(self.bands);
        let pick = |whole_band, last| is_full_band.select::<u32>(whole_band, last);
        let height = Divisor {
            number: pick(self.band.number, self.last_band.number),
            factor: pick(self.band.factor, self.last_band.factor),
            shift: pick(self.band.shift, self.last_band.shift),
        };
        let [column, row] = height.divide(index);
        let [batch, split] = self.splits.divide(result);
        let Variant { tile, .. } = self.variant;
        let k_tile_start = split * self.split_k_stages;
        WorkItem {
            row: self.tile_row(band * self.band.number + row) * tile.rows(),
            column: column * tile.columns,
            batch,
            result,
            k_tile_start,
            k_tile_end: (k_tile_start + self.split_k_stages).min(self.k_stages),
        }
    }

    /// Returns the index of the block's row of tiles, given that of its row of clusters.
    fn tile_row<'a>(&'a self, cluster: Val<'a, u32>) -> Val<'a, u32> {
        match self.variant.tile.cluster_m {
            1 => cluster,
            blocks => cluster * blocks + self.rank(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reciprocals_divide_exactly() {
        let quotient = |number: u32, divisor| {
            let [factor, shift] = reciprocal(divisor);
            (u64::from(number) * u64::from(factor)) >> shift
        };
        let near = |number: u32| number.saturating_sub(2)..=(number + 2).min(MAX_WORK_ITEMS - 1);
        let divisors = (1..100).chain((2..=28).flat_map(|power| near(1 << power)));
        for divisor in divisors.filter(|divisor| *divisor > 0) {
            let multiples =
                [1, 2, 3, 7, 100, MAX_WORK_ITEMS / divisor / 2, MAX_WORK_ITEMS / divisor];
            let numbers =
                multiples.map(|times| divisor.saturating_mul(times).min(MAX_WORK_ITEMS - 1));
            for number in numbers.into_iter().flat_map(near).chain(near(0)) {
                let expected = u64::from(number / divisor);
                assert_eq!(quotient(number, divisor), expected, "{number} by {divisor}");
            }
        }
    }
}
