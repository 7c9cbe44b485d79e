//! Buffers and tensor maps of operands and results.

use super::super::shape::{Attention, Strides};
use super::super::{bf16x3, combine};
use super::schedule::Schedule;
use super::variant::{Engine, Output, Variant};
use crate::kernels::{
    BufferAccess, BufferParameter, KernelInterface, Parameter, TensorMapElement, TensorMapSpec,
};
use crate::typed::hopper::Swizzle;
use crate::types::PtxType;

/// Returns the parameters of a launch.
pub(super) fn interface(of: &Attention, variant: &Variant, schedule: &Schedule) -> KernelInterface {
    let (buffers, mut parameters) = buffers(of, variant, schedule.pieces);
    if let Some(bias) = of.bias {
        parameters.push(Parameter::Pointer(3));
        parameters.extend(strides(bias.strides));
    }
    let column = of.bias.map_or(0, |bias| bias.column);
    let counts = [of.batch, of.heads, of.group(), of.queries, of.keys, of.head_dim, column];
    parameters.extend(counts.map(Parameter::U32));
    parameters.extend(schedule.numbers().map(Parameter::U32));
    parameters.push(Parameter::F32(of.scale * std::f32::consts::LOG2_E));
    KernelInterface { buffers, parameters }
}

/// Returns the buffers of a kernel, and the parameters that describe operands and results.
fn buffers(
    of: &Attention,
    variant: &Variant,
    pieces: u32,
) -> (Vec<BufferParameter>, Vec<Parameter>) {
    let mut buffers = of.buffers().expect("they were checked when the plan was made");
    if variant.parts > 1 {
        for (buffer, len) in buffers.iter_mut().zip(bf16x3::lens(of)) {
            (buffer.element, buffer.len) = (PtxType::Bf16, len);
        }
    }
    let mut parameters = operands(of, variant);
    let last = buffers.len() - 1;
    match variant.output {
        Output::Tiles => parameters.push(Parameter::Map(last, out_map(of, variant))),
        Output::Rows => {
            parameters.push(Parameter::Pointer(last));
            parameters.extend(strides(of.out));
        }
        Output::Partial => {
            buffers.pop();
            let lens = combine::lens(of, pieces);
            for (name, len) in ["sums", "extents"].into_iter().zip(lens) {
                parameters.push(Parameter::Pointer(buffers.len()));
                buffers.push(BufferParameter {
                    name,
                    access: BufferAccess::Write,
                    element: PtxType::F32,
                    len,
                });
            }
        }
    }
    (buffers, parameters)
}

/// Returns the parameters that describe queries, keys and values.
fn operands(of: &Attention, variant: &Variant) -> Vec<Parameter> {
    let maps = match (variant.engine, variant.parts) {
        (Engine::Ampere, _) => {
            let rows = [of.q, of.k, of.v].into_iter().enumerate();
            let one = |(nth, rows)| [Parameter::Pointer(nth)].into_iter().chain(strides(rows));
            return rows.flat_map(one).collect();
        }
        (Engine::Hopper, 1) => whole_maps(of, variant),
        (Engine::Hopper, _) => part_maps(of, variant),
    };
    maps.into_iter().enumerate().map(|(nth, map)| Parameter::Map(nth, map)).collect()
}

/// Returns batch, heads and rows of queries, and of keys and values.
fn counts(of: &Attention) -> [[u32; 3]; 2] {
    [[of.batch, of.heads, of.queries], [of.batch, of.kv_heads, of.keys]]
}

fn whole_maps(of: &Attention, variant: &Variant) -> [TensorMapSpec; 3] {
    let [rows, others] = counts(of);
    let map = |strides, counts, tile| operand(of.head_dim, variant.element, strides, counts, tile);
    let keys = variant.tile.keys;
    let queries = if variant.packed() { packed(of) } else { map(of.q, rows, 64) };
    [queries, map(of.k, others, keys), map(of.v, others, keys)]
}

/// Returns the tensor maps of split operands, which have no gaps, one term after the other.
fn part_maps(of: &Attention, variant: &Variant) -> [TensorMapSpec; 3] {
    let [rows, others] = counts(of);
    let keys = variant.tile.keys;
    [(rows, 64), (others, keys), (others, keys)].map(|([batch, heads, count], tile)| {
        let strides = Strides::packed(heads, count, of.head_dim.next_multiple_of(8));
        let counts = [variant.parts * batch, heads, count];
        operand(of.head_dim, PtxType::Bf16, strides, counts, tile)
    })
}

fn out_map(of: &Attention, variant: &Variant) -> TensorMapSpec {
    operand(of.head_dim, variant.element, of.out, counts(of)[0], 64)
}

/// Returns the tensor map of tiles of `rows` rows and 64 columns of a head.
fn operand(
    columns: u32,
    element: PtxType,
    strides: Strides,
    [batch, heads, rows]: [u32; 3],
    tile: u32,
) -> TensorMapSpec {
    let Strides { batch: over, head, row } = strides;
    TensorMapSpec {
        element: tensor_element(element),
        offset: 0,
        dims: [columns, rows, heads, batch].map(u64::from).into(),
        strides: [(row, rows), (head, heads), (over, batch)].map(distance).into(),
        tile: vec![64, tile, 1, 1],
        swizzle: Swizzle::B128,
    }
}

/// Returns the tensor map of the queries of all heads that share keys as one tile: heads innermost.
fn packed(of: &Attention) -> TensorMapSpec {
    let (group, Strides { batch, head, row }) = (of.group(), of.q);
    let dims = [of.head_dim, group, of.queries, of.kv_heads, of.batch];
    let apart = [
        (head, group),
        (row, of.queries),
        (head * u64::from(group), of.kv_heads),
        (batch, of.batch),
    ];
    TensorMapSpec {
        element: tensor_element(of.element),
        offset: 0,
        dims: dims.map(u64::from).into(),
        strides: apart.map(distance).into(),
        tile: vec![64, group, of.queries, 1, 1],
        swizzle: Swizzle::B128,
    }
}

/// Returns a stride in bytes. With a count of 1 any valid stride will do.
fn distance((stride, count): (u64, u32)) -> u64 {
    if count == 1 { 512 } else { 2 * stride }
}

fn tensor_element(element: PtxType) -> TensorMapElement {
    if element == PtxType::F16 { TensorMapElement::F16 } else { TensorMapElement::Bf16 }
}

/// Returns strides as parameters.
fn strides(of: Strides) -> [Parameter; 3] {
    [of.batch, of.head, of.row].map(Parameter::U64)
}
