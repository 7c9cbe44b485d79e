//! Tests of kernels, hand-written and random, compared with the reference interpreter.
//!
//! Tests whose names start with `miri_` are small enough for Miri.

mod affine;
mod atomics;
mod barriers;
mod cancellation;
mod chains;
mod control;
mod counters;
mod interleaving;
mod memory;
mod mul_adds;
mod products;
mod races;
mod random;
mod random_kernels;
mod subgroups;
mod support;
