//! What the rules of operations of the kernel library have in common: how their operands must be
//! stored, and their launches.

use scry_gpu::UntypedBuffer;
use scry_kernels::Kernels;

use super::view::View;
use crate::dtype::DType;
use crate::error::{Call, Result};
use crate::shape::{Layout, Shape};

/// A result that needs no kernel of its operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trivial {
    /// One element, repeated: its bits in the type that kernels compute with.
    Fill(u32),
    /// The first operand, with the result's shape.
    Same,
}

/// An operand with its view: the buffer, the layout and the element type.
pub(crate) type Bound<'b> = (&'b UntypedBuffer, &'b Layout, DType);

/// The rules of an operation of the kernel library.
pub(super) trait Rule {
    /// Returns the name in reports of plans.
    fn name(&self) -> &'static str;

    /// Returns the shape of the result. The first operand has elements of type `first`.
    fn shape(&self, call: Call, first: DType, operands: &[&Shape]) -> Result<Shape>;

    /// Returns the element type of the result.
    fn dtype(&self, first: DType) -> DType {
        first
    }

    /// Returns the result if the shapes alone decide it.
    fn trivial(&self, dtype: DType, operands: &[&Shape], result: &Shape) -> Option<Trivial> {
        let _ = dtype;
        let is_sum_of_nothing =
            operands.iter().any(|shape| shape.contains(&0)) && !result.contains(&0);
        is_sum_of_nothing.then_some(Trivial::Fill(0))
    }

    /// Returns the views that the operation has of an operand, one after the other.
    fn view(&self, operand: usize, shapes: &[&Shape]) -> Vec<View> {
        let _ = (operand, shapes);
        Vec::new()
    }

    /// Returns whether the operation reads an operand with this layout, which has its view.
    fn accepts(&self, operand: usize, layout: &Layout, dtype: DType, alignment: u64) -> bool {
        let _ = (operand, dtype, alignment);
        layout.is_contiguous() && layout.offset == 0
    }

    /// Returns whether the operation adds to the result, which must be 0 before it runs.
    fn accumulates(&self) -> bool {
        false
    }

    /// Prepares the operation. Operands have their view, with an accepted layout, and the result
    /// has elements. The buffer of the result may be longer.
    fn prepare(
        &self,
        library: &Kernels,
        operands: &[Bound<'_>],
        result: &UntypedBuffer,
    ) -> scry_gpu::Result<scry_kernels::Op>;

    /// Returns the floating-point operations for these shapes.
    fn flops(&self, operands: &[&Shape], result: &Shape) -> u64 {
        let _ = result;
        count(operands[0])
    }
}

/// Returns the number of elements, for reports.
pub(super) fn count(shape: &Shape) -> u64 {
    shape.count().unwrap_or(0) as u64
}

/// Returns the buffer with the type of its elements.
pub(super) fn typed(bound: &Bound<'_>) -> scry_gpu::Result<UntypedBuffer> {
    bound.0.view_as(bound.2.of_buffer())
}

/// Returns the numbers of rows and columns of elements whose last axis is the rows'.
pub(super) fn rows_and_columns(shape: &Shape) -> [usize; 2] {
    let columns = shape.last().copied().unwrap_or(1);
    [shape.count().unwrap_or(0) / columns.max(1), columns]
}

/// A number that is part of an operation, by its bits, so that equal operations are one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Number(u32);

impl From<f32> for Number {
    fn from(value: f32) -> Self {
        Self(value.to_bits())
    }
}

impl Number {
    pub(crate) fn get(self) -> f32 {
        f32::from_bits(self.0)
    }
}
