//! Products of tensors that sum over common axes: products of stacks of matrices, whose axes are
//! several axes of the operands.

use scry_gpu::UntypedBuffer;
use scry_kernels::Kernels;

use super::matmul;
use super::rule::{Bound, Rule, Trivial, count};
use super::view::View;
use crate::dtype::DType;
use crate::error::{Call, Result};
use crate::shape::{Layout, Shape};

/// The roles of the axes of two operands. The result has the batch, the rows, and the columns.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Contraction {
    /// Axes of both operands that the result has.
    pub(crate) batch: [Vec<usize>; 2],
    /// Axes of the first operand that the result has.
    pub(crate) rows: Vec<usize>,
    /// Axes of the second operand that the result has.
    pub(crate) columns: Vec<usize>,
    /// Axes of both operands that are summed over.
    pub(crate) summed: [Vec<usize>; 2],
}

fn sizes(shape: &Shape, axes: &[usize]) -> Vec<usize> {
    axes.iter().map(|axis| shape[*axis]).collect()
}

impl Rule for Contraction {
    fn name(&self) -> &'static str {
        "matmul"
    }

    fn shape(&self, call: Call, _: DType, operands: &[&Shape]) -> Result<Shape> {
        let (a, b) = (operands[0], operands[1]);
        let of = |axes: &[Vec<usize>; 2]| [sizes(a, &axes[0]), sizes(b, &axes[1])];
        let ([batch, other_batch], [summed, other_summed]) = (of(&self.batch), of(&self.summed));
        if batch != other_batch || summed != other_summed {
            let problem = format!("axes of {a} and {b} with the same letter have different sizes");
            return Err(call.shape_error(&[a, b], problem, "check the letters and the shapes"));
        }
        Ok([batch, sizes(a, &self.rows), sizes(b, &self.columns)].concat().into())
    }

    /// The kernel library computes products without columns.
    fn trivial(&self, _: DType, _: &[&Shape], _: &Shape) -> Option<Trivial> {
        None
    }

    fn view(&self, operand: usize, shapes: &[&Shape]) -> Vec<View> {
        let groups = match operand {
            0 => [&self.batch[0], &self.rows, &self.summed[0]],
            _ => [&self.batch[1], &self.summed[1], &self.columns],
        };
        let order: Vec<usize> = groups.iter().flat_map(|axes| axes.iter().copied()).collect();
        let shape = shapes[operand];
        let flat = groups.map(|axes| sizes(shape, axes).iter().product::<usize>());
        let mut views = Vec::new();
        if !order.is_sorted() {
            views.push(View::Permute(order));
        }
        views.push(View::Reshape((&Shape::from(flat)).into()));
        views
    }

    fn accepts(&self, _: usize, layout: &Layout, dtype: DType, alignment: u64) -> bool {
        matmul::accepts(layout, dtype, alignment)
    }

    fn prepare(
        &self,
        library: &Kernels,
        operands: &[Bound<'_>],
        result: &UntypedBuffer,
    ) -> scry_gpu::Result<scry_kernels::Op> {
        matmul::product(library, operands, result)
    }

    fn flops(&self, operands: &[&Shape], result: &Shape) -> u64 {
        let summed = sizes(operands[0], &self.summed[0]).iter().product::<usize>();
        2 * count(result) * summed as u64
    }
}
