//! The row-wise function, independent of the threads that hold a row.

use std::fmt::Debug;

use crate::typed::{Code, Val};

/// Statistics of some elements of a row: a few values whose meaning the function defines.
pub(crate) type Stats<'k> = Vec<Val<'k, f32>>;

/// An element in a register.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Item<'k> {
    /// Its value; [`RowOp::absent`] out of bounds.
    pub x: Val<'k, f32>,
    /// Whether it is in bounds; `None` if that is certain.
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
    pub k: &'k Code,
    /// Lanes of a warp that hold parts of the same row: a power of two.
    pub lanes: u32,
    /// Elements of the row.
    pub length: Val<'k, u32>,
    /// The first element of the row, if [`RowOp::wants_first`].
    pub first: Option<Val<'k, f32>>,
    /// Whether [`RowOp::stats`] may replace the elements.
    pub replaces: bool,
    /// The parameter of [`RowOp::number`].
    pub number: Option<Val<'k, f32>>,
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

    /// Returns the operands that have one element per column.
    fn columns(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns a parameter of all rows.
    fn number(&self) -> Option<(&'static str, f32)> {
        None
    }

    /// Whether the first element of the row is needed.
    fn wants_first(&self) -> bool {
        false
    }

    /// Returns the value out of bounds: 0 or an infinity.
    fn absent(&self) -> f32 {
        0.0
    }

    /// Returns the statistics of no elements.
    fn nothing(&self) -> &'static [f32];

    /// Returns the statistics of the elements that the lanes of a group hold, in each of them. If
    /// the context says so it may replace the elements by intermediate values for [`RowOp::apply`].
    fn stats<'k>(&self, context: &Context<'k>, items: &mut [Item<'k>]) -> Stats<'k>;

    /// Merges statistics: each lane has its `parts`, and each group of `lanes` neighbours has all.
    fn merge<'k>(&self, context: &Context<'k>, parts: &[Stats<'k>], lanes: u32) -> Stats<'k>;

    /// Returns the inputs of [`RowOp::apply`], from the statistics of the whole row, and those of
    /// the group if elements may have been replaced.
    fn finish<'k>(
        &self,
        context: &Context<'k>,
        row: &[Val<'k, f32>],
        group: &[Val<'k, f32>],
    ) -> Stats<'k>;

    /// Returns a result.
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
pub(crate) fn combined<'k>(
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
