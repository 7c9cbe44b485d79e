//! What is computed of a row, in terms that do not say which threads hold it.

use std::fmt::Debug;

use crate::typed::{Code, Val};

/// What is known of some elements of a row: a few numbers whose meaning the function knows.
pub(crate) type Stats<'k> = Vec<Val<'k, f32>>;

/// An element in a register.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Item<'k> {
    /// Its value; [`RowOp::absent`] where there is none.
    pub x: Val<'k, f32>,
    /// Whether there is one; always, if nothing is said.
    pub present: Option<Val<'k, bool>>,
}

impl<'k> Item<'k> {
    /// A value that was made from it, or 0 where there is no element.
    pub fn or_zero(&self, value: Val<'k, f32>) -> Val<'k, f32> {
        self.present.map_or(value, |present| present.select(value, 0.0))
    }
}

/// What else a function needs to know of a row.
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
    /// The number of [`RowOp::number`].
    pub number: Option<Val<'k, f32>>,
}

impl<'k> Context<'k> {
    /// The sum over groups of this many neighbours among the lanes.
    pub fn sum(&self, value: Val<'k, f32>, lanes: u32) -> Val<'k, f32> {
        self.k.reduce_warp(value, lanes, |a, b| a + b)
    }

    /// The maximum over groups of this many neighbours among the lanes.
    pub fn max(&self, value: Val<'k, f32>, lanes: u32) -> Val<'k, f32> {
        self.k.reduce_warp(value, lanes, |a, b| a.max(b))
    }
}

/// A function of rows: each result depends on its element, on a few numbers of the whole row, and
/// on numbers of its column.
pub(crate) trait RowOp: Debug + Send + Sync {
    /// What names of kernels begin with.
    fn name(&self) -> &'static str;

    /// Operands that have a number for each column.
    fn columns(&self) -> &'static [&'static str] {
        &[]
    }

    /// A parameter of all rows.
    fn number(&self) -> Option<(&'static str, f32)> {
        None
    }

    /// Whether the first element of the row is asked for.
    fn wants_first(&self) -> bool {
        false
    }

    /// What stands where there is no element: 0 or an infinity.
    fn absent(&self) -> f32 {
        0.0
    }

    /// The numbers of no elements.
    fn nothing(&self) -> &'static [f32];

    /// The numbers of the elements that the lanes of a group hold, in each of them. If the context
    /// says so it may replace the elements by what [`RowOp::apply`] wants instead.
    fn stats<'k>(&self, context: &Context<'k>, items: &mut [Item<'k>]) -> Stats<'k>;

    /// The numbers of all parts whose numbers the lanes hold: each lane has its `parts`, each
    /// group of `lanes` neighbours has all.
    fn merge<'k>(&self, context: &Context<'k>, parts: &[Stats<'k>], lanes: u32) -> Stats<'k>;

    /// What [`RowOp::apply`] needs, from the numbers of the whole row, and those of the group if
    /// elements may have been replaced.
    fn finish<'k>(
        &self,
        context: &Context<'k>,
        row: &[Val<'k, f32>],
        group: &[Val<'k, f32>],
    ) -> Stats<'k>;

    /// A result.
    fn apply<'k>(
        &self,
        context: &Context<'k>,
        x: Val<'k, f32>,
        row: &[Val<'k, f32>],
        columns: &[Val<'k, f32>],
    ) -> Val<'k, f32>;
}

/// Chains that are combined side by side, so that neighbours do not wait for each other.
const CHAINS: usize = 4;

/// Combines numbers, each as soon as it is made, so that few are held at once.
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
