//! How a collective combines the elements of all ranks.

use std::fmt;

/// How [`DeviceGroup::all_reduce`](crate::DeviceGroup::all_reduce) and the other reductions combine
/// the elements that the ranks have at the same index.
///
/// Through host memory they are combined in order of rank, so that a repeated call has the same
/// bits, and `f16` and `bf16` are computed in `f32` and rounded once. NCCL
/// ([`DeviceGroup::transport`](crate::DeviceGroup::transport)) chooses the order, which is the same
/// on all ranks, and may round intermediate results to the element type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReduceOp {
    /// The sum. Integers wrap around.
    Sum,
    /// The product. Integers wrap around.
    Prod,
    /// The minimum; NaN if any element is, but through NCCL only if those of all ranks are.
    Min,
    /// The maximum; NaN as for the minimum.
    Max,
    /// The sum divided by the number of ranks. NCCL multiplies floats by its reciprocal before it
    /// adds them. The mean of integers is that of the exact sum, rounded towards zero.
    Mean,
}

impl ReduceOp {
    /// All of them.
    ///
    /// ```
    /// use scry_gpu::ReduceOp;
    /// assert_eq!(ReduceOp::ALL.map(ReduceOp::name), ["sum", "prod", "min", "max", "mean"]);
    /// ```
    pub const ALL: [Self; 5] = [Self::Sum, Self::Prod, Self::Min, Self::Max, Self::Mean];

    /// Returns the name, in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Prod => "prod",
            Self::Min => "min",
            Self::Max => "max",
            Self::Mean => "mean",
        }
    }
}

impl fmt::Display for ReduceOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
