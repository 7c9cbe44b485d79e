//! Quantises activations to int8, in the layout of the MMA operands.
//!
//! A *span* of 256 values of a column has a scale `d`. A value is approximated by `d * q` with one
//! int8 limb `q`, or by `d * (q + r / 128)` with two limbs `q` and `r`, to about 15 bits. In the
//! MMA operands, each limb of a column occupies a *limb column* of its own.

use super::format::{BlockFormat, SPAN};
use super::matvec_shape::{MatVec, Prologue};
use super::to_u64;
use crate::kernels::gemm::silu;
use crate::kernels::name::Name;
use crate::typed::{Global, KernelBuilder, Memory, Ptr, Val, unpack_bf16x2, unpack_f16x2};
use crate::types::PtxType;

/// Spans whose largest magnitude is below this (2^-120) become zero: the reciprocal would overflow.
const MIN_SIGNIFICANT: f32 = f32::from_bits((127 - 120) << 23);
/// 1.5 * 2^23. Adding it to a value below 2^22 in magnitude rounds the value to an integer, which
/// is in the low bits of the sum.
const ROUNDING_BIAS: f32 = 12_582_912.0;
/// Sums of limbs are stored as two signed bytes, `upper * UPPER_UNIT + lower`.
pub(super) const UPPER_UNIT: i32 = 64;
/// Bytes for the sums of the 256 limbs of a span.
const SUM_BYTES: u32 = 32;

/// The memory layout of limbs, their sums and scales, one after the other:
///
/// - limbs: for each 32 values, for each limb column, 32 bytes;
/// - sums, unless they are unused: for each span, for each limb column, 32 bytes: the lower bytes
///   of 4 sums, the upper bytes of these sums, and so on;
/// - scales: for each span, for each column of activations, an `f32`.
///
/// The number of columns is padded to 1, 2, 4 or 8, so that all strides are compile-time constants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Limbs {
    /// Limbs per value: 1 or 2.
    pub(super) limbs: u32,
    /// Padded number of columns.
    pub(super) padded_columns: u32,
    /// Whether the eight words of 32 limbs are stored in the order 0, 4, 1, 5, 2, 6, 3, 7.
    pub(super) interleaved: bool,
    /// Limbs per sum, 16 or 32; `None` without sums.
    pub(super) limbs_per_sum: Option<u32>,
}

impl Limbs {
    /// Returns the layout that the MMA kernel of a format reads.
    pub(super) const fn for_format(format: BlockFormat, columns: u32) -> Self {
        let limbs = if columns <= 4 { 2 } else { 1 };
        let (interleaved, limbs_per_sum) = match format {
            BlockFormat::Q4K | BlockFormat::Q5K => (false, Some(32)),
            BlockFormat::Q6K => (true, Some(16)),
            // `Q4_0` and `Q4_1` have no MMA kernel: see `BlockFormat::is_streamed`.
            BlockFormat::Q4_0 | BlockFormat::Q4_1 | BlockFormat::Q8_0 => (true, None),
        };
        Self { limbs, padded_columns: columns.next_power_of_two(), interleaved, limbs_per_sum }
    }

    /// Appends the layout to a kernel's name.
    pub(super) fn append_to(self, name: Name) -> Name {
        let name = name.with(format_args!("n{}", self.padded_columns));
        let name = name.with(format_args!("limbs{}", self.limbs));
        let name = name.with_if(self.interleaved, "interleaved");
        match self.limbs_per_sum {
            Some(width) => name.with(format_args!("sums{width}")),
            None => name,
        }
    }

    /// Number of limb columns.
    pub(super) const fn limb_columns(self) -> u32 {
        self.padded_columns * self.limbs
    }

    /// Bytes for `k` values of each column, a multiple of 16.
    pub(super) fn bytes(self, k: u64) -> u64 {
        let spans = k.div_ceil(SPAN.into());
        let sums = if self.limbs_per_sum.is_some() { SUM_BYTES } else { 0 };
        let span = self.limb_columns() * (SPAN + sums) + self.padded_columns * 4;
        (spans * u64::from(span)).next_multiple_of(16)
    }
}

/// Limbs in memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct LimbBuffer<'k, S> {
    layout: Limbs,
    k: &'k KernelBuilder,
    pub(super) limbs: Ptr<'k, S, u32>,
    sums: Ptr<'k, S, u32>,
    scales: Ptr<'k, S, f32>,
}

