//! Operations of the kernel library on tensors: how their operands must be stored, and their
//! launches.

use std::sync::Arc;

use scry_gpu::UntypedBuffer;

use super::matmul::{self, Product};
use super::reduce::Reduce;
use super::view::{View, run_view};
use crate::dtype::DType;
use crate::error::{Call, Result};
use crate::runtime::Runtime;
use crate::shape::{Layout, Shape};
use crate::stored::{Stored, check_device};

/// A result that needs no kernel of its operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trivial {
    /// One element, repeated: its bits in the type that kernels compute with.
    Fill(u32),
    /// The first operand, with the result's shape.
    Same,
}

/// An operation of the kernel library.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Library {
    /// A reduction over axes.
    Reduce(Reduce),
    /// A product of matrices, or of stacks of them.
    Matmul,
    /// Quantised weights as floats of a type.
    Dequantise(DType),
}

impl Library {
    pub(super) fn shape(&self, call: Call, first: DType, operands: &[&Shape]) -> Result<Shape> {
        match self {
            Self::Reduce(reduce) => reduce.shape(call, first, operands[0]),
            Self::Matmul => matmul::shape(call, operands[0], operands[1]),
            Self::Dequantise(_) => Ok(operands[0].clone()),
        }
    }

    pub(super) fn dtype(&self, first: DType) -> DType {
        match self {
            Self::Dequantise(dtype) => *dtype,
            _ => first,
        }
    }

    pub(super) fn trivial(&self, dtype: DType, operands: &[&Shape]) -> Option<Trivial> {
        let Self::Reduce(reduce) = self else { return None };
        if reduce.matrix(operands[0])[1].contains(&0) {
            return Some(Trivial::Fill(reduce.of_nothing.unwrap_or(0)));
        }
        (reduce.is_identity() && !dtype.is_quantized()).then_some(Trivial::Same)
    }

    /// Returns the view that the operation has of an operand: its number and order of axes.
    pub(crate) fn view(&self, operand: usize, shapes: &[&Shape]) -> Vec<View> {
        match self {
            Self::Reduce(reduce) => reduce.view().into_iter().collect(),
            Self::Matmul => matmul::views(operand, shapes),
            Self::Dequantise(_) => Vec::new(),
        }
    }

    /// Returns whether the operation reads an operand with this layout, which has its view.
    pub(crate) fn accepts(&self, layout: &Layout, dtype: DType, alignment: u64) -> bool {
        match self {
            Self::Matmul => matmul::accepts(layout, dtype, alignment),
            _ => layout.is_contiguous() && layout.offset == 0,
        }
    }

    /// Prepares the operation. Operands have their view, with an accepted layout, and the result
    /// has elements. The buffer of the result may be longer.
    pub(crate) fn prepare(
        &self,
        runtime: &Runtime,
        operands: &[(&UntypedBuffer, &Layout, DType)],
        result: &UntypedBuffer,
    ) -> scry_gpu::Result<scry_kernels::Op> {
        let (buffer, layout, dtype) = operands[0];
        match self {
            Self::Reduce(reduce) => {
                let columns = reduce.axes.iter().filter(|axis| **axis).count();
                let sizes = layout.shape.split_at(layout.shape.rank() - columns);
                let [rows, columns] = [sizes.0, sizes.1].map(|sizes| sizes.iter().product());
                let (x, out) =
                    (buffer.view_as(dtype.of_buffer())?, result.view_as(dtype.of_buffer())?);
                runtime.library().reduce_rows(reduce.reduction, &x, &out, rows, columns)
            }
            Self::Matmul => {
                let (other, other_layout, _) = operands[1];
                Product::new(layout, other_layout, dtype).prepare(runtime, [buffer, other], result)
            }
            Self::Dequantise(to) => {
                let format = dtype.block_format().unwrap_or(scry_kernels::BlockFormat::Q8_0);
                let blocks = buffer.view_as(scry_gpu::DType::U8)?;
                let count = layout.shape.count().unwrap_or(0);
                let out = result.view_as(to.of_buffer())?;
                runtime.library().dequantize(format, &blocks, &out, count)
            }
        }
    }

    /// Returns the floating-point operations for these shapes.
    pub(crate) fn flops(&self, operands: &[&Shape], result: &Shape) -> u64 {
        let count = |shape: &Shape| shape.count().unwrap_or(0) as u64;
        match self {
            Self::Matmul => 2 * count(result) * operands[0].last().copied().unwrap_or(1) as u64,
            Self::Reduce(_) | Self::Dequantise(_) => count(operands[0]),
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Reduce(_) => "reduce",
            Self::Matmul => "matmul",
            Self::Dequantise(_) => "dequantize",
        }
    }

    /// Computes the result at once.
    pub(super) fn run(&self, call: Call, operands: &[&Stored], shape: Shape) -> Result<Stored> {
        let runtime = &operands[0].runtime;
        let dtype = self.dtype(operands[0].dtype);
        let bytes = packed_bytes(&shape, dtype);
        let result =
            runtime.device().alloc_untyped(None, bytes).map_err(|error| call.gpu(error))?;
        if bytes > 0 {
            let operands = self.arranged(call, runtime, operands)?;
            let parts: Vec<_> =
                operands.iter().map(|it| (&it.buffer, &it.layout, it.dtype)).collect();
            let op = self.prepare(runtime, &parts, &result);
            op.and_then(|op| op.run()).map_err(|error| call.gpu(error))?;
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
            let is_accepted = self.accepts(&view.layout, view.dtype, alignment);
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
