//! Tests of the faults of `docs/faults.md`: each must return a typed error that says what happened,
//! without an abort, a hang or an effect on anything but the failed work.
//!
//! `fault_N` in a test name is the number of the fault. Tests run on every available device and on
//! the null device, unless the fault does not depend on the driver, or only one of them can have
//! it. Tests that could end or corrupt the process run in a child process (see `child`).

#![expect(clippy::unwrap_used, reason = "a test that fails says where")]

mod absence;
mod bindings;
mod bits;
mod child;
mod devices;
mod exit;
mod failing;
mod hang;
mod kernel_cache;
mod kernels;
mod leaks;
mod memory;
mod signals;
mod system;
mod threads;
