//! The product of a span of 256 weights of 16 rows with quantised activations, by a warp. It is
//! accumulated in integers, which are scaled at the end.
//!
//! Lane `l` processes rows `l / 4` and `l / 4 + 8`, of which it has 8 of each 32 weights. It holds
//! the accumulators of those rows in columns `2 * (l % 4)` and `2 * (l % 4) + 1`.

use super::super::activations::{LimbBuffer, UPPER_UNIT};
use super::super::format::BlockFormat;
use crate::typed::{F16, KernelBuilder, Ptr, Shared, Sign, Val, unpack_f16x2};

/// The bits of [`MAGIC`]. Adding an integer below 2^22 in magnitude results in the bits of `MAGIC`
/// plus that integer.
const MAGIC_BITS: i32 = 0x4b40_0000;
/// 1.5 * 2^23.
const MAGIC: f32 = 12_582_912.0;

/// The assignment of the 8 columns of an MMA tile to groups of weights, each of which has a scale.
///
/// With fewer than 8 limb columns, columns of the tile would be idle. Instead the groups form
/// *sets* of 1, 2 or 4 groups, and the limb columns of each group of a set have tile columns of
/// their own, with zeros in those of the other groups. One chain of MMAs then accumulates all
/// groups of a set separately, and different lanes scale them at the same time.
#[derive(Debug, Clone, Copy)]
pub(super) struct ColumnPacking<'k> {
    /// Groups per set: 1, 2 or 4.
    groups_per_set: u32,
    /// The group of each set that the lane's limbs belong to.
    limb_group: Val<'k, u32>,
    /// The group of each set that the lane's accumulators belong to.
    own_group: Val<'k, u32>,
}

impl<'k> ColumnPacking<'k> {
    /// Returns the packing for this many limb columns.
    pub(super) fn new(limb_columns: u32, lane: Val<'k, u32>) -> Self {
        let column = (lane & 3) * 2;
        let shift = limb_columns.ilog2();
        Self {
            groups_per_set: 8 / limb_columns,
            limb_group: (lane >> 2) >> shift,
            own_group: column >> shift,
        }
    }

    /// Returns the limbs if they belong to the `nth` group of a set, else zeros.
    fn select_group<const N: usize>(
        &self,
        nth: u32,
        limbs: [Val<'k, u32>; N],
    ) -> [Val<'k, u32>; N] {
        if self.groups_per_set == 1 {
            return limbs;
        }
        let is_group = self.limb_group.eq(nth);
        limbs.map(|limbs| is_group.select(limbs, 0))
    }

    /// Returns the scale of the lane's group in a set; a word holds the scales of 4 groups.
    fn scale(&self, words: &[Val<'k, u32>], set: u32, signed: bool) -> Val<'k, i32> {
        let first = set * self.groups_per_set;
        let (step, zero) = if signed { (0x1111, 0x8880) } else { (1, 0x4440) };
        let selector = self.own_group * step + ((first % 4) * step + zero);
        words[first as usize / 4].permute(0, selector).cast()
    }

    /// Returns the sum over the groups of a set, for the same limb column.
    pub(super) fn sum_over_groups(&self, k: &'k KernelBuilder, sum: Val<'k, f32>) -> Val<'k, f32> {
        // Tile columns that differ by a multiple of the number of limb columns belong to the same
        // limb column.
        let add = |sum: Val<'k, f32>, by: u32| sum + k.shuffle("bfly", sum, by);
        match self.groups_per_set {
            1 => sum,
            2 => add(sum, 2),
            _ => add(add(sum, 1), 2),
        }
    }
}

/// The weights of a lane's two rows, and the limbs of its column.
#[derive(Debug, Clone, Copy)]
pub(super) struct SpanOperands<'k> {
    pub(super) k: &'k KernelBuilder,
    /// The lane's index modulo 4.
    pub(super) part: Val<'k, u32>,
    pub(super) packing: ColumnPacking<'k>,
    /// Addresses of the 256 weights of both rows.
    pub(super) rows: [Ptr<'k, Shared, u8>; 2],
    pub(super) limb_buffer: LimbBuffer<'k, Shared>,
    /// Index of the span of 256 values.
    pub(super) span: Val<'k, u32>,
    /// Number of limb columns, and the one that the lane reads.
    pub(super) limb_columns: u32,
    pub(super) limb_column: Val<'k, u32>,
    /// Valid blocks of this span, of `Q8_0`.
    pub(super) blocks: Val<'k, u32>,
}

/// One value for each of a lane's accumulators.
type Four<T> = [T; 4];

impl<'k> SpanOperands<'k> {
    /// Returns the accumulators, scaled by the weights' scales but not by those of the activations.
    pub(super) fn product(&self, format: BlockFormat) -> Four<Val<'k, f32>> {
        match format {
            BlockFormat::Q4K => self.affine_product(&BitOffsets { low_bits: 16, high_bits: None }),
            BlockFormat::Q5K => {
                self.affine_product(&BitOffsets { low_bits: 48, high_bits: Some(16) })
            }
            BlockFormat::Q6K => self.centred_product(),
            BlockFormat::Q8_0 => self.q8_product(),
            BlockFormat::Q4_0 | BlockFormat::Q4_1 => unreachable!("is_streamed excludes them"),
        }
    }

    fn zeros(&self) -> Four<Val<'k, i32>> {
        [self.k.constant(0); 4]
    }

