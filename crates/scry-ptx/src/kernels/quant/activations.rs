//! Quantises activations to int8, in the layout of the MMA operands.
//!
//! Each 256 values of a column have a scale `d`. A value is `d * q`, or `d * (q + r / 128)` with
//! two int8 *limbs* (hi and lo), which keep about 15 bits of it. A limb occupies a column of its
//! own.

use super::format::{BlockFormat, SPAN};
use super::wide;
use crate::kernels::name::Name;
use crate::typed::{Code, Global, Memory, Ptr, Val, unpack_bf16x2, unpack_f16x2};
use crate::types::PtxType;

/// Blocks whose largest value is below this become zero: the reciprocal would overflow.
const NEGLIGIBLE: f32 = f32::from_bits((127 - 120) << 23);
/// 1.5 * 2^23: adding it rounds values below 2^22 to integers.
const ROUNDER: f32 = 12_582_912.0;
/// Sums of limbs are stored as two bytes, of which the upper one is in units of this.
pub(super) const UPPER: i32 = 64;
/// Bytes of the sums of 256 limbs.
const SUMS: u32 = 32;

/// The memory layout of limbs. A *column* here is one limb of one column of activations:
///
/// - `q`: for each 32 values, for each column, 32 bytes;
/// - `sums`, unless they are unused: for each 256 values, for each column, 32 bytes: the lower
///   bytes of 4 sums, their upper bytes, and so on;
/// - `d`: for each 256 values, for each column of activations, an `f32`.
///
/// The number of columns is padded to 1, 2, 4 or 8, so that all strides are compile-time constants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Limbs {
    /// Limbs per value: 1 or 2.
    pub(super) limbs: u32,
    /// Padded number of columns.
    pub(super) room: u32,
    /// Whether in 32 bytes each 4 are followed by those 16 further on.
    pub(super) interleaved: bool,
    /// How many limbs are summed: 32, 16, or none at all.
    pub(super) summed: Option<u32>,
}

impl Limbs {
    /// Returns the layout that the MMA kernel of a format reads.
    pub(super) const fn of(format: BlockFormat, columns: u32) -> Self {
        let limbs = if columns <= 4 { 2 } else { 1 };
        let (interleaved, summed) = match format {
            BlockFormat::Q4K | BlockFormat::Q5K => (false, Some(32)),
            BlockFormat::Q6K => (true, Some(16)),
            BlockFormat::Q8_0 => (true, None),
        };
        Self { limbs, room: columns.next_power_of_two(), interleaved, summed }
    }

    /// Appends the compile-time part to a kernel's name.
    pub(super) fn named(self, name: Name) -> Name {
        let name = name.with(format_args!("n{}", self.room));
        let name = name.with(format_args!("limbs{}", self.limbs));
        let name = name.with_if(self.interleaved, "interleaved");
        match self.summed {
            Some(width) => name.with(format_args!("sums{width}")),
            None => name,
        }
    }

    /// Number of limbs over all columns.
    pub(super) const fn lines(self) -> u32 {
        self.room * self.limbs
    }

    /// Bytes of `k` values of each column, a multiple of 16.
    pub(super) fn bytes(self, k: u64) -> u64 {
        let spans = k.div_ceil(SPAN.into());
        let sums = if self.summed.is_some() { SUMS } else { 0 };
        let span = self.lines() * (SPAN + sums) + self.room * 4;
        (spans * u64::from(span)).next_multiple_of(16)
    }
}

/// Limbs in memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct LimbBuffer<'k, S> {
    layout: Limbs,
    k: &'k Code,
    pub(super) limbs: Ptr<'k, S, u32>,
    sums: Ptr<'k, S, u32>,
    scales: Ptr<'k, S, f32>,
}

/// A warp's 256 values of a column: lane `l` holds the 8 from `8 * l` on.
struct Held<'k> {
    span: Val<'k, u32>,
    column: Val<'k, u32>,
    lane: Val<'k, u32>,
}

impl<'k, S: Memory> LimbBuffer<'k, S> {
    /// Creates the layout of blocks of 256 values at an address.
    pub(super) fn new(
        k: &'k Code,
        layout: Limbs,
        at: Ptr<'k, S, u32>,
        spans: Val<'k, u32>,
    ) -> Self {
        let lines = layout.lines();
        let sums = at.plus_bytes(spans * (lines * SPAN));
        let behind = match layout.summed {
            Some(_) => sums.plus_bytes(spans * (lines * SUMS)),
            None => sums,
        };
        Self { layout, k, limbs: at, sums, scales: behind.cast() }
    }

