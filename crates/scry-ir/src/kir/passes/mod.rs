//! Makes kernels cheaper without changing what they do.
//!
//! Each pass is a file that says what it does and why that is sound. Here is only their order.

mod below;
mod bounds;
mod compact;
mod cse;
mod dead;
pub(crate) mod eval;
mod float;
mod flow;
mod fold;
mod identity;
mod induction;
mod motion;
mod names;
mod range;
mod select;
#[cfg(test)]
mod tests;

use super::Kir;

/// The passes, in order.
///
/// What moves out of a branch must not rest on its condition: invariants move before clamps are
/// dropped. Branches become selections before that, which shows more conditions.
const PASSES: [fn(&mut Kir); 13] = [
    fold::fold,
    cse::cse,
    flow::flow,
    select::select,
    fold::fold,
    cse::cse,
    motion::motion,
    bounds::bounds,
    fold::fold,
    cse::cse,
    dead::dead,
    flow::flow,
    compact::compact,
];

/// Makes a kernel cheaper. What it writes, and in which order it synchronises, stays the same.
pub fn optimise(kir: &mut Kir) {
    for pass in PASSES {
        pass(kir);
    }
}
