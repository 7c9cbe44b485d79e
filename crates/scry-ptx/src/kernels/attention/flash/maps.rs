//! Whether the flash form suits what is computed, which variant, and where operands lie.

use super::super::shape::{Attention, Strides};
use super::super::{combine, split};
use super::{Flash, Form, Output, Tile, Variant, params};
use crate::kernels::{
    Access, Buffer, KernelError, Machine, Parameter, Place, Plan, Step, TensorElement, TensorMap,
};
use crate::target::Target;
use crate::typed::hopper::Swizzle;
use crate::types::PtxType;

/// The flash form of what is computed, or none if that does not suit.
pub(in super::super) fn plan(
    of: &Attention,
    machine: Machine,
) -> Result<Option<Plan>, KernelError> {
    if !machine.target.runs(Target::SM_90A) || of.keys == 0 || of.scale < f32::MIN_POSITIVE * 4.0 {
        return Ok(None);
    }
    if of.element == PtxType::F32 {
        return whole(of, in_parts(of)).map(Some);
    }
    if !(aligned(of) && of.head_dim.is_multiple_of(8)) {
        return Ok(None);
    }
    if let Some(plan) = decoding(of, machine)? {
        return Ok(Some(plan));
    }
    whole(of, halves(of)).map(Some)
}

/// The flash form with a tile of one's own choice.
pub(in super::super) fn plan_with(
    of: &Attention,
    tile: Tile,
    plain: bool,
) -> Result<Plan, KernelError> {
    let chosen = if of.element == PtxType::F32 { in_parts(of) } else { halves(of) };
    let form = if plain { Form::Plain } else { chosen.form };
    whole(of, Variant { tile, form, ..chosen })
}

/// Whether tiles can be copied: distances are multiples of 16 bytes, and not too great.
fn aligned(of: &Attention) -> bool {
    let Attention { batch, heads, kv_heads, queries, keys, .. } = *of;
    let (rows, others) = ([batch, heads, queries], [batch, kv_heads, keys]);
    let operands = [(of.q, rows), (of.k, others), (of.v, others), (of.out, rows)];
    operands.into_iter().all(|(Strides { batch, head, row }, counts)| {
        let fits = |stride: u64| stride > 0 && stride.is_multiple_of(8) && stride < 1 << 38;
        [batch, head, row].into_iter().zip(counts).all(|(s, count)| count == 1 || fits(s))
    })
}

/// A variant for halves.
fn halves(of: &Attention) -> Variant {
    let width = of.head_dim.next_multiple_of(64);
    let (consumers, keys) = match width {
        64 if of.bias.is_none() => (3, 128),
        64 => (2, 128),
        128 => (2, 128),
        192 => (2, 96),
        _ => (2, 80),
    };
    Variant {
        element: of.element,
        parts: 1,
        width,
        tile: Tile { consumers, keys, stages: 2 },
        form: Form::Overlapped,
        causal: of.causal,
        bias: of.bias.map(|bias| bias.element),
        output: Output::Tiles,
    }
}

/// A variant for binary32, as sums of three bfloat16.
fn in_parts(of: &Attention) -> Variant {
    let width = of.head_dim.next_multiple_of(64);
    let (consumers, keys, stages) = match width {
        64 => (2, 64, 2),
        128 => (2, 64, 1),
        192 => (1, 32, 2),
        _ => (1, 32, 1),
    };
    Variant {
        element: PtxType::Bf16,
        parts: 3,
        tile: Tile { consumers, keys, stages },
        form: Form::Plain,
        output: Output::Rows,
        ..halves(of)
    }
}

/// A plan that sees all keys in one kernel, after binary32 has been taken apart.
fn whole(of: &Attention, variant: Variant) -> Result<Plan, KernelError> {
    let tiles = of.queries.div_ceil(64 * variant.tile.consumers);
    let flash = Box::new(Flash::new(*of, variant, tiles)?);
    if variant.parts == 1 {
        return Ok(Plan::single(flash));
    }
    let mut plan = Plan { arguments: of.buffers()?, ..Plan::default() };
    for (nth, kernel) in split::all(of)?.into_iter().enumerate() {
        plan.scratch.push(kernel.bytes());
        let buffers = vec![Place::Argument(nth), Place::Scratch(nth)];
        plan.steps.push(Step { kernel: Box::new(kernel), buffers });
    }
    let mut buffers: Vec<_> = (0..3).map(Place::Scratch).collect();
    buffers.extend((3..plan.arguments.len()).map(Place::Argument));
    plan.steps.push(Step { kernel: flash, buffers });
    Ok(plan)
}