    /// Returns the address of the lane's limbs of 32 values, of the first set.
    fn limbs(&self, group: Val<'k, u32>) -> Ptr<'k, Shared, u32> {
        let at = self
            .limb_buffer
            .group(self.span, self.limb_column)
            .plus_bytes(group * (32 * self.limb_columns));
        at.at(self.part * 2)
    }

    /// Multiplies the offsets of both rows, which are signed bytes, with the sums of limbs. Only
    /// the lanes of the first group of a set have non-zero results.
    fn multiply_offsets(&self, offsets: [Val<'k, u32>; 2]) -> Four<Val<'k, i32>> {
        let sums = self.limb_buffer.sums(self.span, self.limb_column).at(self.part * 2);
        let [low, high] = self.packing.select_group(0, sums.load_vector());
        let low = self.k.mma_s8(Sign::Signed, offsets, [low], self.zeros());
        let high = self.k.mma_s8(Sign::Signed, offsets, [high], self.zeros());
        std::array::from_fn(|i| high[i].mul_add(UPPER_UNIT, low[i]))
    }

    /// Loads a word of both rows, 2-byte aligned.
    fn words(&self, bytes: i64, part_bytes: u32) -> [Val<'k, u32>; 2] {
        self.rows.map(|row| load_word(row.plus_bytes(self.part * part_bytes).offset(bytes)))
    }

    fn load_f16(&self, at: Ptr<'k, Shared, u8>) -> Val<'k, f32> {
        at.cast::<F16>().load().convert("")
    }
}

/// Loads a 2-byte-aligned word.
fn load_word<'k>(at: Ptr<'k, Shared, u8>) -> Val<'k, u32> {
    let at = at.cast::<u16>();
    let low = at.load();
    low.builder().join(low, at.at(1).load())
}

/// Accumulates integer products of two rows.
fn accumulate<'k>(
    accumulators: Four<Val<'k, i32>>,
    dots: Four<Val<'k, i32>>,
    scales: [Val<'k, i32>; 2],
) -> Four<Val<'k, i32>> {
    std::array::from_fn(|i| dots[i].mul_add(scales[i / 2], accumulators[i]))
}

/// Offsets of the integers' bits in `Q4K` and `Q5K`.
struct BitOffsets {
    low_bits: i64,
    high_bits: Option<i64>,
}

/// The first 16 bytes of a block of `Q4K` and `Q5K`.
#[derive(Clone, Copy)]
struct BlockHeader<'k> {
    d: Val<'k, f32>,
    dmin: Val<'k, f32>,
    /// Scales of eight groups of 32 weights.
    scales: [Val<'k, u32>; 2],
    /// Offsets of eight groups of 32 weights.
    offsets: [Val<'k, u32>; 2],
}

impl<'k> BlockHeader<'k> {
    fn load(block: Ptr<'k, Shared, u8>) -> Self {
        let [floats, scales, offsets, rest] = block.cast::<u32>().load_vector();
        let [d, dmin] = unpack_f16x2(floats);
        let upper = |word: Val<'k, u32>| (word >> 2) & 0x3030_3030;
        Self {
            d,
            dmin,
            scales: [scales & 0x3f3f_3f3f, rest.masked_or(0x0f0f_0f0f, upper(scales))],
            offsets: [offsets & 0x3f3f_3f3f, (rest >> 4).masked_or(0x0f0f_0f0f, upper(offsets))],
        }
    }
}

/// `Q4K` and `Q5K`.
impl<'k> SpanOperands<'k> {
    fn affine_product(&self, bit_offsets: &BitOffsets) -> Four<Val<'k, f32>> {
        let (groups_per_set, packing) = (self.packing.groups_per_set, &self.packing);
        let headers = self.rows.map(BlockHeader::load);
        let mut integers = self.integers(bit_offsets);
        let at = self.limbs(packing.limb_group);
        // Accumulators of lower and of upper nibbles: without high bits the latter are not shifted,
        // and 16 times as large. In sets of several groups, a lane has one or the other.
        let mut accumulators = [self.zeros(); 2];
        for set in 0..8 / groups_per_set {
            let limbs = at
                .offset(i64::from(32 * self.limb_columns * groups_per_set * set))
                .load_vector::<2>();
            let chain = (0..groups_per_set).fold(self.zeros(), |dots, nth| {
                let weights = integers.next(set * groups_per_set + nth);
                self.k.mma_s8(Sign::Unsigned, weights, packing.select_group(nth, limbs), dots)
            });
            let half = if groups_per_set == 1 { set as usize % 2 } else { 0 };
            let scales = headers.map(|header| packing.scale(&header.scales, set, false));
            accumulators[half] = accumulate(accumulators[half], chain, scales);
        }
        self.subtract_offsets(headers, self.combine_nibbles(accumulators, bit_offsets))
    }

    /// Adds the accumulators of lower nibbles and those of upper nibbles, which are 16 times as
    /// large without high bits.
    fn combine_nibbles(
        &self,
        accumulators: [Four<Val<'k, i32>>; 2],
        bit_offsets: &BitOffsets,
    ) -> Four<Val<'k, i32>> {
        let shift = if bit_offsets.high_bits.is_some() { 0 } else { 4 };
        if self.packing.groups_per_set == 1 {
            return std::array::from_fn(|i| accumulators[0][i] + (accumulators[1][i] >> shift));
        }
        let shift = (self.packing.own_group & 1) * shift;
        accumulators[0].map(|sum| sum >> shift)
    }

    fn integers(&self, bit_offsets: &BitOffsets) -> Integers<'k, '_> {
        let high = bit_offsets.high_bits.map(|bytes| self.pairs(bytes));
        Integers {
            operands: self,
            low_bits: bit_offsets.low_bits,
            high,
            low: self.pairs(bit_offsets.low_bits),
        }
    }

    /// Loads 8 bytes of both rows.
    fn pairs(&self, bytes: i64) -> [[Val<'k, u32>; 2]; 2] {
        self.rows.map(|row| row.plus_bytes(self.part * 8).offset(bytes).cast::<u32>().load_vector())
    }

    fn subtract_offsets(
        &self,
        headers: [BlockHeader<'k>; 2],
        accumulators: Four<Val<'k, i32>>,
    ) -> Four<Val<'k, f32>> {
        let is_odd_part = (self.part & 1).eq(1);
        let offsets =
            headers.map(|header| is_odd_part.select(header.offsets[1], header.offsets[0]));
        let offsets = self.multiply_offsets(offsets);
        std::array::from_fn(|i| {
            let header = headers[i / 2];
            let offset = offsets[i].convert::<f32>("rn") * header.dmin;
            accumulators[i].convert::<f32>("rn").mul_add(header.d, -offset)
        })
    }
}

/// The integers of `Q4K` and `Q5K`, group by group.
struct Integers<'k, 'f> {
    operands: &'f SpanOperands<'k>,
    low_bits: i64,
    high: Option<[[Val<'k, u32>; 2]; 2]>,
    /// The low bits of two groups.
    low: [[Val<'k, u32>; 2]; 2],
}

impl<'k> Integers<'k, '_> {
    /// Returns the next group's integers of both rows, as an MMA operand.
    fn next(&mut self, group: u32) -> [Val<'k, u32>; 4] {
        if group.is_multiple_of(2) && group > 0 {
            self.low = self.operands.pairs(self.low_bits + 16 * i64::from(group));
        }
        let [a, b] = [0, 1].map(|row| {
            let high = self.high.map(|high| high[row]);
            [0, 1].map(|i| extract_integers(self.low[row][i], high.map(|high| high[i]), group))
        });
        [a[0], b[0], a[1], b[1]]
    }
}

/// Extracts four integers from a word of low bits, which holds two groups, and a word of high bits.
/// Upper nibbles without high bits are not shifted, and so 16 times as large.
fn extract_integers<'k>(low: Val<'k, u32>, high: Option<Val<'k, u32>>, group: u32) -> Val<'k, u32> {
    let upper = group % 2 == 1;
    if upper && high.is_none() {
        return low & 0xf0f0_f0f0;
    }
    let nibbles = (if upper { low >> 4 } else { low }) & 0x0f0f_0f0f;
    match high {
        Some(high) if group <= 4 => (high << (4 - group)).masked_or(0x1010_1010, nibbles),
        Some(high) => (high >> (group - 4)).masked_or(0x1010_1010, nibbles),
        None => nibbles,
    }
}

/// `Q6K`: 16 groups of 16 weights. The limbs are interleaved, so that a lane reads its part of two
/// groups at once.
impl<'k> SpanOperands<'k> {
    fn centred_product(&self) -> Four<Val<'k, f32>> {
        let scales =
            [0, 4, 8, 12].map(|first| self.rows.map(|row| load_word(row.offset(192 + first))));
        let scales = [0, 1].map(|row| scales.map(|words| words[row]));
        let mut accumulators = self.zeros();
        for half in 0..2 {
            let high = [0, 16].map(|i| self.words(128 + 32 * half + i, 4));
            let low = [0, 16, 32, 48].map(|i| self.words(64 * half + i, 4));
            let weights: [_; 8] = std::array::from_fn(|nth| {
                let (group, side) = (nth / 2, nth % 2);
                let low = low[2 * (group % 2) + side];
                [0, 1].map(|row| six_bits(low[row], high[side][row], group as u32))
            });
            for (nth, dots) in self.multiply_sets(half as u32, &weights).into_iter().enumerate() {
                let set = 8 / self.packing.groups_per_set * half as u32 + nth as u32;
                let scales = [0, 1].map(|row| self.packing.scale(&scales[row], set, true));
                accumulators = accumulate(accumulators, dots, scales);
            }
        }
        let offsets = self.multiply_offsets(self.words(192, 4));
        let d = self.rows.map(|row| self.load_f16(row.offset(208)));
        std::array::from_fn(|i| {
            (offsets[i].mul_add(-32, accumulators[i])).convert::<f32>("rn") * d[i / 2]
        })
    }

    /// Multiplies the 8 groups of a half of the span with their limbs, set by set.
    fn multiply_sets(
        &self,
        half: u32,
        weights: &[[Val<'k, u32>; 2]; 8],
    ) -> Vec<Four<Val<'k, i32>>> {
        let (k, groups_per_set, packing) = (self.k, self.packing.groups_per_set, &self.packing);
        let stride = 32 * self.limb_columns;
        if groups_per_set == 1 {
            let at = self.limbs(k.constant(0)).offset(i64::from(4 * half * stride));
            let pairs = (0..4).map(|pair| at.offset(i64::from(pair * stride)).load_vector::<2>());
            let limbs = pairs.flatten().zip(weights);
            return limbs
                .map(|(limbs, a)| k.mma_s8(Sign::Signed, *a, [limbs], self.zeros()))
                .collect();
        }
        let at = self.limbs(packing.limb_group >> 1).at(packing.limb_group & 1);
        let set = |nth: u32| {
            let first = i64::from((4 * half + groups_per_set / 2 * nth) * stride);
            let limbs = at.offset(first).load();
            (0..groups_per_set / 2).fold(self.zeros(), |dots, pair| {
                let [a, b] =
                    [0, 1].map(|side| weights[(nth * groups_per_set + 2 * pair + side) as usize]);
                let [low, high] =
                    [0, 1].map(|side| packing.select_group(2 * pair + side, [limbs])[0]);
                k.mma_s8(Sign::Signed, [a[0], a[1], b[0], b[1]], [low, high], dots)
            })
        };
        (0..8 / groups_per_set).map(set).collect()
    }
}

/// Returns four integers of group `group` (of 32 weights) in a half of 128 weights.
fn six_bits<'k>(low: Val<'k, u32>, high: Val<'k, u32>, group: u32) -> Val<'k, u32> {
    let nibbles = (if group < 2 { low } else { low >> 4 }) & 0x0f0f_0f0f;
    let high = match group {
        0 => high << 4,
        1 => high << 2,
        2 => high,
        _ => high >> 2,
    };
    high.masked_or(0x3030_3030, nibbles)
}

/// `Q8_0`.
impl<'k> SpanOperands<'k> {
    fn q8_product(&self) -> Four<Val<'k, f32>> {
        let (groups_per_set, packing) = (self.packing.groups_per_set, &self.packing);
        let at = self.limbs(packing.limb_group);
        let scaled = self.rows.map(|row| row.plus_bytes(packing.own_group * 34));
        let mut accumulators = [self.k.constant(0.0f32); 4];
        for set in 0..8 / groups_per_set {
            let limbs = at
                .offset(i64::from(32 * self.limb_columns * groups_per_set * set))
                .load_vector::<2>();
            let start = [self.k.constant(MAGIC_BITS); 4];
            let dots = (0..groups_per_set).fold(start, |dots, nth| {
                let block = 34 * i64::from(set * groups_per_set + nth);
                let (low, high) = (self.words(block + 2, 4), self.words(block + 18, 4));
                let weights = [low[0], low[1], high[0], high[1]];
                self.k.mma_s8(Sign::Signed, weights, packing.select_group(nth, limbs), dots)
            });
            let in_bounds = self.blocks.gt(packing.own_group + set * groups_per_set);
            let d = scaled.map(|row| {
                let d = self.load_f16(row.offset(34 * i64::from(set * groups_per_set)));
                in_bounds.select(d, 0.0)
            });
            accumulators = std::array::from_fn(|i| {
                (dots[i].cast::<f32>() - MAGIC).mul_add(d[i / 2], accumulators[i])
            });
        }
        accumulators
    }
}
