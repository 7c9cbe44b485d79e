//! Layer norm and RMS norm of each row of a matrix:
//! `(x - mean) / sqrt(variance + epsilon) * weight + bias` and
//! `x / sqrt(mean(x^2) + epsilon) * weight`.
//!
//! `x` and `y` are `count` rows of `length` elements without gaps, `weight` and `bias` have
//! `length` elements, all in `f32`, `f16` or `bf16`; arithmetic is `f32`. The variance is the
//! population variance of the row (divided by `length`), computed in two passes. Mean and variance
//! are computed relative to the row's first element, so that rows far from zero lose no precision.
//! The kernels are memory-bound: one read and one write, except for very long rows (see
//! [`rows`](super::rows)).

use std::sync::Arc;

use super::rows::{Context, Item, RowOp, Rows, Stats, ThreadGroup, reduce_values};
use super::{GpuSpec, Plan, PlanError};
use crate::typed::Val;

/// The norm to compute.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Norm {
    /// The kind.
    pub kind: NormKind,
    /// Added under the square root, against division by zero in rows of equal elements.
    pub epsilon: f32,
}

/// A kind of norm, with its operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NormKind {
    /// Layer norm.
    Layer,
    /// Layer norm, times `weight`.
    LayerWeight,
    /// Layer norm, times `weight`, plus `bias`.
    LayerWeightBias,
    /// Root mean square.
    Rms,
    /// Root mean square, times `weight`.
    RmsWeight,
}

impl NormKind {
    fn is_rms(self) -> bool {
        matches!(self, Self::Rms | Self::RmsWeight)
    }
}

/// Returns the launches that compute the norm of each row on a GPU. The buffers are `x`, `weight`
/// and `bias` where the kind has them, and `y`.
///
/// # Errors
/// [`PlanError::Argument`] if rows are empty or longer than 2^31 - 2^16, their type is none of
/// `F32`, `F16` and `Bf16`, or the grid would exceed 2^31 blocks; [`PlanError::Target`] before
/// `sm_80`.
pub fn plan(norm: Norm, rows: Rows, gpu: GpuSpec) -> Result<Plan, PlanError> {
    super::rows::plan(Arc::new(norm), rows, gpu)
}

/// Returns one launch with a given thread group.
///
/// # Errors
/// As [`plan`], and if the thread group cannot hold a row.
pub fn plan_for(
    norm: Norm,
    rows: Rows,
    thread_group: ThreadGroup,
    gpu: GpuSpec,
) -> Result<Plan, PlanError> {
    super::rows::plan_for(Arc::new(norm), rows, thread_group, gpu)
}

/// The statistics of layer norm are the mean relative to the row's first element, the sum of
/// squared deviations from that mean, and the number of elements, merged as in Chan's parallel form
/// of Welford's algorithm. The statistic of RMS norm is the sum of squares.
impl RowOp for Norm {
    fn name(&self) -> &'static str {
        match self.kind {
            NormKind::Layer => "layer_norm",
            NormKind::LayerWeight => "layer_norm_weight",
            NormKind::LayerWeightBias => "layer_norm_weight_bias",
            NormKind::Rms => "rms_norm",
            NormKind::RmsWeight => "rms_norm_weight",
        }
    }

    fn column_operands(&self) -> &'static [&'static str] {
        match self.kind {
            NormKind::Layer | NormKind::Rms => &[],
            NormKind::LayerWeight | NormKind::RmsWeight => &["weight"],
            NormKind::LayerWeightBias => &["weight", "bias"],
        }
    }

    fn scalar(&self) -> Option<(&'static str, f32)> {
        Some(("epsilon", self.epsilon))
    }

    fn needs_first(&self) -> bool {
        !self.kind.is_rms()
    }

    fn empty_stats(&self) -> &'static [f32] {
        if self.kind.is_rms() { &[0.0] } else { &[0.0, 0.0, 0.0] }
    }

    fn stats<'k>(&self, context: &Context<'k>, items: &mut [Item<'k>]) -> Stats<'k> {
        if self.kind.is_rms() {
            let squares = items.iter().map(|item| item.x * item.x);
            return vec![context.sum(reduce_values(squares, |a, b| a + b), context.lanes)];
        }
        let differences = items.iter().map(|item| item.or_zero(relative_to_first(context, item.x)));
        let sum = context.sum(reduce_values(differences, |a, b| a + b), context.lanes);
        let count = context.sum(count_present(context, items), context.lanes);
        let mean = sum * count.max(1.0).recip();
        let squares = items.iter().map(|item| {
            let deviation = item.or_zero(relative_to_first(context, item.x) - mean);
            deviation * deviation
        });
        vec![mean, context.sum(reduce_values(squares, |a, b| a + b), context.lanes), count]
    }

    fn merge<'k>(&self, context: &Context<'k>, parts: &[Stats<'k>], lanes: u32) -> Stats<'k> {
        let total = |number: &dyn Fn(&Stats<'k>) -> Val<'k, f32>| {
            context.sum(reduce_values(parts.iter().map(number), |a, b| a + b), lanes)
        };
        if self.kind.is_rms() {
            return vec![total(&|part| part[0])];
        }
        let sum = total(&|part| part[0] * part[2]);
        let count = total(&|part| part[2]);
        let mean = sum * count.max(1.0).recip();
        let squares = total(&|part| {
            let shift = part[0] - mean;
            (shift * part[2]).mul_add(shift, part[1])
        });
        vec![mean, squares, count]
    }

    /// Returns the factor of the elements, and for layer norm the mean to subtract.
    fn finish<'k>(
        &self,
        context: &Context<'k>,
        row: &[Val<'k, f32>],
        _: &[Val<'k, f32>],
    ) -> Stats<'k> {
        let inverse_length = context.length.convert::<f32>("rn").recip();
        let epsilon = context.scalar.expect("a norm has an epsilon");
        let squares = if self.kind.is_rms() { row[0] } else { row[1] };
        vec![squares.mul_add(inverse_length, epsilon).rsqrt(), row[0]]
    }

    fn apply<'k>(
        &self,
        context: &Context<'k>,
        x: Val<'k, f32>,
        row: &[Val<'k, f32>],
        columns: &[Val<'k, f32>],
    ) -> Val<'k, f32> {
        let centred = if self.kind.is_rms() { x } else { relative_to_first(context, x) - row[1] };
        let normalised = centred * row[0];
        match *columns {
            [weight, bias] => normalised.mul_add(weight, bias),
            [weight] => normalised * weight,
            _ => normalised,
        }
    }
}

/// Returns the difference between an element and the first one of its row.
fn relative_to_first<'k>(context: &Context<'k>, x: Val<'k, f32>) -> Val<'k, f32> {
    x - context.first.expect("layer norm needs the first element")
}

/// Returns the number of items that are in bounds.
fn count_present<'k>(context: &Context<'k>, items: &[Item<'k>]) -> Val<'k, f32> {
    let unconditional = items.iter().filter(|item| item.present.is_none()).count();
    let unconditional = context.k.constant(unconditional as f32).copied();
    let conditional = items.iter().filter_map(|item| item.present);
    conditional.fold(unconditional, |count, present| count + present.select(1.0, 0.0f32))
}
