//! Quantises weights to blocks on the GPU.
//!
//! A thread fits the scale of a group of weights. The threads of a block of weights exchange their
//! scales, and pack the integers through shared memory. The bytes are those of
//! [`super::quantize`].

use super::device_scale_search::{Exact, Weights, larger_magnitude};
use super::format::{BlockFormat, SPAN};
use super::host_reference::MAX_F16;
use super::matvec_shape::argument_error;
use super::to_u64;
use crate::kernels::name::Name;
use crate::kernels::{
    BufferAccess, BufferParameter, KernelInterface, LaunchShape, Parameter, Plan, PlanError,
    PtxKernel,
};
use crate::module::PtxEntry;
use crate::target::Target;
use crate::typed::{self, F16, Global, KernelBuilder, Ptr, Shared, Val};
use crate::types::PtxType;

/// Threads per block.
const THREADS: u32 = 128;

/// The kernel.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct QuantizeWeights {
    format: BlockFormat,
    count: u64,
}

/// Returns the launch that quantises `count` weights (`f32`) to blocks: the same bytes as
/// [`super::quantize`].
///
/// # Errors
/// [`PlanError::Argument`] if `count` is not a multiple of the block size, or the grid would be too
/// large.
pub fn quantize_plan(format: BlockFormat, count: u64) -> Result<Plan, PlanError> {
    let kernel = QuantizeWeights { format, count };
    let block = format.block_len() as u64;
    if !count.is_multiple_of(block) {
        let problem = format!("{count}, not a multiple of {block}");
        return Err(argument_error("quantize", "count", problem, "pass whole blocks"));
    }
    if kernel.grid() >= 1 << 31 {
        return Err(argument_error(
            "quantize",
            "count",
            format!("{count}, above the limit of a launch"),
            "split the weights over several calls",
        ));
    }
    if count == 0 {
        return Ok(Plan { arguments: kernel.interface().buffers, ..Plan::default() });
    }
    Ok(Plan::single(Box::new(kernel)))
}

/// Returns the weights per thread.
const fn weights_per_thread(format: BlockFormat) -> u32 {
    if matches!(format, BlockFormat::Q6K) { 16 } else { 32 }
}

/// A thread's group of weights, and the block of weights that it belongs to.
struct Work<'k> {
    k: &'k KernelBuilder,
    weights: Weights<'k>,
    /// Index of the thread's group in the block.
    group_index: Val<'k, u32>,
    /// The block's integers, one byte each.
    integers: Ptr<'k, Shared, u8>,
    /// Destination of the block.
    block: Ptr<'k, Global, u8>,
}

impl QuantizeWeights {
    fn grid(&self) -> u64 {
        self.count.div_ceil(u64::from(THREADS * weights_per_thread(self.format)))
    }

    fn body(&self, k: &KernelBuilder) {
        let (x, blocks) = (k.pointer_param::<f32>("x"), k.pointer_param::<u8>("blocks"));
        let count = k.scalar_param::<u64>("count");
        let (thread_weights, len) =
            (weights_per_thread(self.format), self.format.block_len() as u32);
        let group = to_u64(k.block_id(0)) * u64::from(THREADS) + to_u64(k.thread_id());
        let first = group * u64::from(thread_weights);
        let in_bounds = first.lt(count);
        // Threads without weights participate in shuffles, with zeros.
        let values: Vec<_> = (0..thread_weights).map(|_| k.var(0.0f32)).collect();
        k.if_then(in_bounds, || {
            for (four, values) in values.chunks_exact(4).enumerate() {
                let read = x.at_wide(first).at(4 * four as u32).load_constant_vector::<4>();
                values.iter().zip(read).for_each(|(variable, value)| variable.set(value));
            }
        });
        let weights = Weights { k, x: values.iter().map(|value| value.get()).collect() };
        let groups = len / thread_weights;
        let group_index = group.convert::<u32>("") & (groups - 1);
        let block = (group >> groups.ilog2()) * self.format.block_bytes() as u64;
        let shared = k.shared::<u8>(THREADS * thread_weights, 16);
        let integers = shared.plus_bytes((k.thread_id() >> groups.ilog2()) * SPAN);
        let work = Work { k, weights, group_index, integers, block: blocks.at_wide(block) };
        match self.format {
            BlockFormat::Q4_0 => work.pack_nibbles_around_8(in_bounds),
            BlockFormat::Q4_1 => work.pack_nibbles(in_bounds),
            BlockFormat::Q4K => work.pack_affine(in_bounds, 15.0, 16, None),
            BlockFormat::Q5K => work.pack_affine(in_bounds, 31.0, 48, Some(16)),
            BlockFormat::Q6K => work.pack_centred(in_bounds),
            BlockFormat::Q8_0 => work.pack_q8(in_bounds),
        }
    }
}

