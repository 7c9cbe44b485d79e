//! Which parts of a product a block computes, in which order.

use super::variant::{Store, Tile, Variant};
use crate::kernels::Parameter;
use crate::kernels::gemm::memory::wide;
use crate::typed::{Code, Val};

/// How a product is cut into parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Parts of K: each has results of its own, one after the other.
    pub splits: u32,
    /// Clusters of tiles down the rows that are computed near each other in time.
    pub band: u32,
    /// Blocks at a time, a multiple of the cluster.
    pub blocks: u32,
}

/// How a product is cut into parts: parameters of the kernel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Schedule<'k> {
    k: &'k Code,
    variant: Variant,
    /// Parts in all.
    parts: Val<'k, u32>,
    /// Tiles of a result.
    tiles: Divisor<'k>,
    /// Parts of K.
    splits: Divisor<'k>,
    /// Clusters of tiles down the rows that are computed near each other in time, and tiles of
    /// them.
    band: Divisor<'k>,
    band_tiles: Divisor<'k>,
    /// Bands of that many, and what is left below them.
    bands: Val<'k, u32>,
    last_band: Divisor<'k>,
    /// Stages of K.
    depth: Val<'k, u32>,
    /// Stages of each part of it.
    split_depth: Val<'k, u32>,
}

/// Parts of all products, as many as can be told apart.
pub(super) const PARTS: u32 = 1 << 28;

/// A number to divide numbers below [`PARTS`] by: a division takes some thirty instructions one
/// after the other, which is long where everybody waits for the first tile.
#[derive(Debug, Clone, Copy)]
struct Divisor<'k> {
    number: Val<'k, u32>,
    /// The quotient is the product with this one, shifted.
    factor: Val<'k, u32>,
    shift: Val<'k, u32>,
}

impl<'k> Divisor<'k> {
    fn declare(k: &'k Code, name: &str) -> Self {
        let [factor, shift] = ["factor", "shift"].map(|part| k.number(&format!("{name}_{part}")));
        Self { number: k.number(name), factor, shift }
    }

    /// What [`Divisor::declare`] declares.
    fn parameters(number: u32) -> [Parameter; 3] {
        let [factor, shift] = reciprocal(number);
        [factor, shift, number].map(Parameter::U32)
    }

    fn quotient(&self, of: Val<'k, u32>) -> Val<'k, u32> {
        let product: Val<'_, u64> = wide(of) * wide(self.factor);
        (product >> self.shift).convert("")
    }

    /// Quotient and rest.
    fn divide(&self, number: Val<'k, u32>) -> [Val<'k, u32>; 2] {
        let quotient = self.quotient(number);
        [quotient, number - quotient * self.number]
    }
}

/// What a number below [`PARTS`] is multiplied with and shifted by instead of a division: rounded
/// up by less than the divisor, so that what it is too large by stays below 1 in the end.
fn reciprocal(divisor: u32) -> [u32; 2] {
    let divisor = divisor.max(1);
    let shift = PARTS.ilog2() + divisor.next_power_of_two().ilog2();
    [(1u64 << shift).div_ceil(divisor.into()) as u32, shift]
}

/// What a block computes at a time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part<'k> {
    /// First row.
    pub row: Val<'k, u32>,
    /// First column.
    pub column: Val<'k, u32>,
    /// Which product of the batch.
    pub batch: Val<'k, u32>,
    /// Which result: that of the batch, or of a part of K.
    pub result: Val<'k, u32>,
    /// First stage of K.
    pub begin: Val<'k, u32>,
    /// Behind the last stage.
    pub end: Val<'k, u32>,
}

impl<'k> Schedule<'k> {
    /// Declares the parameters.
    pub(super) fn new(k: &'k Code, variant: Variant) -> Self {
        let divisor = |name| Divisor::declare(k, name);
        Self {
            k,
            variant,
            parts: k.number("parts"),
            tiles: divisor("tiles"),
            splits: divisor("splits"),
            band: divisor("band"),
            band_tiles: divisor("band_tiles"),
            bands: k.number("bands"),
            last_band: divisor("last_band"),
            depth: k.number("depth"),
            split_depth: k.number("split_depth"),
        }
    }

