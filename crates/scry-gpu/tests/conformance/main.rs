//! The conformance suite: guarantees of WGSL and the API, on every present device.
//!
//! Most are data: the cases of scry-conformance, run here with calls that block and with calls
//! that are awaited. The tests in this folder are those that no case states, one file per topic.

#[path = "../support/mod.rs"]
mod support;

mod accuracy;
mod atomics;
mod barriers;
mod batches;
mod beyond_4_gib;
mod bindings;
mod bound_kernels;
mod bounds;
mod bounds_corpus;
mod bounds_kernels;
mod cases;
mod cooperation;
mod cooperative_matrices;
mod features;
mod guarded;
mod harness;
mod indirect;
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
