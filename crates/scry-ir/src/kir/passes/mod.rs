//! Optimisation passes.
//!
//! Each pass is a file, which documents the transformation and why it is sound. This file defines
//! their order.

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
/// Code hoisted out of a branch must not depend on its condition: LICM precedes bounds-check
/// elimination. If-conversion precedes that too, since it exposes more conditions.
const PASSES: [fn(&mut Kir); 13] = [
    fold::fold,
    cse::cse,
    simplify_control::simplify,
    if_conversion::convert_branches,
    fold::fold,
    cse::cse,
    licm::hoist,
    bounds::bounds,
    fold::fold,
    cse::cse,
    dce::eliminate,
    simplify_control::simplify,
    renumber::renumber,
];

/// Optimises a kernel. Its stores and the order of its synchronisation are unchanged.
pub fn optimise(kir: &mut Kir) {
    for pass in PASSES {
        pass(kir);
    }
}
