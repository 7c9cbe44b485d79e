//! Distances between points.

use scry_gpu::UntypedBuffer;
use scry_kernels::{Kernels, Metric};

use super::rule::{Bound, Rule, Trivial, count, typed};
use crate::dtype::DType;
use crate::error::{Call, Result};
use crate::shape::Shape;

/// How distances are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Distance {
    SquaredEuclidean,
    Cosine,
    Manhattan,
}

/// The distances between all rows of two matrices.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Pairwise(pub(crate) Distance);

impl Rule for Pairwise {
    fn name(&self) -> &'static str {
        "pairwise_distances"
    }

    fn shape(&self, call: Call, _: DType, operands: &[&Shape]) -> Result<Shape> {
        let (a, b) = (operands[0], operands[1]);
        match (&**a, &**b) {
            ([m, dim], [n, other]) if dim == other => Ok([*m, *n].into()),
            _ => Err(call.shape_error(
                &[a, b],
                format!("{a} and {b} are not sets of points with the same coordinates"),
                "use matrices with a row for each point",
            )),
        }
    }

    fn dtype(&self, _: DType) -> DType {
        DType::F32
    }

    /// The kernel library has the distances of points without coordinates.
    fn trivial(&self, _: DType, _: &[&Shape], _: &Shape) -> Option<Trivial> {
        None
    }

    fn prepare(
        &self,
        library: &Kernels,
        operands: &[Bound<'_>],
        result: &UntypedBuffer,
    ) -> scry_gpu::Result<scry_kernels::Op> {
        let metric = match self.0 {
            Distance::SquaredEuclidean => Metric::SquaredEuclidean,
            Distance::Cosine => Metric::Cosine,
            Distance::Manhattan => Metric::L1,
        };
        let out = result.view_as(scry_gpu::DType::F32)?;
        let (a, b) = (typed(&operands[0])?, typed(&operands[1])?);
        let [m, dim] = [operands[0].1.shape[0], operands[0].1.shape[1]];
        let n = operands[1].1.shape[0];
        library.pairwise_distances(metric, &a, &b, &out, m, n, dim)
    }

    fn flops(&self, operands: &[&Shape], result: &Shape) -> u64 {
        3 * count(result) * operands[0].last().copied().unwrap_or(1) as u64
    }
}