    /// Returns the address of the 32 bytes of a limb for the first 32 of 256 values; the next ones
    /// are `lines * 32` bytes further on.
    pub(super) fn group(&self, span: Val<'k, u32>, line: Val<'k, u32>) -> Ptr<'k, S, u32> {
        self.limbs.plus_bytes(span * (self.layout.lines() * SPAN)).plus_bytes(line * 32)
    }

    /// Returns the address of the sums of 256 limbs.
    pub(super) fn sums(&self, span: Val<'k, u32>, line: Val<'k, u32>) -> Ptr<'k, S, u32> {
        self.sums.plus_bytes(span * (self.layout.lines() * SUMS)).plus_bytes(line * SUMS)
    }

    /// Returns the address of the scale of 256 values.
    pub(super) fn scale(&self, span: Val<'k, u32>, column: Val<'k, u32>) -> Ptr<'k, S, f32> {
        self.scales.at(span * self.layout.room).at(column)
    }

    /// Quantises and stores 256 values of a column, of which each lane of the warp has 8.
    pub(super) fn write(
        &self,
        span: Val<'k, u32>,
        column: Val<'k, u32>,
        lane: Val<'k, u32>,
        values: [Val<'k, f32>; 8],
    ) {
        let held = Held { span, column, lane };
        let (scale, inverse) = self.scale_of(values);
        self.k.when(lane.equals(0), || self.scale(span, column).store(scale));
        let mut rest = values.map(|value| value * inverse);
        for limb in 0..self.layout.limbs {
            // The nearest integer is in the low bits of the sum.
            let sums = rest.map(|value| value + ROUNDER);
            let words = [0, 4].map(|first| self.packed([0, 1, 2, 3].map(|i| sums[first + i])));
            self.write_limbs(&held, limb, words);
            rest = std::array::from_fn(|i| (rest[i] - (sums[i] - ROUNDER)) * 128.0);
        }
    }

    /// Returns the scale of a warp's values, and approximately its reciprocal.
    fn scale_of(&self, values: [Val<'k, f32>; 8]) -> (Val<'k, f32>, Val<'k, f32>) {
        let sizes = values.map(|value| value.unary("abs"));
        let own = sizes.into_iter().reduce(|a, b| a.max(b)).expect("there are eight");
        let largest = self.k.max_of_warp(own);
        let counts = largest.ge(NEGLIGIBLE);
        // Reciprocals of values above 2^126 would be flushed to zero.
        let inverse = (largest * 0.0625).recip() * (127.0 * 0.0625);
        (counts.select(largest * (1.0 / 127.0), 0.0), counts.select(inverse, 0.0))
    }

    /// Packs the lowest bytes of four integers.
    fn packed(&self, numbers: [Val<'k, f32>; 4]) -> Val<'k, u32> {
        let [a, b, c, d] = numbers.map(Val::cast::<u32>);
        a.permute(b, 0x0040u32).permute(c.permute(d, 0x0040u32), 0x5410u32)
    }

    fn write_limbs(&self, held: &Held<'k>, limb: u32, words: [Val<'k, u32>; 2]) {
        let line = held.column * self.layout.limbs + limb;
        let (group, part) = (held.lane >> 2, held.lane & 3);
        let at = self.group(held.span, line).plus_bytes(group * (self.layout.lines() * 32));
        if self.layout.interleaved {
            words.into_iter().enumerate().for_each(|(nth, word)| {
                let word_at = part * 2 + nth as u32;
                at.at((word_at & 3) * 2 + (word_at >> 2)).store(word);
            });
        } else {
            at.at(part * 2).store_vector(words);
        }
        if let Some(width) = self.layout.summed {
            self.write_sums(held, line, width, words);
        }
    }

    /// Stores the sums of every `width` limbs, and zeros where there are fewer than 16 sums.
    fn write_sums(
        &self,
        held: &Held<'k>,
        line: Val<'k, u32>,
        width: u32,
        words: [Val<'k, u32>; 2],
    ) {
        let ones = 0x0101_0101u32;
        let own = self.k.dp4a(words[1], ones, self.k.dp4a(words[0], ones, 0));
        let sum = self.k.reduce_warp(own, width / 8, |a, b| a + b);
        let (group, part) = (held.lane >> 2, held.lane & 3);
        let first = (held.lane & (width / 8 - 1)).equals(0);
        let (writes, slot) = match width {
            16 => (first, held.lane >> 1),
            _ => (part.lt(2), part * 8 + group),
        };
        let sum = first.select(sum, 0);
        self.k.when(writes, || {
            let upper = (sum + UPPER / 2) >> UPPER.ilog2();
            let bytes = self.sums(held.span, line).cast::<u8>();
            let at = bytes.plus_bytes((slot >> 2) * 8 + (slot & 3));
            at.store((sum - upper * UPPER).convert::<u8>(""));
            at.offset(4).store(upper.convert::<u8>(""));
        });
    }
}

/// The unquantised activations: `columns` × `k` elements.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source<'k> {
    at: Ptr<'k, Global, u32>,
    element: PtxType,
    len: Val<'k, u32>,
}

impl<'k> Source<'k> {
    /// Creates a source of contiguous columns of `len` elements.
    pub(super) fn new(element: PtxType, at: Ptr<'k, Global, u32>, len: Val<'k, u32>) -> Self {
        Self { at, element, len }
    }

    /// Loads a lane's 8 of 256 values of a column; zeros out of bounds.
    pub(super) fn values(
        &self,
        exists: Val<'k, bool>,
        span: Val<'k, u32>,
        column: Val<'k, u32>,
        lane: Val<'k, u32>,
    ) -> [Val<'k, f32>; 8] {
        let at = span * SPAN + lane * 8;
        let only = Some(exists & at.lt(self.len));
        let nth = wide(column).mul_add(wide(self.len), wide(at));
        if self.element == PtxType::F32 {
            let at = self.at.cast::<f32>().at_wide(nth);
            let [low, high] = [at, at.at(4)].map(|at| at.load_fresh_where::<4>(only, 0.0f32));
            return std::array::from_fn(|i| if i < 4 { low[i] } else { high[i - 4] });
        }
        let at = self.at.cast::<u16>().at_wide(nth).cast::<u32>();
        let widen = if self.element == PtxType::Bf16 { unpack_bf16x2 } else { unpack_f16x2 };
        let pairs = at.load_fresh_where::<4>(only, 0u32).map(widen);
        std::array::from_fn(|i| pairs[i / 2][i % 2])
    }
}
