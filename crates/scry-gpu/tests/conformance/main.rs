//! The conformance tests: guarantees of WGSL and the API, on every available device.
//!
//! Most tests are cases of scry-conformance, run here with blocking calls and with awaited calls.
//! The files in this folder have the tests that cannot be written as cases, one file per topic.

mod batch_replays;
mod batches;
mod beyond_4_gib;
mod bindings;
mod bound_kernels;
mod cases;
mod features;
mod harness;
mod indirect;
mod layouts;
mod limits;
mod memory;
mod native;
mod not_cases;
mod parameters;
mod programs;
mod replays;
mod slices;
mod unchecked;
mod views;
