//! Loads weights from global memory: of a span of 256 weights, lane `l` has the 8 from `8 * l` on.

use super::format::BlockFormat;
use crate::typed::{Element, F16, Global, KernelBuilder, Ptr, Val, unpack_f16x2};

/// The 8 weights of a lane: `scale * q - offset`.
#[derive(Debug, Clone, Copy)]
pub(super) struct LaneWeights<'k> {
    /// The integers: signed bytes, in order.
    pub(super) q: [Val<'k, u32>; 2],
    pub(super) scale: Val<'k, f32>,
    /// `None` in formats without offsets.
    pub(super) offset: Option<Val<'k, f32>>,
}

/// Loads the weights of a lane.
#[derive(Debug, Clone, Copy)]
struct WeightReader<'k> {
    k: &'k KernelBuilder,
    /// Address of the span.
    at: Ptr<'k, Global, u8>,
    lane: Val<'k, u32>,
    /// Whether the preceding launch may still run.
    is_early: bool,
}

impl<'k> LaneWeights<'k> {
    /// Loads the weights of a lane.
    pub(super) fn load(
        k: &'k KernelBuilder,
        format: BlockFormat,
        at: Ptr<'k, Global, u8>,
        lane: Val<'k, u32>,
    ) -> Self {
        WeightReader { k, at, lane, is_early: false }.load_format(format)
    }

    /// As [`LaneWeights::load`], before [`KernelBuilder::pdl_wait`].
    pub(super) fn load_before_wait(
        k: &'k KernelBuilder,
        format: BlockFormat,
        at: Ptr<'k, Global, u8>,
        lane: Val<'k, u32>,
    ) -> Self {
        WeightReader { k, at, lane, is_early: true }.load_format(format)
    }

    /// Returns the weights if a condition holds, else zeros.
    pub(super) fn if_inside(self, is_inside: Val<'k, bool>) -> Self {
        let [scale, offset] = [Some(self.scale), self.offset]
            .map(|number| number.map(|number| is_inside.select::<f32>(number, 0.0)));
        Self { q: self.q, scale: scale.unwrap_or(self.scale), offset }
    }

    /// Returns the dequantised weights.
    pub(super) fn weights(&self) -> [Val<'k, f32>; 8] {
        std::array::from_fn(|nth| {
            let q = self.q[nth / 4].signed_byte(nth as u32 % 4).convert::<f32>("rn");
            match self.offset {
                Some(offset) => q.binary("mul.rn", self.scale).binary("sub.rn", offset),
                None => q * self.scale,
            }
        })
    }
}