/// Rounds a scale to `f16`, clamped to its range; also returns the rounded value as `f32`.
fn round_scale(scale: Val<'_, f32>) -> (Val<'_, F16>, Val<'_, f32>) {
    let d_f16 = scale.max(-MAX_F16).min(MAX_F16).convert::<F16>("rn");
    (d_f16, d_f16.convert(""))
}

impl<'k> Work<'k> {
    /// Converts this thread's weights to integers with `integer`, which results in unsigned bytes,
    /// and stores these in shared memory.
    fn store_integers(&self, integer: impl Fn(Val<'k, f32>) -> Val<'k, f32>) {
        let weights_per_thread = self.weights.x.len() as u32;
        let at = self.integers.plus_bytes(self.group_index * weights_per_thread).cast::<u32>();
        for (four, x) in self.weights.x.chunks_exact(4).enumerate() {
            at.at(four as u32).store(pack_integers(x, &integer));
        }
        self.k.sync_warp();
    }

    /// Loads four integers of the block from shared memory.
    fn load_integers(&self, first: Val<'k, u32>) -> Val<'k, u32> {
        self.integers.plus_bytes(first).cast::<u32>().load()
    }

    /// Stores a word at a 2-byte aligned address.
    fn store_word(&self, at: Ptr<'k, Global, u8>, word: Val<'k, u32>) {
        let at = at.cast::<u16>();
        at.store((word & 0xffff).convert::<u16>(""));
        at.at(1).store((word >> 16).convert::<u16>(""));
    }
}

/// Packs four rounded values as bytes.
fn pack_integers<'k>(
    x: &[Val<'k, f32>],
    integer: impl Fn(Val<'k, f32>) -> Val<'k, f32>,
) -> Val<'k, u32> {
    let byte = |i: usize| integer(x[i]).convert::<i32>("rni").cast::<u32>();
    let low = byte(0).permute(byte(1), 0x0040u32);
    low.permute(byte(2).permute(byte(3), 0x0040u32), 0x5410u32)
}

/// `Q4K` and `Q5K`.
impl<'k> Work<'k> {
    /// Packs the block; `low` and `high` are the byte offsets of low and high bits.
    fn pack_affine(&self, in_bounds: Val<'k, bool>, levels: f32, low: i64, high: Option<i64>) {
        let k = self.k;
        let (scale, offset) = self.weights.fit_affine(levels);
        let round_unit = |value: Val<'k, f32>| {
            let max = k.reduce_warp(value, 8, |a, b| a.max(b));
            round_scale(max.divided_by(k.constant(63.0)))
        };
        let ((d_f16, d), (dmin_f16, dmin)) = (round_unit(scale), round_unit(offset));
        let scale = scale.times(d.inverse()).round_clamped(0.0, 63.0);
        let offset = offset.times(dmin.inverse()).round_clamped(0.0, 63.0);
        let (inverse, rounded_offset) = (d.times(scale).inverse(), dmin.times(offset));
        self.store_integers(|x| x.plus(rounded_offset).times(inverse).round_clamped(0.0, levels));
        let six_bits = [scale, offset].map(|six_bits| six_bits.convert::<u32>("rni"));
        let partner = six_bits.map(|six_bits| k.shuffle("bfly", six_bits, 4u32));
        k.if_then(in_bounds, || {
            k.if_then(self.group_index.eq(0), || {
                let scales = self.block.cast::<F16>();
                scales.store(d_f16);
                scales.at(1).store(dmin_f16);
            });
            k.if_then(self.group_index.lt(4), || self.store_scales(six_bits, partner));
            self.store_low(low);
            high.into_iter().for_each(|high| self.store_high(high));
        });
    }

    /// Stores three bytes: a scale of the first four groups with the upper bits of its partner,
    /// which is four groups further on; the same of offsets; the low bits of the partner's scale
    /// and offset.
    fn store_scales(&self, own: [Val<'k, u32>; 2], partner: [Val<'k, u32>; 2]) {
        let at = self.block.plus_bytes(self.group_index);
        let first = [0, 1].map(|i| own[i] | ((partner[i] >> 4) << 6));
        let low_bits = (partner[0] & 15) | (partner[1] << 4);
        for (offset, byte) in [(4, first[0]), (8, first[1]), (12, low_bits)] {
            at.offset(offset).store(byte.convert::<u8>(""));
        }
    }

    /// Stores 16 of 128 bytes of low bits: half of two groups.
    fn store_low(&self, low: i64) {
        let first = (self.group_index >> 1) * 64 + (self.group_index & 1) * 16;
        let words = [0, 4, 8, 12].map(|at| {
            let [low, high] = [0, 32].map(|group| self.load_integers(first + (group + at)));
            (low & 0x0f0f_0f0f) | ((high & 0x0f0f_0f0f) << 4)
        });
        let at = self.block.plus_bytes(self.group_index * 16).offset(low);
        at.cast::<u32>().store_vector(words);
    }

    /// Stores 4 of 32 bytes of high bits, which have a bit of each group.
    fn store_high(&self, high: i64) {
        let bits = (0..8u32).map(|group| {
            let integers = self.load_integers(self.group_index * 4 + 32 * group);
            ((integers >> 4) & 0x0101_0101) << group
        });
        let word = bits.collect::<Vec<_>>().into_iter().reduce(|a, b| a | b);
        let at = self.block.plus_bytes(self.group_index * 4).offset(high);
        at.cast::<u32>().store(word.expect("there are eight"));
    }
}

/// `Q6K`.
impl<'k> Work<'k> {
    fn pack_centred(&self, in_bounds: Val<'k, bool>) {
        let k = self.k;
        let group_scale = self.weights.fit_centred(32.0);
        let low = k.reduce_warp(group_scale.min(0.0), 16, |a, b| a.min(b));
        let high = k.reduce_warp(group_scale.max(0.0), 16, |a, b| a.max(b));
        let (d_f16, d) = round_scale(larger_magnitude(low, high).divided_by(k.constant(-128.0)));
        let scale = group_scale.times(d.inverse()).round_clamped(-128.0, 127.0);
        let inverse = d.times(scale).inverse();
        self.store_integers(|x| x.times(inverse).round_clamped(-32.0, 31.0).plus(k.constant(32.0)));
        k.if_then(in_bounds, || {
            k.if_then(self.group_index.eq(0), || self.block.offset(208).cast::<F16>().store(d_f16));
            let byte = scale.convert::<i32>("rni").cast::<u32>().convert::<u8>("");
            self.block.plus_bytes(self.group_index).offset(192).store(byte);
            self.store_four_bits();
            self.store_two_bits();
        });
    }

