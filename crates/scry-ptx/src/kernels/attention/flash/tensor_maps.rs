//! The launch interface: buffers, tensor maps and parameters.

use super::super::shape::{Attention, Strides};
use super::super::{bf16x3, combine};
use super::schedule::Schedule;
use super::variant::{Engine, Output, Variant};
use crate::kernels::{
    BufferAccess, BufferParameter, KernelInterface, Parameter, TensorMapElement, TensorMapSpec,
};
use crate::typed::hopper::Swizzle;
use crate::types::PtxType;

/// Returns the buffers and parameters of a launch, in the order of [`Params`](super::Params).
pub(super) fn interface(
    attention: &Attention,
    variant: &Variant,
    schedule: &Schedule,
) -> KernelInterface {
    let (buffers, mut parameters) = buffers(attention, variant, schedule.tasks_per_head);
    if let Some(bias) = attention.bias {
        parameters.push(Parameter::Pointer(3));
        parameters.extend(stride_parameters(bias.strides));
    }
    let bias_column_stride = attention.bias.map_or(0, |bias| bias.column_stride);
    let counts = [
        attention.batch,
        attention.heads,
        attention.group_size(),
        attention.queries,
        attention.keys,
        attention.head_dim,
        bias_column_stride,
    ];
    parameters.extend(counts.map(Parameter::U32));
    parameters.extend(schedule.parameter_values().map(Parameter::U32));
    parameters.push(Parameter::F32(attention.scale * std::f32::consts::LOG2_E));
    KernelInterface { buffers, parameters }
}

/// Returns the buffers of a kernel, and the parameters that describe operands and results.
fn buffers(
    attention: &Attention,
    variant: &Variant,
    tasks_per_head: u32,
) -> (Vec<BufferParameter>, Vec<Parameter>) {
    let mut buffers = attention.buffers().expect("they were checked when the plan was made");
    if variant.terms > 1 {
        for (buffer, len) in buffers.iter_mut().zip(bf16x3::split_lens(attention)) {
            (buffer.element, buffer.len) = (PtxType::Bf16, len);
        }
    }
    let mut parameters = operand_parameters(attention, variant);
    let last = buffers.len() - 1;
    match variant.output {
        Output::Tiles => parameters.push(Parameter::TensorMap(last, out_map(attention, variant))),
        Output::Rows => {
            parameters.push(Parameter::Pointer(last));
            parameters.extend(stride_parameters(attention.out));
        }
        Output::Partial => {
            buffers.pop();
            let partial_lens = combine::partial_lens(attention, tasks_per_head);
            for (name, len) in ["accumulators", "stats"].into_iter().zip(partial_lens) {
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
fn operand_parameters(attention: &Attention, variant: &Variant) -> Vec<Parameter> {
    let maps = match (variant.engine, variant.terms) {
        (Engine::Ampere, _) => {
            let operands = [attention.q, attention.k, attention.v].into_iter().enumerate();
            let parameters = |(nth, strides)| {
                [Parameter::Pointer(nth)].into_iter().chain(stride_parameters(strides))
            };
            return operands.flat_map(parameters).collect();
        }
        (Engine::Hopper, 1) => unsplit_maps(attention, variant),
        (Engine::Hopper, _) => split_maps(attention, variant),
    };
    maps.into_iter().enumerate().map(|(nth, map)| Parameter::TensorMap(nth, map)).collect()
}

/// Returns batch, heads and rows of queries, and of keys and values.
fn counts(attention: &Attention) -> [[u32; 3]; 2] {
    [
        [attention.batch, attention.heads, attention.queries],
        [attention.batch, attention.kv_heads, attention.keys],
    ]
}

/// Returns the tensor maps of operands that have one term.
fn unsplit_maps(attention: &Attention, variant: &Variant) -> [TensorMapSpec; 3] {
    let [q_counts, kv_counts] = counts(attention);
    let map = |strides, counts, tile| {
        operand_map(attention.head_dim, variant.element, strides, counts, tile)
    };
    let keys = variant.tile.keys;
    let queries = if variant.packs_heads() {
        packed_query_map(attention)
    } else {
        map(attention.q, q_counts, 64)
    };
    [queries, map(attention.k, kv_counts, keys), map(attention.v, kv_counts, keys)]
}

/// Returns the tensor maps of split operands. They have no gaps; the terms of an operand are stored
/// one after the other, as if they were further batch entries.
fn split_maps(attention: &Attention, variant: &Variant) -> [TensorMapSpec; 3] {
    let [q_counts, kv_counts] = counts(attention);
    let keys = variant.tile.keys;
    [(q_counts, 64), (kv_counts, keys), (kv_counts, keys)].map(|([batch, heads, count], tile)| {
        let strides = Strides::packed(heads, count, attention.head_dim.next_multiple_of(8));
        let counts = [variant.terms * batch, heads, count];
        operand_map(attention.head_dim, PtxType::Bf16, strides, counts, tile)
    })
}

fn out_map(attention: &Attention, variant: &Variant) -> TensorMapSpec {
    operand_map(attention.head_dim, variant.element, attention.out, counts(attention)[0], 64)
}

/// Returns the tensor map of tiles of `tile` rows and 64 columns of a head.
fn operand_map(
    columns: u32,
    element: PtxType,
    strides: Strides,
    [batch, heads, rows]: [u32; 3],
    tile: u32,
) -> TensorMapSpec {
    let Strides { batch: batch_stride, head, row } = strides;
    TensorMapSpec {
        element: tensor_element(element),
        offset: 0,
        dims: [columns, rows, heads, batch].map(u64::from).into(),
        strides: [(row, rows), (head, heads), (batch_stride, batch)].map(stride_bytes).into(),
        tile: vec![64, tile, 1, 1],
        swizzle: Swizzle::B128,
    }
}

/// Returns the tensor map whose tile holds the queries of all heads that share keys: the rows of a
/// tile are all heads of the first query, then of the second one, and so on.
fn packed_query_map(attention: &Attention) -> TensorMapSpec {
    let (group, Strides { batch, head, row }) = (attention.group_size(), attention.q);
    let dims = [attention.head_dim, group, attention.queries, attention.kv_heads, attention.batch];
    let strides = [
        (head, group),
        (row, attention.queries),
        (head * u64::from(group), attention.kv_heads),
        (batch, attention.batch),
    ];
    TensorMapSpec {
        element: tensor_element(attention.element),
        offset: 0,
        dims: dims.map(u64::from).into(),
        strides: strides.map(stride_bytes).into(),
        tile: vec![64, group, attention.queries, 1, 1],
        swizzle: Swizzle::B128,
    }
}

/// Returns a stride in bytes. With a count of 1 the stride is unused, and any valid one will do.
fn stride_bytes((stride, count): (u64, u32)) -> u64 {
    if count == 1 { 512 } else { 2 * stride }
}

fn tensor_element(element: PtxType) -> TensorMapElement {
    if element == PtxType::F16 { TensorMapElement::F16 } else { TensorMapElement::Bf16 }
}

/// Returns strides as parameters.
fn stride_parameters(strides: Strides) -> [Parameter; 3] {
    [strides.batch, strides.head, strides.row].map(Parameter::U64)
}
