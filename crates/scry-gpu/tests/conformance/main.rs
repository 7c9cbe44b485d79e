//! The conformance suite: guarantees of WGSL and the API, on every present device.
//!
//! Most are data: the cases of scry-conformance, run here with calls that block and with calls
//! that are awaited. The tests in this folder are those that no case states, one file per topic.

#[path = "../support/devices.rs"]
mod devices;

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
