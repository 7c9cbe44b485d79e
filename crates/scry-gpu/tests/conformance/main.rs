//! The conformance suite: guarantees of WGSL and the API, on every present device.
//!
//! One file per topic. Expected values are computed from the rules of the language, never taken
//! from a device.

#[path = "../support/mod.rs"]
mod support;

mod accuracy;
mod arithmetic;
mod atomics;
mod barriers;
mod batches;
mod between_types;
mod beyond_4_gib;
mod bindings;
mod bits;
mod bound_kernels;
mod bounds;
mod bounds_corpus;
mod bounds_kernels;
mod control;
mod conversions;
mod cooperation;
mod cooperative_matrices;
mod divergence;
mod exact_floats;
mod features;
mod floats;
mod guarded;
mod harness;
mod indirect;
mod integers;
mod launches;
mod layouts;
mod limits;
mod matrices;
mod memory;
mod memory_types;
mod native;
mod parameters;
mod partial_elements;
mod places;
mod programs;
mod replays;
mod slices;
mod subgroups;
mod typed;
mod vectors;
mod views;
