//! Attention of few rows with few keys, as in decoding with a short cache: one block per row, so
//! that nothing remains to be combined by another kernel. It is bound by latency.
//!
//! A warp has the keys of every `warps`th group of 32, 8 lanes for each key. A lane loads 16 bytes
//! of 8 keys and of their values at once. Each warp has an online softmax of its own; at the end
//! the results of the warps are combined in shared memory.

use super::scalar::{load_element, store_element, to_u64};
use super::shape::{Attention, Strides};
use crate::kernels::name::Name;
use crate::kernels::{GpuSpec, KernelInterface, LaunchShape, Parameter, PtxKernel};
use crate::module::PtxEntry;
use crate::target::Target;
use crate::typed::{
    self, Global, KernelBuilder, Ptr, Shared, Val, Var, unpack_bf16x2, unpack_f16x2,
};
use crate::types::PtxType;

/// Maximum number of keys: with more, one multiprocessor loads the keys of a row slower than two
/// kernels with split-KV load and combine them.
const MAX_KEYS: u32 = 1024;
/// Maximum columns, for which a pass over 32 keys fits in registers.
const MAX_COLUMNS: u32 = 128;
/// Keys of a warp in a pass.
const PASS: u32 = 32;
/// Lanes that share a key.
const LANES: u32 = 8;
/// Keys of a lane in a pass.
const LANE_KEYS: u32 = PASS / (32 / LANES);
/// Columns of a row that the lanes of a key load at once, 16 bytes each.
const CHUNK: u32 = 64;
const LOG2_E: f32 = std::f32::consts::LOG2_E;

/// Returns whether the kernel is the fastest for 16-bit operands in 16-byte-aligned rows.
pub(super) fn suits(attention: &Attention, gpu: GpuSpec) -> bool {
    let Attention { batch, heads, queries, .. } = *attention;
    let rows = [batch, heads, queries].map(u64::from).into_iter().fold(1, u64::saturating_mul);
    !attention.causal
        && (batch == 1 || queries == 1)
        && attention.keys <= MAX_KEYS
        && attention.head_dim <= MAX_COLUMNS
        && rows <= u64::from(gpu.multiprocessors)
}

/// One block per row. Its index along x is that of its head among those that share keys, along y
/// that of these heads, along z that of its entry of the batch or, if there is one, of its query.
#[derive(Debug)]
pub(super) struct Decode {
    attention: Attention,
    warps: u32,
}

impl Decode {
    /// Creates the kernel, for attention that it [`suits`].
    pub(super) fn new(attention: Attention) -> Self {
        // With more warps, two chunks of columns would not fit in registers.
        let is_long = attention.keys > 8 * PASS && attention.head_dim <= CHUNK;
        Self { attention, warps: if is_long { 16 } else { 8 } }
    }

    fn chunks(&self) -> u32 {
        self.attention.head_dim.div_ceil(CHUNK)
    }

    fn threads(&self) -> u32 {
        32 * self.warps
    }
}

impl PtxKernel for Decode {
    fn name(&self) -> String {
        let name = Name::new("attention_decode").with(self.attention.element.name());
        let name = name.with(format_args!("d{}", CHUNK * self.chunks()));
        let name = name.with(format_args!("w{}", self.warps));
        match &self.attention.bias {
            Some(bias) => name.with(format_args!("bias{}", bias.element.name())).build(),
            None => name.build(),
        }
    }

    fn default_target(&self) -> Target {
        Target::SM_80
    }

    fn write(&self, target: Target) -> PtxEntry {
        let write = |k: &KernelBuilder| Writer::new(k, self).row();
        let mut kernel = typed::kernel(&self.name(), target, [self.threads(), 1, 1], write);
        // There are no more blocks than multiprocessors.
        kernel.min_blocks = Some(1);
        kernel
    }

