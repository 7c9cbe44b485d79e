//! Hand-written and random kernels, compared with the reference interpreter.

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