    /// What [`Schedule::new`] declares, of this many tiles down the rows and along the columns, and
    /// of stages of K and of each part of it.
    pub(super) fn parameters(
        cut: &Cut,
        [rows, columns]: [u32; 2],
        batch: u32,
        depths: [u32; 2],
    ) -> Vec<Parameter> {
        let Cut { splits, band, .. } = *cut;
        let mut parameters = vec![Parameter::U32(rows * columns * splits * batch)];
        let divisors = [rows * columns, splits, band, band * columns];
        parameters.extend(divisors.into_iter().flat_map(Divisor::parameters));
        parameters.push(Parameter::U32(rows / band));
        parameters.extend(Divisor::parameters(rows % band));
        parameters.extend(depths.map(Parameter::U32));
        parameters
    }

    /// The block's number in its cluster.
    pub(super) fn rank(&self) -> Val<'k, u32> {
        match self.variant.tile.blocks() {
            1 => self.k.constant(0),
            _ => self.k.cluster_rank(),
        }
    }

    /// Writes what is done for each part of the block. a split-K cluster has one only.
    pub(super) fn each(&self, write: impl FnOnce(Part<'_>)) {
        if let Store::Team(_) = self.variant.store {
            return write(self.of_team());
        }
        let cluster = self.variant.tile.cluster;
        let (first, step) = (self.k.block_id(0) / cluster, self.k.block_count(0) / cluster);
        self.k.for_range(first, self.parts, step, |nth| write(self.part(nth)));
    }

    /// What a block of a split-K cluster computes.
    pub(super) fn of_team(&self) -> Part<'_> {
        let Tile { team, .. } = self.variant.tile;
        let part = self.part(self.k.block_id(0) / team);
        let begin = self.rank() * self.split_depth;
        Part { begin, end: (begin + self.split_depth).min(self.depth), ..part }
    }

    /// The `nth` part. Parts go down the rows of a band, then along the columns: what blocks read
    /// at the same time is shared in the cache.
    fn part<'a>(&'a self, nth: Val<'a, u32>) -> Part<'a> {
        let [result, within] = self.tiles.divide(nth);
        let [band, within] = self.band_tiles.divide(within);
        let whole = band.lt(self.bands);
        let pick = |whole_band, last| whole.select::<u32>(whole_band, last);
        let height = Divisor {
            number: pick(self.band.number, self.last_band.number),
            factor: pick(self.band.factor, self.last_band.factor),
            shift: pick(self.band.shift, self.last_band.shift),
        };
        let [column, row] = height.divide(within);
        let [batch, split] = self.splits.divide(result);
        let Variant { tile, .. } = self.variant;
        let begin = split * self.split_depth;
        Part {
            row: self.tile_row(band * self.band.number + row) * tile.rows(),
            column: column * tile.columns,
            batch,
            result,
            begin,
            end: (begin + self.split_depth).min(self.depth),
        }
    }

    /// The block's tile of a cluster of tiles down the rows.
    fn tile_row<'a>(&'a self, cluster: Val<'a, u32>) -> Val<'a, u32> {
        match self.variant.tile.cluster {
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
        let near = |number: u32| number.saturating_sub(2)..=(number + 2).min(PARTS - 1);
        let divisors = (1..100).chain((2..=28).flat_map(|power| near(1 << power)));
        for divisor in divisors.filter(|divisor| *divisor > 0) {
            let multiples = [1, 2, 3, 7, 100, PARTS / divisor / 2, PARTS / divisor];
            let numbers = multiples.map(|times| divisor.saturating_mul(times).min(PARTS - 1));
            for number in numbers.into_iter().flat_map(near).chain(near(0)) {
                let expected = u64::from(number / divisor);
                assert_eq!(quotient(number, divisor), expected, "{number} by {divisor}");
            }
        }
    }
}
