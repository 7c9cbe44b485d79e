//! What the steps of a kernel are chosen by: analyses of its IR that emit nothing.

pub(super) mod comparison;
pub(super) mod conditions;
pub(super) mod counters;
pub(super) mod demand;
pub(super) mod disjoint;
pub(super) mod divergence;
pub(super) mod exit_branches;
pub(super) mod fusion;
pub(super) mod liveness;
