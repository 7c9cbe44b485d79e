//! Softmax and log-softmax of each row of a matrix: `exp(x - max) / sum(exp(x - max))` and
//! `x - max - ln(sum(exp(x - max)))`.
//!
//! `x` and `y` are `count` rows of `length` elements without gaps, in `f32`, `f16` or `bf16`;
//! arithmetic is `f32`. A row whose elements are all -inf, or that has +inf or NaN, results in NaN.
//! The kernels are memory-bound: one read and one write, except for very long rows (see
//! [`rows`](super::rows)).

use std::f32::consts::{LN_2, LOG2_E};
use std::sync::Arc;

use super::rows::{Context, Item, RowOp, Rows, Stats, ThreadGroup, reduce_values};
use super::{GpuSpec, Plan, PlanError};
use crate::typed::Val;

/// Softmax or its logarithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SoftmaxKind {
    /// The exponentials, divided by their sum.
    Softmax,
    /// The logarithm of the softmax.
    LogSoftmax,
}

/// Returns the launches that compute the softmax of each row on a GPU. The buffers are `x` and `y`,
/// of `count * length` elements each.
///
/// # Errors
/// [`PlanError::Argument`] if rows are empty or longer than 2^31 - 2^16, their type is none of
/// `F32`, `F16` and `Bf16`, or the grid would exceed 2^31 blocks; [`PlanError::Target`] before
/// `sm_80`.
pub fn plan(softmax: SoftmaxKind, rows: Rows, gpu: GpuSpec) -> Result<Plan, PlanError> {
    super::rows::plan(Arc::new(softmax), rows, gpu)
}

/// Returns one launch with a given thread group.
///
/// # Errors
/// As [`plan`], and if the thread group cannot hold a row.
pub fn plan_for(
    softmax: SoftmaxKind,
    rows: Rows,
    thread_group: ThreadGroup,
    gpu: GpuSpec,
) -> Result<Plan, PlanError> {
    super::rows::plan_for(Arc::new(softmax), rows, thread_group, gpu)
}

/// Returns the maximum to subtract: 0 instead of -inf, since -inf - -inf is NaN.
fn finite_max(max: Val<'_, f32>) -> Val<'_, f32> {
    max.eq(f32::NEG_INFINITY).select(0.0, max)
}

/// Returns `exp(x - max)`.
fn exponential<'k>(x: Val<'k, f32>, max: Val<'k, f32>) -> Val<'k, f32> {
    ((x - max) * LOG2_E).exp2()
}

/// The statistics: the maximum, and the sum of exponentials relative to it.
impl RowOp for SoftmaxKind {
    fn name(&self) -> &'static str {
        match self {
            Self::Softmax => "softmax",
            Self::LogSoftmax => "log_softmax",
        }
    }

    fn padding(&self) -> f32 {
        f32::NEG_INFINITY
    }

    fn empty_stats(&self) -> &'static [f32] {
        &[f32::NEG_INFINITY, 0.0]
    }

    fn stats<'k>(&self, context: &Context<'k>, items: &mut [Item<'k>]) -> Stats<'k> {
        let values = items.iter().map(|item| item.x);
        let max = context.max(reduce_values(values, |a, b| a.max(b)), context.lanes);
        let (shift, replaces) = (finite_max(max), self.replaces_elements(context));
        let exponentials = items.iter_mut().map(|item| {
            let result = exponential(item.x, shift);
            item.x = if replaces { result } else { item.x };
            result
        });
        vec![max, context.sum(reduce_values(exponentials, |a, b| a + b), context.lanes)]
    }

    fn merge<'k>(&self, context: &Context<'k>, parts: &[Stats<'k>], lanes: u32) -> Stats<'k> {
        let values = parts.iter().map(|part| part[0]);
        let max = context.max(reduce_values(values, |a, b| a.max(b)), lanes);
        let shift = finite_max(max);
        let values = parts.iter().map(|part| part[1] * exponential(part[0], shift));
        vec![max, context.sum(reduce_values(values, |a, b| a + b), lanes)]
    }

    /// Returns the maximum to subtract, and the factor to multiply by or the logarithm to subtract.
    fn finish<'k>(
        &self,
        context: &Context<'k>,
        row: &[Val<'k, f32>],
        group: &[Val<'k, f32>],
    ) -> Stats<'k> {
        let max = finite_max(row[0]);
        let factor_or_log = match self {
            Self::Softmax if self.replaces_elements(context) => {
                exponential(finite_max(group[0]), max) * row[1].recip()
            }
            Self::Softmax => row[1].recip(),
            Self::LogSoftmax => row[1].log2() * LN_2,
        };
        vec![max, factor_or_log]
    }

    fn apply<'k>(
        &self,
        context: &Context<'k>,
        x: Val<'k, f32>,
        row: &[Val<'k, f32>],
        _: &[Val<'k, f32>],
    ) -> Val<'k, f32> {
        match self {
            Self::Softmax if self.replaces_elements(context) => x * row[1],
            Self::Softmax => exponential(x, row[0]) * row[1],
            Self::LogSoftmax => x - row[0] - row[1],
        }
    }
}

impl SoftmaxKind {
    /// Whether [`RowOp::stats`] replaces the elements by their exponentials, relative to the
    /// maximum of the lanes' elements.
    fn replaces_elements(self, context: &Context<'_>) -> bool {
        self == Self::Softmax && context.may_replace
    }
}
