//! Chooses the variant of FlashAttention for a problem, unless none supports it.

use super::super::shape::{Attention, Strides};
use super::super::{bf16x3, combine, decode};
use super::variant::BiasForm;
use super::{Engine, Flash, FlashPipeline, FlashTile, Output, Variant, sm80};
use crate::kernels::{BufferSlot, GpuSpec, Plan, PlanError, Step};
use crate::target::Target;
use crate::types::PtxType;

/// Returns the FlashAttention plan, or `None` if the problem is not supported.
pub(in super::super) fn plan(
    attention: &Attention,
    gpu: GpuSpec,
) -> Result<Option<Plan>, PlanError> {
    // Without a bias, the running maximum is that of unscaled scores, so that the scale must be
    // positive. If it were flushed to zero, masked scores, -inf, would become NaN: it must be
    // normal, here with some margin.
    if attention.keys == 0 || attention.scale < f32::MIN_POSITIVE * 4.0 {
        return Ok(None);
    }
    let is_16bit = attention.element != PtxType::F32;
    if !gpu.target.supports(Target::SM_80) || is_16bit && !aligned(attention) {
        return Ok(None);
    }
    if is_16bit && decode::suits(attention, gpu) {
        return Ok(Some(Plan::single(Box::new(decode::Decode::new(*attention)))));
    }
    match (gpu.is_hopper(), is_16bit) {
        (true, true) if uses_split_kv(attention) => {
            split_kv_plan(attention, gpu, split_kv_tile(attention)).map(Some)
        }
        (true, true) => {
            unsplit_plan(attention, for_16bit(attention, tile_16bit(attention, gpu)), gpu).map(Some)
        }
        (true, false) => {
            unsplit_plan(attention, for_f32(attention, f32_tile(attention, gpu)), gpu).map(Some)
        }
        (false, true) => {
            let variant = for_sm80(attention);
            let fits = sm80::shared_bytes(&variant) <= gpu.shared_memory;
            fits.then(|| unsplit_plan(attention, variant, gpu)).transpose()
        }
        (false, false) => Ok(None),
    }
}

/// Returns the FlashAttention plan with a given tile.
pub(in super::super) fn plan_with(
    attention: &Attention,
    tile: FlashTile,
    pipeline: FlashPipeline,
    gpu: GpuSpec,
) -> Result<Plan, PlanError> {
    if attention.element == PtxType::F32 {
        return unsplit_plan(attention, for_f32(attention, tile), gpu);
    }
    if uses_split_kv(attention) {
        return split_kv_plan(attention, gpu, tile);
    }
    unsplit_plan(attention, Variant { pipeline, ..for_16bit(attention, tile) }, gpu)
}

/// Whether TMA can load the tiles: rows and strides are multiples of 16 bytes, and strides are
/// within TMA's limit.
fn aligned(attention: &Attention) -> bool {
    let Attention { batch, heads, kv_heads, queries, keys, .. } = *attention;
    let (q_shape, kv_shape) = ([batch, heads, queries], [batch, kv_heads, keys]);
    let operands = [
        (attention.q, q_shape),
        (attention.k, kv_shape),
        (attention.v, kv_shape),
        (attention.out, q_shape),
    ];
    attention.head_dim.is_multiple_of(8)
        && operands.into_iter().all(|(Strides { batch, head, row }, counts)| {
            let fits = |stride: u64| stride > 0 && stride.is_multiple_of(8) && stride < 1 << 38;
            [batch, head, row].into_iter().zip(counts).all(|(s, count)| count == 1 || fits(s))
        })
}

/// Whether blocks of two consumers would not fill the GPU, so that smaller blocks are better.
fn underfills_gpu(attention: &Attention, gpu: GpuSpec) -> bool {
    let tiles = attention.queries.div_ceil(2 * 64);
    let blocks =
        [attention.batch, attention.heads, tiles].map(u64::from).into_iter().product::<u64>();
    blocks < u64::from(gpu.multiprocessors)
}

/// Chooses the tile for 16-bit operands. With short rows, the prologue and epilogue of a task cost
/// more than larger tiles save, and several small blocks per multiprocessor hide them.
fn tile_16bit(attention: &Attention, gpu: GpuSpec) -> FlashTile {
    let (underfills_gpu, short, unbiased) =
        (underfills_gpu(attention, gpu), attention.keys <= 1024, attention.bias.is_none());
    let (consumers, keys, resident) = match attention.head_dim.next_multiple_of(64) {
        64 if short && unbiased && !attention.causal => (1, 128, 2),
        64 if short || underfills_gpu => (1, 64, if unbiased { 3 } else { 2 }),
        64 => (if unbiased { 3 } else { 2 }, 128, 1),
        128 if underfills_gpu => (1, 64, if unbiased { 2 } else { 1 }),
        128 => (2, 128, 1),
        192 => (if underfills_gpu { 1 } else { 2 }, 96, 1),
        _ if underfills_gpu => (1, 64, 1),
        _ => (2, if unbiased { 80 } else { 64 }, 1),
    };
    FlashTile { consumers, keys, stages: 2, resident }
}