    fn pdl_reads(&self) -> Option<&'static [usize]> {
        Some(&[])
    }

    fn launch(&self) -> LaunchShape {
        let Attention { batch, kv_heads, queries, .. } = self.attention;
        let grid = [self.attention.group_size(), kv_heads, batch * queries];
        LaunchShape { grid, block: [self.threads(), 1, 1], dynamic_shared: 0 }
    }

    fn interface(&self) -> KernelInterface {
        let attention = &self.attention;
        let buffers = attention.buffers().expect("it was checked when the plan was made");
        let mut parameters: Vec<_> = (0..buffers.len()).map(Parameter::Pointer).collect();
        let is_batch = attention.batch > 1;
        let rows = |it: Strides| [if is_batch { it.batch } else { it.row }, it.head];
        let bias = attention.bias.map(|bias| rows(bias.strides));
        for it in [Some(rows(attention.q)), bias, Some(rows(attention.out))].into_iter().flatten() {
            parameters.extend(it.map(Parameter::U64));
        }
        for Strides { batch, head, row } in [attention.k, attention.v] {
            let batch = if is_batch { batch } else { 0 };
            parameters.extend([batch, head, row].map(Parameter::U64));
        }
        let bias_column_stride = attention.bias.map_or(0, |bias| bias.column_stride);
        let counts = [attention.keys, attention.head_dim, bias_column_stride];
        parameters.extend(counts.map(Parameter::U32));
        parameters.push(Parameter::F32(attention.scale * LOG2_E));
        KernelInterface { buffers, parameters }
    }
}

/// Writes the kernel's code.
struct Writer<'k, 'a> {
    k: &'k KernelBuilder,
    kernel: &'a Decode,
    /// The first elements of the query, of the keys and the values, of the row of the bias, if
    /// there is one, and of the result.
    query: Ptr<'k, Global, u8>,
    keys_and_values: [Ptr<'k, Global, u8>; 2],
    bias: Option<Ptr<'k, Global, u8>>,
    out: Ptr<'k, Global, u8>,
    /// Bytes from one key, and one value, to the next.
    strides: [Val<'k, u64>; 2],
    keys: Val<'k, u32>,
    head_dim: Val<'k, u32>,
    bias_column_stride: Val<'k, u32>,
    /// Scale of the scores, times log2(e).
    scale: Val<'k, f32>,
    lane: Val<'k, u32>,
    /// The lane's position among those that share a key.
    part: Val<'k, u32>,
    /// The position of these lanes' first key in a pass.
    first_key: Val<'k, u32>,
}

/// The running state of a warp.
struct State<'k> {
    /// The maximum of the scores.
    max: Var<'k, f32>,
    /// The sum of the weights of this lane's keys.
    total: Var<'k, f32>,
    /// The weighted sums of this lane's columns, over its keys.
    accumulators: Vec<Var<'k, f32>>,
}

impl<'k, 'a> Writer<'k, 'a> {
    fn new(k: &'k KernelBuilder, kernel: &'a Decode) -> Self {
        let element = kernel.attention.element;
        let bias_element = kernel.attention.bias.map(|bias| bias.element);
        let [q, keys, values] = ["q", "k", "v"].map(|name| k.pointer_param::<u8>(name));
        let bias = bias_element.map(|element| (k.pointer_param::<u8>("bias"), element));
        let out = k.pointer_param::<u8>("out");
        let kv_head = k.block_id(1);
        let head = kv_head * k.block_count(0) + k.block_id(0);
        let stride =
            |name: &str, axis: &str| k.scalar_param::<u64>(&format!("{name}_{axis}_stride"));
        let start = |name: &str, (at, element): (Ptr<'k, Global, u8>, PtxType), head| {
            let [entry, head] = [("entry", k.block_id(2)), ("head", head)]
                .map(|(axis, index)| to_u64(index) * stride(name, axis));
            at.at_wide((entry + head) * u64::from(element.size()))
        };
        let query = start("q", (q, element), head);
        let bias = bias.map(|bias| start("bias", bias, head));
        let out = start("out", (out, element), head);
        let [keys_and_strides, values_and_strides] = [("k", keys), ("v", values)]
            .map(|(name, at)| (start(name, (at, element), kv_head), stride(name, "row") * 2));
        let [keys, head_dim, bias_column_stride] =
            ["keys", "head_dim", "bias_column_stride"].map(|name| k.scalar_param(name));
        let (scale, lane) = (k.scalar_param("scale"), k.lane());
        let (part, first_key) = (lane & (LANES - 1), lane / LANES);
        Self {
            k,
            kernel,
            query,
            keys_and_values: [keys_and_strides.0, values_and_strides.0],
            bias,
            out,
            strides: [keys_and_strides.1, values_and_strides.1],
            keys,
            head_dim,
            bias_column_stride,
            scale,
            lane,
            part,
            first_key,
        }
    }