    /// Stores 8 of 128 bytes of low bits: each has a weight of one of the first two groups of a
    /// half of the block, and the weight 64 further on.
    fn store_four_bits(&self) {
        let first = (self.group_index >> 3) * 128 + (self.group_index & 7) * 8;
        for at in [0, 4] {
            let [low, high] = [0, 64].map(|group| self.load_integers(first + (group + at)));
            let word = (low & 0x0f0f_0f0f) | ((high & 0x0f0f_0f0f) << 4);
            self.store_word(self.block.plus_bytes(self.group_index * 8).offset(at.into()), word);
        }
    }

    /// Stores 4 of 64 bytes of high bits: each has two bits of each group of a half of the block.
    fn store_two_bits(&self) {
        let first = (self.group_index >> 3) * 128 + (self.group_index & 7) * 4;
        let bits = (0..4u32).map(|group| {
            let integers = self.load_integers(first + 32 * group);
            ((integers >> 4) & 0x0303_0303) << (2 * group)
        });
        let word = bits.collect::<Vec<_>>().into_iter().reduce(|a, b| a | b);
        let at = self.block.plus_bytes(self.group_index * 4).offset(128);
        self.store_word(at, word.expect("there are four"));
    }
}

/// `Q8_0`.
impl<'k> Work<'k> {
    fn pack_q8(&self, in_bounds: Val<'k, bool>) {
        let largest = self.weights.extreme().unary("abs");
        let (d_f16, d) = round_scale(largest.divided_by(self.k.constant(127.0)));
        let inverse = d.inverse();
        self.k.if_then(in_bounds, || {
            self.block.cast::<F16>().store(d_f16);
            for (four, x) in self.weights.x.chunks_exact(4).enumerate() {
                let word = pack_integers(x, |x| x.times(inverse).round_clamped(-127.0, 127.0));
                self.store_word(self.block.offset(2 + 4 * four as i64), word);
            }
        });
    }
}

/// `Q4_0` and `Q4_1`.
impl<'k> Work<'k> {
    fn pack_nibbles_around_8(&self, in_bounds: Val<'k, bool>) {
        let k = self.k;
        let zero = k.constant(0.0f32);
        let largest =
            self.weights.x.iter().fold(zero, |largest, x| {
                x.unary("abs").gt(largest.unary("abs")).select(*x, largest)
            });
        let scale = largest.divided_by(k.constant(-8.0)).max(-MAX_F16).min(MAX_F16);
        let (d_f16, d) = round_scale(scale);
        let inverse = inverse_unless_lost(scale, d);
        k.if_then(in_bounds, || {
            self.block.cast::<F16>().store(d_f16);
            self.store_nibbles(2, |x| x.times(inverse).plus(k.constant(8.5)));
        });
    }