/// The span of a column that a warp quantises: lane `l` holds the 8 values from `8 * l` on.
struct WarpSpan<'k> {
    span: Val<'k, u32>,
    column: Val<'k, u32>,
    lane: Val<'k, u32>,
}

impl<'k, S: Memory> LimbBuffer<'k, S> {
    /// Creates the buffer at an address, for this many spans per column.
    pub(super) fn new(
        k: &'k KernelBuilder,
        layout: Limbs,
        at: Ptr<'k, S, u32>,
        spans: Val<'k, u32>,
    ) -> Self {
        let limb_columns = layout.limb_columns();
        let sums = at.plus_bytes(spans * (limb_columns * SPAN));
        let scales = match layout.limbs_per_sum {
            Some(_) => sums.plus_bytes(spans * (limb_columns * SUM_BYTES)),
            None => sums,
        };
        Self { layout, k, limbs: at, sums, scales: scales.cast() }
    }

    /// Returns the address of a limb column's first 32 limbs of a span; the next ones are
    /// `limb_columns * 32` bytes further on.
    pub(super) fn group(&self, span: Val<'k, u32>, limb_column: Val<'k, u32>) -> Ptr<'k, S, u32> {
        self.limbs
            .plus_bytes(span * (self.layout.limb_columns() * SPAN))
            .plus_bytes(limb_column * 32)
    }

    /// Returns the address of the sums of a limb column's span.
    pub(super) fn sums(&self, span: Val<'k, u32>, limb_column: Val<'k, u32>) -> Ptr<'k, S, u32> {
        self.sums
            .plus_bytes(span * (self.layout.limb_columns() * SUM_BYTES))
            .plus_bytes(limb_column * SUM_BYTES)
    }

    /// Returns the address of the scale of a column's span.
    pub(super) fn scale(&self, span: Val<'k, u32>, column: Val<'k, u32>) -> Ptr<'k, S, f32> {
        self.scales.at(span * self.layout.padded_columns).at(column)
    }

    /// Quantises and stores a span of a column, of which each lane of the warp has 8 values.
    pub(super) fn write(
        &self,
        span: Val<'k, u32>,
        column: Val<'k, u32>,
        lane: Val<'k, u32>,
        values: [Val<'k, f32>; 8],
    ) {
        let warp_span = WarpSpan { span, column, lane };
        let (scale, inverse) = self.scale_of(values);
        self.k.if_then(lane.eq(0), || self.scale(span, column).store(scale));
        let mut remainders = values.map(|value| value * inverse);
        for limb in 0..self.layout.limbs {
            // The nearest integer is in the low bits of the sum.
            let sums = remainders.map(|value| value + ROUNDING_BIAS);
            let words =
                [0, 4].map(|first| self.pack_low_bytes([0, 1, 2, 3].map(|i| sums[first + i])));
            self.write_limbs(&warp_span, limb, words);
            remainders =
                std::array::from_fn(|i| (remainders[i] - (sums[i] - ROUNDING_BIAS)) * 128.0);
        }
    }

    /// Returns the scale of a warp's values, and approximately its reciprocal.
    fn scale_of(&self, values: [Val<'k, f32>; 8]) -> (Val<'k, f32>, Val<'k, f32>) {
        let magnitudes = values.map(|value| value.unary("abs"));
        let lane_value = magnitudes.into_iter().reduce(|a, b| a.max(b)).expect("there are eight");
        let largest = self.k.max_non_negative_of_warp(lane_value);
        let is_significant = largest.ge(MIN_SIGNIFICANT);
        // Reciprocals of values above 2^126 would be flushed to zero.
        let inverse = (largest * 0.0625).recip() * (127.0 * 0.0625);
        (is_significant.select(largest * (1.0 / 127.0), 0.0), is_significant.select(inverse, 0.0))
    }

    /// Packs the lowest bytes of four integers.
    fn pack_low_bytes(&self, values: [Val<'k, f32>; 4]) -> Val<'k, u32> {
        let [a, b, c, d] = values.map(Val::cast::<u32>);
        a.permute(b, 0x0040u32).permute(c.permute(d, 0x0040u32), 0x5410u32)
    }

    fn write_limbs(&self, warp_span: &WarpSpan<'k>, limb: u32, words: [Val<'k, u32>; 2]) {
        let limb_column = warp_span.column * self.layout.limbs + limb;
        let (group, part) = (warp_span.lane >> 2, warp_span.lane & 3);
        let at = self
            .group(warp_span.span, limb_column)
            .plus_bytes(group * (self.layout.limb_columns() * 32));
        if self.layout.interleaved {
            words.into_iter().enumerate().for_each(|(nth, word)| {
                let word_at = part * 2 + nth as u32;
                at.at((word_at & 3) * 2 + (word_at >> 2)).store(word);
            });
        } else {
            at.at(part * 2).store_vector(words);
        }
        if let Some(width) = self.layout.limbs_per_sum {
            self.write_sums(warp_span, limb_column, width, words);
        }
    }

    /// Stores the sums of every `width` limbs, and zeros where there are fewer than 16 sums.
    fn write_sums(
        &self,
        warp_span: &WarpSpan<'k>,
        limb_column: Val<'k, u32>,
        width: u32,
        words: [Val<'k, u32>; 2],
    ) {
        let ones = 0x0101_0101u32;
        let lane_value = self.k.dp4a(words[1], ones, self.k.dp4a(words[0], ones, 0));
        let sum = self.k.reduce_warp(lane_value, width / 8, |a, b| a + b);
        let (group, part) = (warp_span.lane >> 2, warp_span.lane & 3);
        let first = (warp_span.lane & (width / 8 - 1)).eq(0);
        let (writes, slot) = match width {
            16 => (first, warp_span.lane >> 1),
            _ => (part.lt(2), part * 8 + group),
        };
        let sum = first.select(sum, 0);
        self.k.if_then(writes, || {
            let upper = (sum + UPPER_UNIT / 2) >> UPPER_UNIT.ilog2();
            let bytes = self.sums(warp_span.span, limb_column).cast::<u8>();
            let at = bytes.plus_bytes((slot >> 2) * 8 + (slot & 3));
            at.store((sum - upper * UPPER_UNIT).convert::<u8>(""));
            at.offset(4).store(upper.convert::<u8>(""));
        });
    }
}

/// The unquantised activations: `columns` × `k`, and what is computed of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source<'k> {
    at: Ptr<'k, Global, u32>,
    element: PtxType,
    prologue: Prologue,
    len: Val<'k, u32>,
}

impl<'k> Source<'k> {
    /// Creates the source of a product, with contiguous columns of `len` activations.
    pub(super) fn new(product: &MatVec, at: Ptr<'k, Global, u32>, len: Val<'k, u32>) -> Self {
        Self { at, element: product.activations, prologue: product.prologue, len }
    }

    /// Returns a lane's 8 values of a column's span; zeros out of bounds.
    pub(super) fn values(
        &self,
        in_bounds: Val<'k, bool>,
        span: Val<'k, u32>,
        column: Val<'k, u32>,
        lane: Val<'k, u32>,
    ) -> [Val<'k, f32>; 8] {
        let at = span * SPAN + lane * 8;
        let predicate = in_bounds & at.lt(self.len);
        let first = to_u64(column).mul_add(self.column_len(), to_u64(at));
        let values = self.load(predicate, first);
        match self.prologue {
            Prologue::None => values,
            Prologue::SwiGlu => {
                let others = self.load(predicate, first + to_u64(self.len));
                std::array::from_fn(|i| silu(values[i]) * others[i])
            }
        }
    }

    /// Returns the elements of a column.
    fn column_len(&self) -> Val<'k, u64> {
        match self.prologue {
            Prologue::None => to_u64(self.len),
            Prologue::SwiGlu => to_u64(self.len) * u64::from(self.prologue.inputs()),
        }
    }

    /// Loads 8 elements; zeros if `predicate` is false.
    fn load(&self, predicate: Val<'k, bool>, nth: Val<'k, u64>) -> [Val<'k, f32>; 8] {
        let predicate = Some(predicate);
        if self.element == PtxType::F32 {
            let at = self.at.cast::<f32>().at_wide(nth);
            let [low, high] = [at, at.at(4)].map(|at| at.load_if::<4>(predicate, 0.0f32));
            return std::array::from_fn(|i| if i < 4 { low[i] } else { high[i - 4] });
        }
        let at = self.at.cast::<u16>().at_wide(nth).cast::<u32>();
        let widen = if self.element == PtxType::Bf16 { unpack_bf16x2 } else { unpack_f16x2 };
        let pairs = at.load_if::<4>(predicate, 0u32).map(widen);
        std::array::from_fn(|i| pairs[i / 2][i % 2])
    }
}
