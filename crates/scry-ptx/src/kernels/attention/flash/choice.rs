//! Chooses the variant of FlashAttention for a problem, where it supports it.

use super::super::shape::{Attention, Strides};
use super::super::{bf16x3, combine};
use super::variant::BiasForm;
use super::{Engine, Flash, FlashTile, Form, Output, Variant, sm80};
use crate::kernels::{GpuSpec, Place, Plan, PlanError, Step};
use crate::target::Target;
use crate::types::PtxType;

/// Returns the FlashAttention plan, or `None` if the problem is not supported.
pub(in super::super) fn plan(of: &Attention, machine: GpuSpec) -> Result<Option<Plan>, PlanError> {
    if of.keys == 0 || of.scale < f32::MIN_POSITIVE * 4.0 {
        return Ok(None);
    }
    let halves = of.element != PtxType::F32;
    if !machine.target.runs(Target::SM_80) || halves && !aligned(of) {
        return Ok(None);
    }
    match (machine.is_hopper(), halves) {
        (true, true) if uses_split_kv(of) => {
            split_kv_plan(of, machine, split_kv_tile(of)).map(Some)
        }
        (true, true) => unsplit_plan(of, for_16bit(of, tile(of, machine)), machine).map(Some),
        (true, false) => unsplit_plan(of, for_f32(of, part_tile(of, machine)), machine).map(Some),
        (false, true) => {
            let variant = for_sm80(of);
            let fits = sm80::shared_bytes(&variant) <= machine.shared_memory;
            fits.then(|| unsplit_plan(of, variant, machine)).transpose()
        }
        (false, false) => Ok(None),
    }
}

/// Returns the FlashAttention plan with a given tile.
pub(in super::super) fn plan_with(
    of: &Attention,
    tile: FlashTile,
    plain: bool,
    machine: GpuSpec,
) -> Result<Plan, PlanError> {
    if of.element == PtxType::F32 {
        return unsplit_plan(of, for_f32(of, tile), machine);
    }
    if uses_split_kv(of) {
        return split_kv_plan(of, machine, tile);
    }
    let chosen = for_16bit(of, tile);
    let form = if plain { Form::Plain } else { chosen.form };
    unsplit_plan(of, Variant { form, ..chosen }, machine)
}

/// Whether TMA can load tiles: columns and strides are multiples of 16 bytes, and within its
/// limits.
fn aligned(of: &Attention) -> bool {
    let Attention { batch, heads, kv_heads, queries, keys, .. } = *of;
    let (rows, others) = ([batch, heads, queries], [batch, kv_heads, keys]);
    let operands = [(of.q, rows), (of.k, others), (of.v, others), (of.out, rows)];
    of.head_dim.is_multiple_of(8)
        && operands.into_iter().all(|(Strides { batch, head, row }, counts)| {
            let fits = |stride: u64| stride > 0 && stride.is_multiple_of(8) && stride < 1 << 38;
            [batch, head, row].into_iter().zip(counts).all(|(s, count)| count == 1 || fits(s))
        })
}

/// Whether blocks of two consumers would not fill the GPU, so that smaller blocks are better.
fn underfills_gpu(of: &Attention, machine: GpuSpec) -> bool {
    let tiles = of.queries.div_ceil(2 * 64);
    let blocks = [of.batch, of.heads, tiles].map(u64::from).into_iter().product::<u64>();
    blocks < u64::from(machine.multiprocessors)
}

