//! Operations of the kernel library on tensors. Each family is a file with a [`Rule`].

use std::sync::Arc;

use scry_gpu::UntypedBuffer;
use scry_kernels::{Gemm, Kernels};

use super::attention::{Attend, Rotate};
use super::contraction::Contraction;
use super::convolution::{Convolve, Pooling};
use super::matmul::{self, FusedProduct, Matmul};
use super::pairwise::Pairwise;
use super::quantized::{Dequantise, QuantizedProduct, QuantizedRows};
use super::reduce::Reduce;
use super::rows::{Norm, Rows, TopK};
use super::rule::{Bound, Rule, Trivial};
use super::scatter::ScatterAdd;
use super::view::{View, run_view};
use crate::dtype::DType;
use crate::error::{Call, Result};
use crate::runtime::Runtime;
use crate::shape::{Layout, Shape, check_count};
use crate::stored::{Stored, check_device};

/// An operation of the kernel library.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Library {
    Reduce(Reduce),
    Matmul,
    /// A product with an epilogue, which only the pass `epilogues` of a graph makes.
    FusedProduct(FusedProduct),
    Contraction(Contraction),
    Dequantise(DType),
    QuantizedProduct(QuantizedProduct),
    QuantizedRows,
    Rows(Rows),
    Norm(Norm),
    TopK(TopK),
    Convolve(Convolve),
    Pooling(Pooling),
    Attend(Attend),
    Rotate(Rotate),
    Pairwise(Pairwise),
    ScatterAdd(ScatterAdd),
}

impl Library {
    fn with_rule<T>(&self, function: impl FnOnce(&dyn Rule) -> T) -> T {
        match self {
            Self::Reduce(it) => function(it),
            Self::Matmul => function(&Matmul),
            Self::FusedProduct(it) => function(it),
            Self::Contraction(it) => function(it),
            Self::Dequantise(dtype) => function(&Dequantise(*dtype)),
            Self::QuantizedProduct(it) => function(it),
            Self::QuantizedRows => function(&QuantizedRows),
            Self::Rows(it) => function(it),
            Self::Norm(it) => function(it),
            Self::TopK(it) => function(it),
            Self::Convolve(it) => function(it),
            Self::Pooling(it) => function(it),
            Self::Attend(it) => function(it),
            Self::Rotate(it) => function(it),
            Self::Pairwise(it) => function(it),
            Self::ScatterAdd(it) => function(it),
        }
    }

    pub(super) fn shape(&self, call: Call, first: DType, operands: &[&Shape]) -> Result<Shape> {
        self.with_rule(|rule| rule.shape(call, first, operands))
    }

    pub(super) fn dtype(&self, first: DType) -> DType {
        self.with_rule(|rule| rule.dtype(first))
    }

    pub(super) fn trivial(
        &self,
        dtype: DType,
        operands: &[&Shape],
        result: &Shape,
    ) -> Option<Trivial> {
        self.with_rule(|rule| rule.trivial(dtype, operands, result))
    }

    /// Returns the views that the operation has of an operand, one after the other.
    pub(crate) fn view(&self, operand: usize, shapes: &[&Shape]) -> Vec<View> {
        self.with_rule(|rule| rule.view(operand, shapes))
    }

    /// Returns whether the operation reads an operand with this layout, which has its view.
    pub(crate) fn accepts(
        &self,
        operand: usize,
        layout: &Layout,
        dtype: DType,
        alignment: u64,
    ) -> bool {
        self.with_rule(|rule| rule.accepts(operand, layout, dtype, alignment))
    }

    /// Returns whether the operation adds to the result, which must be 0 before it runs.
    pub(crate) fn accumulates(&self) -> bool {
        self.with_rule(|rule| rule.accumulates())
    }

    /// Prepares the operation. Operands have their view, with an accepted layout, and the result
    /// has elements. The buffer of the result may be longer.
    pub(crate) fn prepare(
        &self,
        library: &Kernels,
        operands: &[Bound<'_>],
        result: &UntypedBuffer,
    ) -> scry_gpu::Result<scry_kernels::Op> {
        self.with_rule(|rule| rule.prepare(library, operands, result))
    }

    /// Returns the product that the kernel library computes for operands with their views; `None`
    /// for other operations.
    pub(crate) fn gemm(&self, operands: [&Layout; 2], dtype: DType) -> Option<Gemm> {
        match self {
            Self::Matmul | Self::Contraction(_) => matmul::gemm(operands, dtype),
            Self::FusedProduct(product) => product.gemm(operands, dtype),
            _ => None,
        }
    }

    /// Returns the floating-point operations for these shapes.
    pub(crate) fn flops(&self, operands: &[&Shape], result: &Shape) -> u64 {
        self.with_rule(|rule| rule.flops(operands, result))
    }

    pub(crate) fn name(&self) -> &'static str {
        self.with_rule(|rule| rule.name())
    }

    /// Computes the result eagerly.
    pub(super) fn run(&self, call: Call, operands: &[&Stored], shape: Shape) -> Result<Stored> {
        let runtime = &operands[0].runtime;
        let dtype = self.dtype(operands[0].dtype);
        check_count(call, &shape, dtype)?;
        let bytes = packed_bytes(&shape, dtype);
        let result = runtime.allocate(bytes).map_err(|error| call.gpu(error))?;
        if bytes > 0 {
            let operands = self.arranged(call, runtime, operands)?;
            let parts: Vec<_> =
                operands.iter().map(|it| (&it.buffer, &it.layout, it.dtype)).collect();
            // New memory is 0, as operations that accumulate need it.
            for op in
                self.prepare_shards(call, (runtime, runtime.library()), &parts, (&result, &shape))?
            {
                op.run().map_err(|error| call.gpu(error))?;
            }
        }
        let layout = Layout::contiguous(shape);
        Ok(Stored { runtime: runtime.clone(), buffer: result, layout, dtype })
    }

    /// Returns the operands as the operation reads them, copied where it must be.
    fn arranged(
        &self,
        call: Call,
        runtime: &Arc<Runtime>,
        operands: &[&Stored],
    ) -> Result<Vec<Stored>> {
        let shapes: Vec<&Shape> = operands.iter().map(|it| it.shape()).collect();
        let alignment = runtime.device().info().binding_alignment;
        let arrange = |(n, operand): (usize, &&Stored)| {
            check_device(call, runtime, &operand.runtime)?;
            let mut view = (*operand).clone();
            for step in self.view(n, &shapes) {
                view = run_view(&step, call, &view, None)?;
            }
            let is_accepted = self.accepts(n, &view.layout, view.dtype, alignment);
            if is_accepted { Ok(view) } else { packed(call, &view) }
        };
        operands.iter().enumerate().map(arrange).collect()
    }
}

/// Returns the elements in row-major order from the start of their buffer.
fn packed(call: Call, x: &Stored) -> Result<Stored> {
    if x.is_packed() {
        return Ok(x.clone());
    }
    call.check_dtype(x.dtype, crate::dtype::ELEMENTS)?;
    x.copied(call)
}

/// Returns the bytes of a result, padded to whole words; more than any device has if they exceed
/// `usize`.
pub(crate) fn packed_bytes(shape: &Shape, dtype: DType) -> usize {
    const MOST: usize = usize::MAX / 4 * 4;
    let bytes = shape.count().and_then(|count| count.checked_mul(dtype.size()));
    bytes.and_then(|bytes| bytes.checked_next_multiple_of(4)).unwrap_or(MOST)
}
