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

/// Makes a kernel cheaper. What it writes, and in which order it synchronises, stays the same.
pub fn optimise(kir: &mut Kir) {
    fold::fold(kir);
    cse::cse(kir);
    flow::flow(kir);
    select::select(kir);
    fold::fold(kir);
    cse::cse(kir);
    motion::motion(kir);
    bounds::bounds(kir);
    fold::fold(kir);
    cse::cse(kir);
    dead::dead(kir);
    flow::flow(kir);
    compact::compact(kir);
}
