//! Analyses of the IR for instruction selection; they emit nothing.

pub(super) mod comparison;
pub(super) mod conditions;
pub(super) mod counters;
pub(super) mod demand;
pub(super) mod disjoint;
pub(super) mod divergence;
pub(super) mod exit_branches;
pub(super) mod fusion;
pub(super) mod liveness;