/// Chooses the tile for 16-bit operands. With short rows, the prologue and epilogue of a task cost
/// more than larger tiles save, and several small blocks per multiprocessor hide them.
fn tile(of: &Attention, machine: GpuSpec) -> FlashTile {
    let (underfills_gpu, short, unbiased) =
        (underfills_gpu(of, machine), of.keys <= 1024, of.bias.is_none());
    let (consumers, keys, resident) = match of.head_dim.next_multiple_of(64) {
        64 if short && unbiased && !of.causal => (1, 128, 2),
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
fn for_16bit(of: &Attention, tile: FlashTile) -> Variant {
    Variant {
        engine: Engine::Hopper,
        element: of.element,
        parts: 1,
        width: of.head_dim.next_multiple_of(64),
        tile,
        form: Form::Overlapped,
        causal: of.causal,
        bias: BiasForm::of(of),
        output: Output::Tiles,
    }
}

/// Chooses the tile for `f32`, the largest that fits in shared memory.
fn part_tile(of: &Attention, machine: GpuSpec) -> FlashTile {
    let underfills_gpu = underfills_gpu(of, machine);
    let (consumers, keys, stages) = match of.head_dim.next_multiple_of(64) {
        64 => (if underfills_gpu { 1 } else { 2 }, 64, 2),
        128 => (if underfills_gpu { 1 } else { 2 }, 64, 1),
        192 => (1, 32, 2),
        _ if of.bias.is_some() => (1, 16, 2),
        _ => (1, 32, 1),
    };
    FlashTile { consumers, keys, stages, resident: 1 }
}

/// Returns the variant for `f32`, as sums of three `bf16` terms.
fn for_f32(of: &Attention, tile: FlashTile) -> Variant {
    Variant {
        element: PtxType::Bf16,
        parts: 3,
        form: Form::Plain,
        output: Output::Rows,
        ..for_16bit(of, tile)
    }
}

/// Returns the variant for `mma.sync`.
fn for_sm80(of: &Attention) -> Variant {
    let width = of.head_dim.next_multiple_of(64).next_power_of_two();
    let (keys, resident) = match width {
        64 => (64, 3),
        128 => (64, 2),
        _ => (32, 1),
    };
    let tile = FlashTile { consumers: 1, keys, stages: 2, resident };
    Variant {
        engine: Engine::Ampere,
        width,
        form: Form::Plain,
        output: Output::Rows,
        ..for_16bit(of, tile)
    }
}

/// Returns a plan that reads all keys in one kernel, after splitting `f32` operands.
fn unsplit_plan(of: &Attention, variant: Variant, machine: GpuSpec) -> Result<Plan, PlanError> {
    let tiles = of.queries.div_ceil(64 * variant.tile.consumers);
    let flash = Box::new(Flash::new(*of, variant, tiles, machine)?);
    if variant.parts == 1 {
        return Ok(Plan::single(flash));
    }
    let mut plan = Plan { arguments: of.buffers()?, ..Plan::default() };
    for (nth, kernel) in bf16x3::all(of)?.into_iter().enumerate() {
        plan.scratch.push(kernel.bytes());
        let buffers = vec![Place::Argument(nth), Place::Scratch(nth)];
        plan.steps.push(Step { kernel: Box::new(kernel), buffers });
    }
    let mut buffers: Vec<_> = (0..3).map(Place::Scratch).collect();
    buffers.extend((3..plan.arguments.len()).map(Place::Argument));
    plan.steps.push(Step { kernel: flash, buffers });
    Ok(plan)
}

/// Whether to use split-KV decoding: few queries, so that those which share keys fit one tile, and
/// many keys.
fn uses_split_kv(of: &Attention) -> bool {
    let rows = u64::from(of.queries) * u64::from(of.group());
    !of.causal && rows <= 64 && of.keys >= 256
}

/// Chooses the tile for split_kv_plan, by its bytes in flight.
fn split_kv_tile(of: &Attention) -> FlashTile {
    let (keys, resident) = match of.head_dim.next_multiple_of(64) {
        64 => (128, if of.bias.is_none() { 2 } else { 1 }),
        128 => (128, 1),
        _ => (64, 1),
    };
    FlashTile { consumers: 1, keys, stages: 3, resident }
}

/// Returns a plan for split-KV decoding: keys are split over blocks, and the partial results
/// combined.
fn split_kv_plan(of: &Attention, machine: GpuSpec, tile: FlashTile) -> Result<Plan, PlanError> {
    let variant = Variant { form: Form::Plain, output: Output::Partial, ..for_16bit(of, tile) };
    let tiles = of.keys.div_ceil(tile.keys);
    let heads = u64::from(of.batch) * u64::from(of.kv_heads);
    let slots = u64::from(machine.multiprocessors * variant.tile.resident);
    let pieces = (slots / heads).clamp(1, tiles.into()) as u32;
    let pieces = tiles.div_ceil(tiles.div_ceil(pieces));
    let flash = Box::new(Flash::new(*of, variant, pieces, machine)?);
    let combine = Box::new(combine::Combine::new(*of, pieces)?);
    let last = of.buffers()?.len() - 1;
    let mut buffers: Vec<_> = (0..last).map(Place::Argument).collect();
    buffers.extend([Place::Scratch(0), Place::Scratch(1)]);
    let scratch = combine.bytes().into();
    let combined = vec![Place::Scratch(0), Place::Scratch(1), Place::Argument(last)];
    let steps = vec![Step { kernel: flash, buffers }, Step { kernel: combine, buffers: combined }];
    Ok(Plan { arguments: of.buffers()?, scratch, steps })
}
