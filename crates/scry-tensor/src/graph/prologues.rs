//! Fuses the maps before products with quantised weights into them, where kernels of the library
//! compute the same while they load activations: conversions of 16-bit floats and, with CUDA,
//! SwiGLU. (Kernels of other devices would compute it again for each row of the weights.)
//!
//! This is for few rows, which are multiplied with the weights as they are. Conversions change no
//! bits then. More rows are multiplied with weights that are rounded to the type of the
//! activations.

use scry_gpu::kir::BinaryOp;
use scry_kernels::Activation;

use super::Fusion;
use super::epilogues::{stripped, unified};
use super::group::Limits;
use super::grouped::{BufferId, Grouped, Kernel, Origin, Work};
use crate::dtype::DType;
use crate::expr::{Id, Map, Scalar};
use crate::op::{Library, QuantizedProduct};
use crate::shape::Layout;

/// The maximum number of rows that are multiplied with the weights as they are.
const MAX_ROWS: usize = 8;

/// What a product reads instead of the result of a map.
struct Prologue {
    product: QuantizedProduct,
    operand: (BufferId, Layout, DType),
}

/// Replaces maps and the products after them by products.
pub(crate) fn fuse(grouped: &mut Grouped, limits: Limits) {
    if limits.fusion != Fusion::Full {
        return;
    }
    let mut is_fused = vec![false; grouped.kernels.len()];
    for (position, is_fused) in is_fused.iter_mut().enumerate() {
        let Some(reader) = product_after(grouped, position) else { continue };
        let Some(prologue) = prologue(&grouped.kernels, [position, reader], limits) else {
            continue;
        };
        let read = prologue.operand.0;
        let mut between = grouped.kernels[position + 1..reader].iter();
        if between.any(|kernel| kernel.results().contains(&read)) {
            continue;
        }
        let nodes = [&grouped.kernels[position].nodes[..], &grouped.kernels[reader].nodes].concat();
        let kernel = &mut grouped.kernels[reader];
        kernel.nodes = nodes;
        if let Work::Library { library, operands, .. } = &mut kernel.work {
            *library = Library::QuantizedProduct(prologue.product);
            operands[0] = prologue.operand;
        }
        *is_fused = true;
    }
    let mut is_fused = is_fused.into_iter();
    grouped.kernels.retain(|_| !is_fused.next().unwrap_or(false));
}

/// Returns the product of few rows that alone reads the result of a kernel, as its activations.
fn product_after(grouped: &Grouped, position: usize) -> Option<usize> {
    let result = grouped.kernels[position].result;
    if grouped.buffers[result.index()].origin != Origin::Result {
        return None;
    }
    let reads = |kernel: &Kernel| kernel.operands().iter().filter(|it| **it == result).count();
    let later = position + 1..grouped.kernels.len();
    let mut readers = later.filter(|reader| reads(&grouped.kernels[*reader]) > 0);
    let (reader, None) = (readers.next()?, readers.next()) else { return None };
    let product = &grouped.kernels[reader];
    let Work::Library { library: Library::QuantizedProduct(_), operands, .. } = &product.work
    else {
        return None;
    };
    let (read, layout, dtype) = &operands[0];
    let rows: usize = layout.shape.iter().rev().skip(1).product();
    let fits = *read == result && *dtype == DType::F32 && reads(product) == 1 && rows <= MAX_ROWS;
    fits.then_some(reader)
}

/// Returns what replaces the result of a kernel as the activations of a product.
fn prologue(
    kernels: &[Kernel],
    [position, product]: [usize; 2],
    limits: Limits,
) -> Option<Prologue> {
    let kernel = &kernels[position];
    let Work::Map { map, operands, gathered: None, .. } = &kernel.work else { return None };
    let Work::Library { operands: factors, .. } = &kernels[product].work else { return None };
    let (_, activations, _) = &factors[0];
    let is_stored_as_is = kernel.value.as_ref().is_some_and(|(_, views)| views.is_empty());
    if map.output != DType::F32 {
        return None;
    }
    match &operands[..] {
        [(source, layout)] if is_conversion(map, limits) => {
            let is_whole = layout.is_contiguous() && layout.offset == 0;
            is_whole.then(|| Prologue {
                product: QuantizedProduct { is_wide: true, is_gated: false },
                operand: (*source, activations.clone(), map.operands[0]),
            })
        }
        [(first, _), (second, _)] if first == second && is_stored_as_is && limits.is_cuda => {
            let [gate, other] = gate_and_other(map)?;
            let layout = joined(&operands[gate].1, &operands[other].1)?;
            let is_whole = operands[gate].1.shape == activations.shape;
            if !is_whole {
                return None;
            }
            Some(Prologue {
                product: QuantizedProduct { is_wide: false, is_gated: true },
                operand: (*first, layout, DType::F32),
            })
        }
        _ => None,
    }
}

/// Returns whether a map converts 16-bit floats to `f32`, and nothing else.
fn is_conversion(map: &Map, limits: Limits) -> bool {
    let is_read = match map.operands[..] {
        [DType::F16] => limits.has_f16,
        [DType::BF16] => limits.has_bf16,
        _ => false,
    };
    is_read && matches!(map.scalars[..], [(Scalar::Load(0), _)])
}

/// Returns the operands of a map that computes SwiGLU.
fn gate_and_other(map: &Map) -> Option<[usize; 2]> {
    if map.operands[..] != [DType::F32; 2] {
        return None;
    }
    let loaded = |id: Id| match map.scalars[stripped(map, id, DType::F32).index()].0 {
        Scalar::Load(operand) => Some(operand as usize),
        _ => None,
    };
    let last = stripped(map, map.result, DType::F32);
    let Scalar::Binary(BinaryOp::Mul, a, b) = map.scalars[last.index()].0 else { return None };
    [[a, b], [b, a]].into_iter().find_map(|[gated, other]| {
        let gate = loaded(unified(Activation::Silu, map, gated, DType::F32)?)?;
        Some([gate, loaded(other)?])
    })
}

/// Returns the layout of rows with the elements of a gate and, after them, those of the others.
fn joined(gate: &Layout, other: &Layout) -> Option<Layout> {
    let (k, rank) = (*gate.shape.last()?, gate.shape.rank());
    let mut shape = gate.shape.to_vec();
    shape[rank - 1] = 2 * k;
    let joined = Layout::contiguous(shape.into());
    let fits = gate.strides[rank - 1] == 1
        && gate.offset == 0
        && other.offset == k as i64
        && gate.strides == other.strides
        && (0..rank)
            .all(|axis| gate.shape[axis] == 1 || gate.strides[axis] == joined.strides[axis]);
    fits.then_some(joined)
}
