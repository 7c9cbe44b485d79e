//! Sums of rows by indices.

use scry_gpu::UntypedBuffer;
use scry_kernels::Kernels;

use super::rule::{Bound, Rule, typed};
use crate::dtype::DType;
use crate::error::{Call, Result};
use crate::shape::{Layout, Shape};

/// The sums of the rows of the first operand with equal indices, which are in the second one, as
/// rows of a result with the shape of the third one. Rows are all axes after the first.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ScatterAdd {
    /// Whether elements are added one by one: the indices have the shape of the elements, and are
    /// positions in the result.
    pub(crate) is_flat: bool,
}

impl Rule for ScatterAdd {
    fn name(&self) -> &'static str {
        "scatter_add_rows"
    }

    fn shape(&self, call: Call, _: DType, operands: &[&Shape]) -> Result<Shape> {
        let (new, at, like) = (operands[0], operands[1], operands[2]);
        let fits = match self.is_flat {
            true => new == at && at.rank() == like.rank(),
            false => {
                at.rank() == 1
                    && new.rank() == like.rank()
                    && new.first() == at.first()
                    && new.get(1..) == like.get(1..)
            }
        };
        if fits {
            return Ok(like.clone());
        }
        let help = match self.is_flat {
            true => "pass an index for each element",
            false => "pass a vector with an index for each row",
        };
        let problem = format!("a source of {new} and indices of {at} do not fit {like}");
        Err(call.shape_error(&[new, at, like], problem, help))
    }

    fn accumulates(&self) -> bool {
        true
    }

    /// Of the third operand only the shape is read.
    fn accepts(&self, operand: usize, layout: &Layout, _: DType, _: u64) -> bool {
        operand == 2 || layout.is_contiguous() && layout.offset == 0
    }

    fn prepare(
        &self,
        library: &Kernels,
        operands: &[Bound<'_>],
        result: &UntypedBuffer,
    ) -> scry_gpu::Result<scry_kernels::Op> {
        let out = result.view_as(operands[0].2.of_buffer())?;
        let (new, at) = (typed(&operands[0])?, typed(&operands[1])?);
        let like = &operands[2].1.shape;
        let total = like.count().unwrap_or(0);
        let [rows, count] = match self.is_flat {
            true => [total, operands[0].1.shape.count().unwrap_or(0)],
            false => [like[0], operands[1].1.shape[0]],
        };
        let columns = if self.is_flat { 1 } else { total / rows.max(1) };
        library.scatter_add_rows(&new, &at, &out, rows, columns, count)
    }
}