/// Returns the variant for 16-bit operands.
fn for_16bit(attention: &Attention, tile: FlashTile) -> Variant {
    Variant {
        engine: Engine::Hopper,
        element: attention.element,
        terms: 1,
        width: attention.head_dim.next_multiple_of(64),
        tile,
        pipeline: FlashPipeline::Overlapped,
        causal: attention.causal,
        bias: BiasForm::new(attention),
        output: Output::Tiles,
    }
}

/// Chooses the tile for `f32`, one that fits in shared memory.
fn f32_tile(attention: &Attention, gpu: GpuSpec) -> FlashTile {
    let underfills_gpu = underfills_gpu(attention, gpu);
    let (consumers, keys, stages) = match attention.head_dim.next_multiple_of(64) {
        64 => (if underfills_gpu { 1 } else { 2 }, 64, 2),
        128 => (if underfills_gpu { 1 } else { 2 }, 64, 1),
        192 => (1, 32, 2),
        _ if attention.bias.is_some() => (1, 16, 2),
        _ => (1, 32, 1),
    };
    FlashTile { consumers, keys, stages, resident: 1 }
}

/// Returns the variant for `f32`, as sums of three `bf16` terms.
fn for_f32(attention: &Attention, tile: FlashTile) -> Variant {
    Variant {
        element: PtxType::Bf16,
        terms: 3,
        pipeline: FlashPipeline::Sequential,
        output: Output::Rows,
        ..for_16bit(attention, tile)
    }
}

/// Returns the variant for `mma.sync`.
fn for_sm80(attention: &Attention) -> Variant {
    let width = attention.head_dim.next_multiple_of(64).next_power_of_two();
    let (keys, resident) = match width {
        64 => (64, 3),
        128 => (64, 2),
        _ => (32, 1),
    };
    let tile = FlashTile { consumers: 1, keys, stages: 2, resident };
    Variant {
        engine: Engine::Ampere,
        width,
        pipeline: FlashPipeline::Sequential,
        output: Output::Rows,
        ..for_16bit(attention, tile)
    }
}

/// Returns a plan that reads all keys in one kernel, after splitting `f32` operands.
fn unsplit_plan(attention: &Attention, variant: Variant, gpu: GpuSpec) -> Result<Plan, PlanError> {
    let tiles = attention.queries.div_ceil(64 * variant.tile.consumers);
    let flash = Box::new(Flash::new(*attention, variant, tiles, gpu)?);
    if variant.terms == 1 {
        return Ok(Plan::single(flash));
    }
    let mut plan = Plan { arguments: attention.buffers()?, ..Plan::default() };
    for (nth, kernel) in bf16x3::split_operands(attention)?.into_iter().enumerate() {
        plan.scratch.push(kernel.bytes());
        let buffers = vec![BufferSlot::Argument(nth), BufferSlot::Scratch(nth)];
        plan.steps.push(Step { kernel: Box::new(kernel), buffers });
    }
    let mut buffers: Vec<_> = (0..3).map(BufferSlot::Scratch).collect();
    buffers.extend((3..plan.arguments.len()).map(BufferSlot::Argument));
    plan.steps.push(Step { kernel: flash, buffers });
    Ok(plan)
}

/// Whether to use split-KV decoding: the queries that share keys fit in one tile, and there are
/// many keys.
fn uses_split_kv(attention: &Attention) -> bool {
    let rows = u64::from(attention.queries) * u64::from(attention.group_size());
    !attention.causal && rows <= 64 && attention.keys >= 256
}

/// Chooses the tile for [`split_kv_plan`], so that enough bytes are in flight.
fn split_kv_tile(attention: &Attention) -> FlashTile {
    let (keys, resident) = match attention.head_dim.next_multiple_of(64) {
        64 => (128, if attention.bias.is_none() { 2 } else { 1 }),
        128 => (128, 1),
        _ => (64, 1),
    };
    FlashTile { consumers: 1, keys, stages: 3, resident }
}

/// Returns a plan for split-KV decoding: the keys are split over blocks, and a second kernel
/// combines the partial results.
fn split_kv_plan(attention: &Attention, gpu: GpuSpec, tile: FlashTile) -> Result<Plan, PlanError> {
    let variant = Variant {
        pipeline: FlashPipeline::Sequential,
        output: Output::Partial,
        ..for_16bit(attention, tile)
    };
    let tiles = attention.keys.div_ceil(tile.keys);
    let heads = u64::from(attention.batch) * u64::from(attention.kv_heads);
    let resident_blocks = u64::from(gpu.multiprocessors * variant.tile.resident);
    let slices = (resident_blocks / heads).clamp(1, tiles.into()) as u32;
    let slices = tiles.div_ceil(tiles.div_ceil(slices));
    let flash = Box::new(Flash::new(*attention, variant, slices, gpu)?);
    let combine = Box::new(combine::Combine::new(*attention, slices)?);
    let last = attention.buffers()?.len() - 1;
    let mut buffers: Vec<_> = (0..last).map(BufferSlot::Argument).collect();
    buffers.extend([BufferSlot::Scratch(0), BufferSlot::Scratch(1)]);
    let scratch = combine.bytes().into();
    let combine_buffers =
        vec![BufferSlot::Scratch(0), BufferSlot::Scratch(1), BufferSlot::Argument(last)];
    let steps =
        vec![Step { kernel: flash, buffers }, Step { kernel: combine, buffers: combine_buffers }];
    Ok(Plan { arguments: attention.buffers()?, scratch, steps })
}
