//! Fuses the maps after products into them, where the kernel library has an epilogue for what they
//! compute: a factor, a bias of one element for each column, a residual, and an activation.
//!
//! Variants of the kernel library without epilogues are preferred to slower ones with them: a fused
//! product would save the transfers of its result, but be slower itself.
//!
//! Library kernels compute epilogues with the sums before these are rounded for storage, and some
//! functions by approximate instructions. Their results differ from those of separate kernels
//! within the bounds of [`Fusion::Full`].

use std::collections::HashMap;

use scry_gpu::kir::{BinaryOp, Type};
use scry_kernels::{Activation, Kernels};

use super::Fusion;
use super::group::Limits;
use super::grouped::{BufferId, Grouped, Kernel, Origin, Work};
use super::reason::Reason;
use crate::dtype::DType;
use crate::expr::{Expression, Id, Map, Scalar};
use crate::op::{FusedProduct, Library, Number};
use crate::ops::activations;
use crate::shape::Layout;

/// The most terms of a sum: the product, the bias and the residual.
const MAX_TERMS: usize = 3;

/// The fewest elements of a 16-bit result to which a kernel of its own adds a residual faster: with
/// a residual, products on tensor cores store by lanes, instead of whole tiles.
const MIN_SEPARATE_RESIDUAL: usize = 1 << 20;

/// Replaces products and the maps after them by products with epilogues.
pub(crate) fn fuse(grouped: &mut Grouped, limits: Limits, library: &Kernels) {
    if limits.fusion != Fusion::Full {
        return;
    }
    let mut fused = vec![false; grouped.kernels.len()];
    let mut variants = Variants { library, known: HashMap::new() };
    for position in 0..grouped.kernels.len() {
        let Some(product) = product_before(grouped, position, &fused) else { continue };
        match epilogue(grouped, product, position, (limits, &mut variants)) {
            Ok(kernel) => {
                grouped.kernels[position] = kernel;
                fused[product] = true;
            }
            Err(why) => grouped.kernels[product].reason = Reason::Product(why),
        }
    }
    let mut fused = fused.into_iter();
    grouped.kernels.retain(|_| !fused.next().unwrap_or(false));
}

/// Whether products with epilogues have the variants of those without: layers of a model have equal
/// ones, and to choose a variant takes longer than all else of this pass.
struct Variants<'l> {
    library: &'l Kernels,
    known: HashMap<(FusedProduct, [Layout; 2], DType), bool>,
}

impl Variants<'_> {
    fn are_kept(&mut self, product: FusedProduct, [a, b]: [&Layout; 2], dtype: DType) -> bool {
        let known = self.known.entry((product, [a.clone(), b.clone()], dtype));
        *known.or_insert_with(|| product.keeps_variant(self.library, [a, b], dtype))
    }
}

/// Returns the product whose result only a map reads.
fn product_before(grouped: &Grouped, position: usize, fused: &[bool]) -> Option<usize> {
    let Work::Map { operands, .. } = &grouped.kernels[position].work else { return None };
    let is_product = |kernel: &Kernel| {
        matches!(
            &kernel.work,
            Work::Library { library: Library::Matmul | Library::Contraction(_), .. }
        )
    };
    let reads = |kernel: &Kernel, buffer: BufferId| {
        kernel.operands().iter().filter(|operand| **operand == buffer).count()
    };
    let before = (0..position).rev().filter(|n| !fused[*n]);
    let mut products = before.filter(|n| is_product(&grouped.kernels[*n]));
    products.find(|n| {
        let result = grouped.kernels[*n].result;
        operands.iter().any(|(operand, _)| *operand == result)
            && grouped.buffers[result.index()].origin == Origin::Result
            && grouped.kernels.iter().map(|kernel| reads(kernel, result)).sum::<usize>() == 1
    })
}