/// A plan for so few queries that those which share keys fit one tile: keys are split among
/// blocks.
fn decoding(of: &Attention, machine: Machine) -> Result<Option<Plan>, KernelError> {
    let rows = u64::from(of.queries) * u64::from(of.group());
    if of.causal || rows > 64 || of.keys < 256 {
        return Ok(None);
    }
    let width = of.head_dim.next_multiple_of(64);
    let tile = Tile { consumers: 1, keys: if width == 64 { 128 } else { 64 }, stages: 3 };
    let variant = Variant { tile, form: Form::Plain, output: Output::Partial, ..halves(of) };
    let tiles = of.keys.div_ceil(tile.keys);
    let heads = u64::from(of.batch) * u64::from(of.kv_heads);
    let slots = u64::from(machine.multiprocessors * variant.resident());
    let pieces = (slots / heads).clamp(1, tiles.into()) as u32;
    let pieces = tiles.div_ceil(tiles.div_ceil(pieces));
    let flash = Box::new(Flash::new(*of, variant, pieces)?);
    let combine = Box::new(combine::Combine::new(*of, pieces)?);
    let last = of.buffers()?.len() - 1;
    let mut buffers: Vec<_> = (0..last).map(Place::Argument).collect();
    buffers.extend([Place::Scratch(0), Place::Scratch(1)]);
    let scratch = combine.bytes().into();
    let combined = vec![Place::Scratch(0), Place::Scratch(1), Place::Argument(last)];
    let steps = vec![Step { kernel: flash, buffers }, Step { kernel: combine, buffers: combined }];
    Ok(Some(Plan { arguments: of.buffers()?, scratch, steps }))
}

/// The buffers of a kernel, and the parameters that say where operands and results lie.
pub(super) fn buffers(
    of: &Attention,
    variant: &Variant,
    pieces: u32,
) -> (Vec<Buffer>, Vec<Parameter>) {
    let mut buffers = of.buffers().expect("they were checked when the plan was made");
    let maps = if variant.parts == 1 { whole_maps(of, variant) } else { part_maps(of, variant) };
    if variant.parts > 1 {
        for (buffer, len) in buffers.iter_mut().zip(split::lens(of)) {
            (buffer.element, buffer.len) = (PtxType::Bf16, len);
        }
    }
    let mut parameters: Vec<_> =
        maps.into_iter().enumerate().map(|(nth, map)| Parameter::Map(nth, map)).collect();
    let last = buffers.len() - 1;
    match variant.output {
        Output::Tiles => parameters.push(Parameter::Map(last, out_map(of, variant))),
        Output::Rows => {
            parameters.push(Parameter::Pointer(last));
            parameters.extend(params::strides(of.out));
        }
        Output::Partial => {
            buffers.pop();
            let lens = combine::lens(of, pieces);
            for (name, len) in ["sums", "extents"].into_iter().zip(lens) {
                parameters.push(Parameter::Pointer(buffers.len()));
                buffers.push(Buffer { name, access: Access::Write, element: PtxType::F32, len });
            }
        }
    }
    (buffers, parameters)
}

/// Dimensions of queries, and of keys and values: batch, heads, rows.
fn counts(of: &Attention) -> [[u32; 3]; 2] {
    [[of.batch, of.heads, of.queries], [of.batch, of.kv_heads, of.keys]]
}

fn whole_maps(of: &Attention, variant: &Variant) -> [TensorMap; 3] {
    let [rows, others] = counts(of);
    let map = |strides, counts, tile| operand(of.head_dim, variant.element, strides, counts, tile);
    let keys = variant.tile.keys;
    let queries = if variant.packed() { packed(of) } else { map(of.q, rows, 64) };
    [queries, map(of.k, others, keys), map(of.v, others, keys)]
}

/// Operands in parts lie without gaps, one part of all after the other.
fn part_maps(of: &Attention, variant: &Variant) -> [TensorMap; 3] {
    let [rows, others] = counts(of);
    let keys = variant.tile.keys;
    [(rows, 64), (others, keys), (others, keys)].map(|([batch, heads, count], tile)| {
        let strides = Strides::packed(heads, count, of.head_dim.next_multiple_of(8));
        let counts = [variant.parts * batch, heads, count];
        operand(of.head_dim, PtxType::Bf16, strides, counts, tile)
    })
}

fn out_map(of: &Attention, variant: &Variant) -> TensorMap {
    operand(of.head_dim, variant.element, of.out, counts(of)[0], 64)
}

/// Tiles of so many rows and 64 columns of a head.
fn operand(
    columns: u32,
    element: PtxType,
    strides: Strides,
    [batch, heads, rows]: [u32; 3],
    tile: u32,
) -> TensorMap {
    let Strides { batch: over, head, row } = strides;
    TensorMap {
        element: tensor_element(element),
        offset: 0,
        dims: [columns, rows, heads, batch].map(u64::from).into(),
        strides: [(row, rows), (head, heads), (over, batch)].map(distance).into(),
        tile: vec![64, tile, 1, 1],
        swizzle: Swizzle::B128,
    }
}

/// The queries of all heads that share keys as one tile: heads innermost.
fn packed(of: &Attention) -> TensorMap {
    let (group, Strides { batch, head, row }) = (of.group(), of.q);
    let dims = [of.head_dim, group, of.queries, of.kv_heads, of.batch];
    let apart = [
        (head, group),
        (row, of.queries),
        (head * u64::from(group), of.kv_heads),
        (batch, of.batch),
    ];
    TensorMap {
        element: tensor_element(of.element),
        offset: 0,
        dims: dims.map(u64::from).into(),
        strides: apart.map(distance).into(),
        tile: vec![64, group, of.queries, 1, 1],
        swizzle: Swizzle::B128,
    }
}

/// Bytes from one to the next. Where there is only one, any distance that is allowed.
fn distance((stride, count): (u64, u32)) -> u64 {
    if count == 1 { 512 } else { 2 * stride }
}

fn tensor_element(element: PtxType) -> TensorElement {
    if element == PtxType::F16 { TensorElement::F16 } else { TensorElement::Bf16 }
}
