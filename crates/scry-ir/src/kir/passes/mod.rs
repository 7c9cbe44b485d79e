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
pub(in crate::kir) mod range;
mod renumber;
mod simplify_control;
#[cfg(test)]
mod tests;
mod value_map;

use super::Kir;

/// A pass, which changes the kernel.
type Pass = fn(&mut Kir);

/// The passes and their names, in order.
///
/// LICM precedes bounds-check elimination: an access whose clamp was removed because of a condition
/// must not be hoisted out of the branch. If-conversion precedes bounds-check elimination, to which
/// it exposes more conditions.
const PASSES: [(&str, Pass); 13] = [
    ("fold", fold::fold),
    ("cse", cse::cse),
    ("simplify_control", simplify_control::simplify),
    ("if_conversion", if_conversion::convert_branches),
    ("fold", fold::fold),
    ("cse", cse::cse),
    ("licm", licm::hoist),
    ("bounds", bounds::remove_clamps),
    ("fold", fold::fold),
    ("cse", cse::cse),
    ("dce", dce::eliminate),
    ("simplify_control", simplify_control::simplify),
    ("renumber", renumber::renumber),
];

/// Removes what a transformation of an optimised kernel left behind: repeated and unused values.
pub(in crate::kir) fn clean_up(kir: &mut Kir) {
    for pass in [cse::cse, dce::eliminate, renumber::renumber] {
        pass(kir);
    }
}

/// Optimises a valid kernel (see [`verify`](super::verify())), and keeps it valid. Its stores to
/// buffers, and their order with respect to barriers and atomics, are unchanged.
pub fn optimise(kir: &mut Kir) {
    optimise_with(kir, &mut |_, _| {});
}

/// [`optimise`], with a call of `visit` after each pass, with the name of the pass.
pub(crate) fn optimise_with(kir: &mut Kir, visit: &mut dyn FnMut(&'static str, &Kir)) {
    for (name, pass) in PASSES {
        pass(kir);
        visit(name, kir);
    }
}