/// Returns the kernel that computes a product and the map after it, or why there is none.
fn epilogue(
    grouped: &Grouped,
    product: usize,
    position: usize,
    (limits, variants): (Limits, &mut Variants<'_>),
) -> Result<Kernel, &'static str> {
    let (first, last) = (&grouped.kernels[product], &grouped.kernels[position]);
    let (
        Work::Library { operands: factors, flops, .. },
        Work::Map { map, operands, arguments, .. },
    ) = (&first.work, &last.work)
    else {
        return Err("it is not element-wise");
    };
    let dtype = factors[0].2;
    if map.output != dtype || map.operands.iter().any(|operand| *operand != dtype) {
        return Err("the types differ");
    }
    if last.value.as_ref().is_none_or(|(_, views)| !views.is_empty()) {
        return Err("it is stored as a view");
    }
    let (activation, sum) = activation(map, dtype);
    let is_slow = limits.is_cpu && !matches!(activation, Activation::None | Activation::Relu);
    if is_slow {
        return Err("the CPU device computes this activation faster in a kernel of its own");
    }
    let columns = factors[1].1.shape[2];
    let result = &grouped.buffers[last.result.index()];
    let mut new = FusedProduct {
        factor: Number::from(1.0),
        has_bias: false,
        has_residual: false,
        activation,
    };
    let (mut bias, mut residual, mut has_product) = (None, None, false);
    for term in terms(map, sum, dtype)? {
        let (operand, factor) = factor_and_operand(map, term, dtype, arguments)?;
        let (buffer, layout) = &operands[operand];
        let is_whole = layout.is_contiguous() && layout.offset == 0;
        let is_result = is_whole && grouped.buffers[buffer.index()].bytes == result.bytes;
        if *buffer == first.result {
            if !is_result || has_product {
                return Err("it is read in another order");
            }
            (has_product, new.factor) = (true, factor);
        } else if factor != Number::from(1.0) {
            return Err("an operand has a factor");
        } else if bias.is_none() && is_bias(layout, columns) {
            bias = Some((*buffer, layout.clone()));
        } else if residual.is_none()
            && is_result
            && is_replaceable(grouped, *buffer, last, position)
        {
            residual = Some((*buffer, layout.clone()));
        } else {
            return Err("an operand is neither a bias nor a residual that nothing else needs");
        }
    }
    if !has_product {
        return Err("it is not a sum that contains the matrix product");
    }
    let read: Vec<BufferId> = factors.iter().map(|(buffer, ..)| *buffer).collect();
    let between = &grouped.kernels[product + 1..position];
    if between.iter().flat_map(Kernel::results).any(|written| read.contains(&written)) {
        return Err("a state is written between them");
    }
    if let Some((residual, _)) = &residual {
        check_size_of_residual(result.bytes, dtype, limits)?;
        check_residual(*residual, &read, bias.as_ref().map(|(bias, _)| *bias))?;
    }
    (new.has_bias, new.has_residual) = (bias.is_some(), residual.is_some());
    if !variants.are_kept(new, [&factors[0].1, &factors[1].1], dtype) {
        return Err("the kernel library has a faster variant for the product alone");
    }
    let mut operands = factors.clone();
    operands.extend([bias, residual].into_iter().flatten().map(|(it, layout)| (it, layout, dtype)));
    let work = Work::Library { library: Library::FusedProduct(new), operands, flops: *flops };
    let nodes = [&first.nodes[..], &last.nodes].concat();
    Ok(Kernel { work, nodes, ..last.clone() })
}

/// Rejects a residual that is added faster after the product.
fn check_size_of_residual(bytes: usize, dtype: DType, limits: Limits) -> Result<(), &'static str> {
    let is_short = matches!(dtype, DType::F16 | DType::BF16);
    match limits.is_cuda && is_short && bytes / dtype.size() >= MIN_SEPARATE_RESIDUAL {
        true => Err("a large residual is added faster by a kernel of its own"),
        false => Ok(()),
    }
}

/// Rejects a residual in whose place the result would overwrite what other rows still read.
fn check_residual(
    residual: BufferId,
    factors: &[BufferId],
    bias: Option<BufferId>,
) -> Result<(), &'static str> {
    if factors.contains(&residual) {
        return Err("the residual is an operand of the product");
    }
    if bias == Some(residual) {
        return Err("the bias is a part of the residual");
    }
    Ok(())
}

/// Returns whether a layout repeats a row of the columns' elements, which may be several axes.
fn is_bias(layout: &Layout, columns: usize) -> bool {
    let rank = layout.shape.rank();
    let product = |axes: std::ops::Range<usize>| layout.shape[axes].iter().product::<usize>();
    let Some(split) = (0..rank).rfind(|split| product(*split..rank) == columns) else {
        return false;
    };
    let (shape, strides) = (layout.shape[split..].to_vec(), layout.strides[split..].to_vec());
    let row = Layout { shape: shape.into(), strides, offset: 0 };
    let mut others = layout.shape[..split].iter().zip(&layout.strides[..split]);
    row.is_contiguous()
        && layout.offset == 0
        && product(0..split) > 1
        && others.all(|(size, stride)| *size == 1 || *stride == 0)
}