impl<'k> WeightReader<'k> {
    fn load_format(&self, format: BlockFormat) -> LaneWeights<'k> {
        match format {
            BlockFormat::Q4_0 => self.load_nibbles_around_8(),
            BlockFormat::Q4_1 => self.load_nibbles(),
            BlockFormat::Q4K => self.load_affine(16, None),
            BlockFormat::Q5K => self.load_affine(48, Some(16)),
            BlockFormat::Q6K => self.load_centred(),
            BlockFormat::Q8_0 => self.load_q8(),
        }
    }

    fn load<T: Element>(&self, at: Ptr<'k, Global, T>) -> Val<'k, T> {
        if self.is_early { at.load_before_wait() } else { at.load_constant() }
    }

    /// Loads two words, with 8-byte alignment.
    fn load_words(&self, at: Ptr<'k, Global, u32>) -> [Val<'k, u32>; 2] {
        match self.is_early {
            true => [at, at.at(1)].map(|at| at.load_before_wait()),
            false => at.load_constant_vector(),
        }
    }

    fn load_f16(&self, at: Ptr<'k, Global, u8>) -> Val<'k, f32> {
        self.load(at.cast::<F16>()).convert("")
    }

    fn load_byte(&self, at: Ptr<'k, Global, u8>) -> Val<'k, u32> {
        self.load(at).convert("")
    }

    /// Loads 8 bytes with 2-byte alignment.
    fn load_8_bytes(&self, at: Ptr<'k, Global, u8>) -> [Val<'k, u32>; 2] {
        let at = at.cast::<u16>();
        [0u32, 2].map(|first| {
            let [low, high] = [first, first + 1].map(|nth| self.load(at.at(nth)));
            self.k.join(low, high)
        })
    }

    /// Loads weights of `Q4K` or `Q5K`, given the byte offsets of low and high bits in a block.
    fn load_affine(&self, low: i64, high: Option<i64>) -> LaneWeights<'k> {
        let (group, part) = (self.lane >> 2, self.lane & 3);
        let bytes = (group >> 1) * 32 + part * 8;
        let words = self.load_words(self.at.plus_bytes(bytes).offset(low).cast());
        let mut q = words.map(|word| (word >> ((group & 1) * 4)) & 0x0f0f_0f0f);
        if let Some(high) = high {
            let at = self.at.plus_bytes(part * 8).offset(high).cast::<u32>();
            let bits = self.load_words(at).map(|word| (word >> group) & 0x0101_0101);
            q = [0, 1].map(|nth| q[nth] | (bits[nth] << 4));
        }
        let (scale, offset) = self.scale_and_offset(group);
        let d = self.load_f16(self.at).binary("mul.rn", scale.convert::<f32>("rn"));
        let offset = self.load_f16(self.at.offset(2)).binary("mul.rn", offset.convert::<f32>("rn"));
        LaneWeights { q, scale: d, offset: Some(offset) }
    }

    /// Returns the 6-bit scale and offset of a group of 32 weights.
    fn scale_and_offset(&self, group: Val<'k, u32>) -> (Val<'k, u32>, Val<'k, u32>) {
        let at = self.at.plus_bytes(group & 3);
        let [scale, offset, both] = [4, 8, 12].map(|bytes| self.load_byte(at.offset(bytes)));
        let first = group.lt(4);
        let upper = |byte: Val<'k, u32>| (byte >> 6) << 4;
        (
            first.select(scale & 63, (both & 15) | upper(scale)),
            first.select(offset & 63, (both >> 4) | upper(offset)),
        )
    }

    /// Loads weights of `Q6K`.
    fn load_centred(&self) -> LaneWeights<'k> {
        let (half_block, group) = (self.lane >> 4, (self.lane >> 2) & 3);
        let within = (self.lane & 3) * 8;
        let low =
            self.load_8_bytes(self.at.plus_bytes(half_block * 64 + (group & 1) * 32 + within));
        let high = self.load_8_bytes(self.at.plus_bytes(half_block * 32 + within).offset(128));
        let q = [0, 1].map(|nth| {
            let nibbles = (low[nth] >> ((group >> 1) * 4)) & 0x0f0f_0f0f;
            let bits = ((high[nth] >> (group * 2)) & 0x0303_0303) << 4;
            subtract_from_bytes(nibbles | bits, 32)
        });
        let scale = self.load_byte(self.at.plus_bytes(self.lane >> 1).offset(192)).signed_byte(0);
        let d = self.load_f16(self.at.offset(208));
        LaneWeights { q, scale: d.binary("mul.rn", scale.convert::<f32>("rn")), offset: None }
    }

    /// Returns the low or the high bits of bytes.
    fn nibbles(&self, bytes: [Val<'k, u32>; 2]) -> [Val<'k, u32>; 2] {
        bytes.map(|word| (word >> (((self.lane & 3) >> 1) * 4)) & 0x0f0f_0f0f)
    }

    /// Returns the offset of this lane's 8 of 16 bytes.
    fn nibble_bytes(&self) -> Val<'k, u32> {
        (self.lane & 1) * 8
    }

    /// Loads weights of `Q4_0`.
    fn load_nibbles_around_8(&self) -> LaneWeights<'k> {
        let block = self.at.plus_bytes((self.lane >> 2) * 18);
        let bytes = self.load_8_bytes(block.offset(2).plus_bytes(self.nibble_bytes()));
        let q = self.nibbles(bytes).map(|word| subtract_from_bytes(word, 8));
        LaneWeights { q, scale: self.load_f16(block), offset: None }
    }

    /// Loads weights of `Q4_1`, whose blocks have 4-byte alignment.
    fn load_nibbles(&self) -> LaneWeights<'k> {
        let block = self.at.plus_bytes((self.lane >> 2) * 20).cast::<u32>();
        let [scale, low] = unpack_f16x2(self.load(block));
        let first = block.plus_bytes(self.nibble_bytes());
        let bytes = [1, 2].map(|nth: u32| self.load(first.at(nth)));
        LaneWeights { q: self.nibbles(bytes), scale, offset: Some(-low) }
    }

    /// Loads weights of `Q8_0`.
    fn load_q8(&self) -> LaneWeights<'k> {
        let block = self.at.plus_bytes((self.lane >> 2) * 34);
        let q = self.load_8_bytes(block.plus_bytes((self.lane & 3) * 8).offset(2));
        LaneWeights { q, scale: self.load_f16(block), offset: None }
    }
}

/// Subtracts a number from each of four bytes below 128; the results are signed.
fn subtract_from_bytes(word: Val<'_, u32>, number: u32) -> Val<'_, u32> {
    // The set upper bits prevent borrows between bytes.
    ((word | 0x8080_8080) - number * 0x0101_0101) ^ 0x8080_8080
}