    fn pack_nibbles(&self, in_bounds: Val<'k, bool>) {
        let k = self.k;
        let (low, range) = self.weights.low_and_range();
        let low = low.max(-MAX_F16).min(MAX_F16);
        let scale = range.divided_by(k.constant(15.0)).min(MAX_F16);
        let ((d_f16, d), (m_f16, _)) = (round_scale(scale), round_scale(low));
        let inverse = inverse_unless_lost(scale, d);
        k.if_then(in_bounds, || {
            let scales = self.block.cast::<F16>();
            scales.store(d_f16);
            scales.at(1).store(m_f16);
            self.store_nibbles(4, |x| x.minus(low).times(inverse).plus(k.constant(0.5)));
        });
    }

    /// Stores the integers of the block: weight `i` with weight `i + 16`. They are truncated.
    fn store_nibbles(&self, at: i64, integer: impl Fn(Val<'k, f32>) -> Val<'k, f32>) {
        // Of NaN and a number, `max` returns the number.
        let nibble = |x| integer(x).max(0.0).min(15.0).convert::<f32>("rzi");
        let (low, high) = self.weights.x.split_at(16);
        for (four, (low, high)) in low.chunks_exact(4).zip(high.chunks_exact(4)).enumerate() {
            let word = pack_integers(low, nibble) | (pack_integers(high, nibble) << 4);
            self.store_word(self.block.offset(at + 4 * four as i64), word);
        }
    }
}

/// Returns the inverse of a scale before it is rounded; 0 if it rounds to 0.
fn inverse_unless_lost<'k>(scale: Val<'k, f32>, rounded: Val<'k, f32>) -> Val<'k, f32> {
    rounded.eq(0.0).select(0.0, scale.inverse())
}

impl PtxKernel for QuantizeWeights {
    fn name(&self) -> String {
        Name::new("quantize").with(self.format.name()).build()
    }

    fn default_target(&self) -> Target {
        Target::SM_75
    }

    fn write(&self, target: Target) -> PtxEntry {
        typed::kernel(&self.name(), target, [THREADS, 1, 1], |k| self.body(k))
    }

    fn launch(&self) -> LaunchShape {
        LaunchShape { grid: [self.grid() as u32, 1, 1], block: [THREADS, 1, 1], dynamic_shared: 0 }
    }

    fn interface(&self) -> KernelInterface {
        let blocks = self.count / self.format.block_len() as u64;
        let bytes = blocks * self.format.block_bytes() as u64;
        let (read, write) = (BufferAccess::Read, BufferAccess::Write);
        KernelInterface {
            buffers: vec![
                BufferParameter { name: "x", access: read, element: PtxType::F32, len: self.count },
                BufferParameter { name: "blocks", access: write, element: PtxType::B8, len: bytes },
            ],
            parameters: vec![
                Parameter::Pointer(0),
                Parameter::Pointer(1),
                Parameter::U64(self.count),
            ],
        }
    }
}
