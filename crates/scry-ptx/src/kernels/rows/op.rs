//! The interface of row-wise functions, independent of the threads that hold a row.

use std::fmt::Debug;

use crate::typed::{KernelBuilder, Val};

/// Statistics of some elements of a row: a few values whose meaning the function defines.
pub(crate) type Stats<'k> = Vec<Val<'k, f32>>;

/// An element in a register.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Item<'k> {
    /// Its value; [`RowOp::padding`] out of bounds.
    pub x: Val<'k, f32>,
    /// Whether it is in bounds; `None` if it always is.
    pub present: Option<Val<'k, bool>>,
}

impl<'k> Item<'k> {
    /// Returns a value that was computed from it, or 0 out of bounds.
    pub fn or_zero(&self, value: Val<'k, f32>) -> Val<'k, f32> {
        self.present.map_or(value, |present| present.select(value, 0.0))
    }
}

/// The inputs of a function besides the elements.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context<'k> {
    /// The kernel.
    pub k: &'k KernelBuilder,
    /// Number of neighbouring lanes of a warp that hold the same row: a power of two.
    pub lanes: u32,
    /// Elements of the row.
    pub length: Val<'k, u32>,
    /// The first element of the row, if [`RowOp::needs_first`].
    pub first: Option<Val<'k, f32>>,
    /// Whether [`RowOp::stats`] may replace the elements by intermediate values.
    pub may_replace: bool,
    /// The parameter of [`RowOp::scalar`].
    pub scalar: Option<Val<'k, f32>>,
}

impl<'k> Context<'k> {
    /// Returns the sum over groups of `lanes` neighbouring lanes.
    pub fn sum(&self, value: Val<'k, f32>, lanes: u32) -> Val<'k, f32> {
        self.k.reduce_warp(value, lanes, |a, b| a + b)
    }

    /// Returns the maximum over groups of `lanes` neighbouring lanes.
    pub fn max(&self, value: Val<'k, f32>, lanes: u32) -> Val<'k, f32> {
        self.k.reduce_warp(value, lanes, |a, b| a.max(b))
    }
}

/// A row-wise function: each result depends on its element, on statistics of the whole row, and on
/// operands of its column.
pub(crate) trait RowOp: Debug + Send + Sync {
    /// Returns the first field of kernel names.
    fn name(&self) -> &'static str;

    /// Returns the names of the operands that have one element per column.
    fn column_operands(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns the name and the value of the function's scalar parameter, if it has one.
    fn scalar(&self) -> Option<(&'static str, f32)> {
        None
    }

    /// Whether the first element of the row is needed.
    fn needs_first(&self) -> bool {
        false
    }

    /// Returns the value of elements out of bounds: 0 or an infinity.
    fn padding(&self) -> f32 {
        0.0
    }

    /// Returns the statistics of an empty row.
    fn empty_stats(&self) -> &'static [f32];

    /// Returns the statistics of the elements that the lanes of a group hold; each lane has the
    /// result. If [`Context::may_replace`] is true it may replace the elements by intermediate
    /// values for [`RowOp::apply`].
    fn stats<'k>(&self, context: &Context<'k>, items: &mut [Item<'k>]) -> Stats<'k>;

    /// Merges the `parts` of each lane over groups of `lanes` neighbouring lanes; each lane has the
    /// result.
    fn merge<'k>(&self, context: &Context<'k>, parts: &[Stats<'k>], lanes: u32) -> Stats<'k>;

    /// Returns the `row` inputs of [`RowOp::apply`], from the statistics of the whole row and, if
    /// elements may have been replaced, those of the lanes' elements (`group`).
    fn finish<'k>(
        &self,
        context: &Context<'k>,
        row: &[Val<'k, f32>],
        group: &[Val<'k, f32>],
    ) -> Stats<'k>;

    /// Returns the result for an element, from the values of [`RowOp::finish`] and the operands of
    /// its column.
    fn apply<'k>(
        &self,
        context: &Context<'k>,
        x: Val<'k, f32>,
        row: &[Val<'k, f32>],
        columns: &[Val<'k, f32>],
    ) -> Val<'k, f32>;
}

/// Number of independent chains of a reduction.
const CHAINS: usize = 4;

/// Reduces values, each as soon as it is computed, so that few are live at once.
pub(crate) fn reduce_values<'k>(
    values: impl IntoIterator<Item = Val<'k, f32>>,
    combine: impl Fn(Val<'k, f32>, Val<'k, f32>) -> Val<'k, f32>,
) -> Val<'k, f32> {
    let mut chains: Vec<Val<'k, f32>> = Vec::new();
    for (nth, value) in values.into_iter().enumerate() {
        match chains.get_mut(nth % CHAINS) {
            Some(chain) => *chain = combine(*chain, value),
            None => chains.push(value),
        }
    }
    let all = chains.into_iter().reduce(combine);
    all.expect("there is a vector, and so a value")
}