    fn row(&self) {
        let k = self.k;
        let own_columns = |at: Ptr<'k, Global, u8>| at.plus_bytes(self.part * 16);
        let (query, keys_and_values) =
            (own_columns(self.query), self.keys_and_values.map(own_columns));
        k.pdl_wait();
        k.pdl_launch_dependents();
        let query = self.load_words(query, k.constant(1u32), k.constant(0u32));
        let query: Vec<_> = query.into_iter().flat_map(|word| self.unpack(word)).collect();
        let state = State {
            max: k.var(f32::NEG_INFINITY),
            total: k.var(0.0f32),
            accumulators: (0..8 * self.kernel.chunks()).map(|_| k.var(0.0f32)).collect(),
        };
        k.for_range(k.warp() * PASS, self.keys, PASS * self.kernel.warps, |first| {
            self.pass(first, &query, keys_and_values, &state);
        });
        self.combine(&state);
    }

    /// Loads this lane's columns of a row, given by the address of the first one, as pairs; 0 if
    /// the index of the row is not below a limit, and beyond the last column.
    fn load_words(
        &self,
        at: Ptr<'k, Global, u8>,
        limit: Val<'k, u32>,
        index: Val<'k, u32>,
    ) -> Vec<Val<'k, u32>> {
        let chunk = |nth: u32| {
            let is_column = (self.part * 8 + CHUNK * nth).lt(self.head_dim);
            let is_inside = index.lt(is_column.select::<u32>(limit, 0));
            let at = at.offset(i64::from(2 * CHUNK * nth)).cast::<u32>();
            at.load_constant_if::<4>(Some(is_inside), 0u32)
        };
        (0..self.kernel.chunks()).flat_map(chunk).collect()
    }

    fn unpack(&self, pair: Val<'k, u32>) -> [Val<'k, f32>; 2] {
        match self.kernel.attention.element {
            PtxType::F16 => unpack_f16x2(pair),
            _ => unpack_bf16x2(pair),
        }
    }

