//! Kernels made by hand and at random, run whole, and compared with an interpreter of one
//! invocation at a time.

mod affine;
mod atomics;
mod barriers;
mod cancellation;
mod chains;
mod control;
mod counters;
mod interleaving;
mod memory;
mod products;
mod races;
mod random;
mod random_kernels;
mod streams;
mod subgroups;
mod support;