/// Returns whether the result of a kernel can replace an operand that no later kernel reads.
fn is_replaceable(grouped: &Grouped, buffer: BufferId, kernel: &Kernel, position: usize) -> bool {
    let is_result = |id: BufferId| grouped.buffers[id.index()].origin == Origin::Result;
    let later = &grouped.kernels[position + 1..];
    is_result(buffer)
        && is_result(kernel.result)
        && !later.iter().any(|kernel| kernel.operands().contains(&buffer))
}

/// Returns the activation that is computed last, and its operand.
fn activation(map: &Map, dtype: DType) -> (Activation, Id) {
    let last = stripped(map, map.result, dtype);
    let all = activations().into_iter();
    let mut found = all.filter_map(|(it, _)| Some((it, unified(it, map, last, dtype)?)));
    found.next().unwrap_or((Activation::None, last))
}

/// Returns the operand of a step that computes an activation; `None` if it does not.
pub(super) fn unified(activation: Activation, map: &Map, id: Id, dtype: DType) -> Option<Id> {
    let (_, function) = activations().into_iter().find(|(it, _)| *it == activation)?;
    let mut e = Expression::default();
    let x = e.operand(DType::F32);
    let result = function(&mut e, x);
    let template = e.finish(result, DType::F32);
    let mut operand = None;
    let is_equal = unify(&template, template.result, (map, dtype), id, &mut operand);
    operand.filter(|_| is_equal)
}

/// Returns the step without the roundings to the product's type between operations. A rounding to
/// another type is a conversion of the program, which no epilogue computes.
pub(super) fn stripped(map: &Map, mut id: Id, dtype: DType) -> Id {
    loop {
        id = match map.scalars[id.index()].0 {
            Scalar::Opaque(inner) => inner,
            Scalar::Round(to, inner) if to == dtype => inner,
            _ => return id,
        };
    }
}

/// Returns whether a step is what a template computes of its operand, which is returned, too.
fn unify(
    template: &Map,
    of: Id,
    (map, dtype): (&Map, DType),
    id: Id,
    operand: &mut Option<Id>,
) -> bool {
    let id = stripped(map, id, dtype);
    let (wanted, ty) = template.scalars[of.index()];
    let (found, found_ty) = map.scalars[id.index()];
    if let Scalar::Load(_) = wanted {
        return found_ty == Type::F32 && *operand.get_or_insert(id) == id;
    }
    let mut same = |a: Id, b: Id| unify(template, a, (map, dtype), b, operand);
    ty == found_ty
        && match (wanted, found) {
            (Scalar::Constant(a), Scalar::Constant(b)) => a == b,
            (Scalar::Unary(op, a), Scalar::Unary(other, b)) => op == other && same(a, b),
            (Scalar::Binary(op, a, b), Scalar::Binary(other, c, d)) => {
                op == other && same(a, c) && same(b, d)
            }
            (Scalar::Select(a, b, c), Scalar::Select(d, e, f)) => {
                same(a, d) && same(b, e) && same(c, f)
            }
            _ => false,
        }
}

/// Returns the terms of a sum.
fn terms(map: &Map, sum: Id, dtype: DType) -> Result<Vec<Id>, &'static str> {
    let (mut pending, mut terms) = (vec![sum], Vec::new());
    while let Some(id) = pending.pop() {
        let id = stripped(map, id, dtype);
        match map.scalars[id.index()].0 {
            Scalar::Binary(BinaryOp::Add, a, b) if map.scalars[id.index()].1 == Type::F32 => {
                pending.extend([b, a]);
            }
            _ => terms.push(id),
        }
        if terms.len() + pending.len() > MAX_TERMS {
            return Err("the sum has more terms than an epilogue");
        }
    }
    Ok(terms)
}

/// Returns the operand that a term loads, and the number that it is multiplied with.
fn factor_and_operand(
    map: &Map,
    term: Id,
    dtype: DType,
    arguments: &[u32],
) -> Result<(usize, Number), &'static str> {
    const WHY: &str = "no epilogue computes it";
    let of = |id: Id| map.scalars[stripped(map, id, dtype).index()].0;
    let (load, factor) = match of(term) {
        Scalar::Binary(BinaryOp::Mul, a, b) => match (of(a), of(b)) {
            (load @ Scalar::Load(_), Scalar::Argument(n))
            | (Scalar::Argument(n), load @ Scalar::Load(_)) => {
                (load, f32::from_bits(arguments[n as usize]))
            }
            _ => return Err(WHY),
        },
        load => (load, 1.0),
    };
    let Scalar::Load(operand) = load else { return Err(WHY) };
    Ok((operand as usize, Number::from(factor)))
}
