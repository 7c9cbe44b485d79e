//! Makes kernels cheaper without changing what they do.
//!
//! Each pass is a file that says what it does and why that is sound. Here is only their order.

mod algebraic;
mod bounds;
pub(crate) mod const_eval;
mod cse;
mod dce;
mod float;
mod fold;
mod if_conversion;
mod induction;
mod licm;
mod order_facts;
mod range;
mod renumber;
mod simplify_control;
#[cfg(test)]
mod tests;
mod value_map;

use super::Kir;

/// The passes, in order.
///
/// What moves out of a branch must not rest on its condition: invariants move before clamps are
/// dropped. Branches become selections before that, which shows more conditions.
const PASSES: [fn(&mut Kir); 13] = [
    fold::fold,
    cse::cse,
    simplify_control::flow,
    if_conversion::select,
    fold::fold,
    cse::cse,
    licm::motion,
    bounds::bounds,
    fold::fold,
    cse::cse,
    dce::dead,
    simplify_control::flow,
    renumber::compact,
];

/// Makes a kernel cheaper. What it writes, and in which order it synchronises, stays the same.
pub fn optimise(kir: &mut Kir) {
    for pass in PASSES {
        pass(kir);
    }
}