    /// Attends to the 32 keys of a warp from `first` on.
    fn pass(
        &self,
        first: Val<'k, u32>,
        query: &[Val<'k, f32>],
        [keys, values]: [Ptr<'k, Global, u8>; 2],
        state: &State<'k>,
    ) {
        let k = self.k;
        let load = |from: Ptr<'k, Global, u8>, stride: Val<'k, u64>| -> Vec<_> {
            let key = |nth: u32| first + self.first_key + (32 / LANES) * nth;
            let at = |nth| from.at_wide(to_u64(key(nth)) * stride);
            (0..LANE_KEYS).map(|nth| self.load_words(at(nth), self.keys, key(nth))).collect()
        };
        let own = first + self.first_key + self.part * (32 / LANES);
        // The loads overlap: ptxas delays those of values until registers are free.
        let bias = self.load_bias(own);
        let (keys, values) = (load(keys, self.strides[0]), load(values, self.strides[1]));
        let products = keys.into_iter().map(|words| {
            let zero = k.constant(0.0f32).copied();
            let columns = words.into_iter().flat_map(|word| self.unpack(word));
            query.iter().zip(columns).fold(zero, |sum, (q, k)| q.mul_add(k, sum))
        });
        // The lane receives the score of its own key.
        let score = self.sum_transposed(products.collect(), &[4, 2, 1])[0];
        let score = score.mul_add(self.scale, bias * LOG2_E);
        let score = own.lt(self.keys).select(score, f32::NEG_INFINITY);
        let max = state.max.get().max(k.reduce_warp(score, 32, |a, b| a.max(b)));
        let shift = max.eq(f32::NEG_INFINITY).select::<f32>(0.0, max);
        let rescale = (state.max.get() - shift).exp2();
        let weight = (score - shift).exp2();
        state.max.set(max);
        state.total.set(state.total.get().mul_add(rescale, weight));
        for accumulator in &state.accumulators {
            accumulator.set(accumulator.get() * rescale);
        }
        for (nth, words) in (0..).zip(values) {
            let weight = k.shuffle("idx", weight, (self.lane & !(LANES - 1)) + nth);
            let columns = words.into_iter().flat_map(|word| self.unpack(word));
            for (accumulator, value) in state.accumulators.iter().zip(columns) {
                accumulator.set(value.mul_add(weight, accumulator.get()));
            }
        }
    }

    /// Loads the bias of a key.
    fn load_bias(&self, key: Val<'k, u32>) -> Val<'k, f32> {
        let (Some(bias), Some(row)) = (self.kernel.attention.bias, self.bias) else {
            return self.k.constant(0.0f32).copied();
        };
        let column = key.min(self.keys - 1) * self.bias_column_stride;
        load_element(bias.element, row, to_u64(column))
    }

    /// Sums values over the lanes that differ in the bits `distances`. The lanes share the work: at
    /// each distance a lane keeps the half of the values that its bit selects.
    fn sum_transposed(
        &self,
        mut values: Vec<Val<'k, f32>>,
        distances: &[u32],
    ) -> Vec<Val<'k, f32>> {
        for distance in distances {
            let is_second = (self.lane & *distance).ne(0);
            let others = values.split_off(values.len() / 2);
            let pairs = values.into_iter().zip(others);
            let sum = |(first, second): (Val<'k, f32>, Val<'k, f32>)| {
                let kept = is_second.select(second, first);
                let sent = is_second.select(first, second);
                kept + self.k.shuffle("bfly", sent, *distance)
            };
            values = pairs.map(sum).collect();
        }
        values
    }

    /// Combines the results of the warps, and stores the row.
    fn combine(&self, state: &State<'k>) {
        let (k, warp, warps) = (self.k, self.k.warp(), self.kernel.warps);
        let width = CHUNK * self.kernel.chunks();
        let stats: Ptr<'k, Shared, f32> = k.shared(2 * warps, 16);
        let sums: Ptr<'k, Shared, f32> = k.shared(width * warps, 16);
        let total = k.reduce_warp(state.total.get(), 32, |a, b| a + b);
        k.if_then(self.lane.eq(0), || {
            stats.at(warp * 2).store_vector([state.max.get(), total]);
        });
        for (nth, columns) in (0..).zip(state.accumulators.chunks(8)) {
            let columns = columns.iter().map(|column| column.get()).collect();
            let pair = self.sum_transposed(columns, &[16, 8]);
            let column = self.part * 8 + ((self.lane & 16) / 4 + (self.lane & 8) / 4);
            let at = sums.at(warp * width + column + CHUNK * nth);
            at.store_vector([pair[0], pair[1]]);
        }
        k.sync();
        let column = k.thread_id();
        k.if_then(column.lt(self.head_dim), || {
            let stats: Vec<[Val<'k, f32>; 2]> =
                (0..warps).map(|warp| stats.at(2 * warp).load_vector()).collect();
            let max = stats.iter().map(|[max, _]| *max).reduce(|a, b| a.max(b));
            let max = max.expect("there are several warps");
            let max = max.eq(f32::NEG_INFINITY).select::<f32>(0.0, max);
            let zero = k.constant(0.0f32).copied();
            let (mut total, mut sum) = (zero, zero);
            for (warp, [warp_max, warp_total]) in (0..).zip(stats) {
                let weight = (warp_max - max).exp2();
                total = warp_total.mul_add(weight, total);
                sum = sums.at(column + width * warp).load().mul_add(weight, sum);
            }
            let factor = total.eq(0.0).select::<f32>(0.0, total.recip());
            let element = self.kernel.attention.element;
            store_element(element, self.out, to_u64(column), sum * factor);
        });
    }
}
