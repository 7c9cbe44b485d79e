//! What goes wrong outside of the library or in its use, and what is promised then: a typed error
//! that says what happened; no abort, no hang; everything not named in the failed work unharmed.
//!
//! Test names carry the number of the fault. Each test runs on every device that is present, and on
//! the null device where that makes sense. What could end or spoil the process of the tests happens
//! in a process of its own (see `child`).

#![expect(clippy::unwrap_used, reason = "a test that fails says where")]

mod absence;
mod bindings;
mod bits;
mod child;
mod devices;
mod dispatch;
mod exit;
mod failing;
mod hang;
mod kernels;
mod leaks;
mod memory;
mod signals;
mod system;
mod threads;

#[path = "../support/mod.rs"]
mod support;
