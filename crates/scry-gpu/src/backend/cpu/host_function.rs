//! Calls of host functions.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use scry_cpu::{Machine, MemoryRange};

use super::panics::{HostPanic, panic_text};
use crate::api::native::{HostArguments, HostBuffer, HostFunction, HostThreads};

/// Calls a function with the memory of its bindings, and whether each is written. It may use the
/// threads of the machine.
///
/// # Safety
/// The memory is alive, nothing else accesses it meanwhile, and ranges that are written do not
/// overlap others.
///
/// # Panics
/// If the function does.
pub(super) unsafe fn call(
    machine: &Machine,
    (name, function): (&str, &HostFunction),
    bindings: impl Iterator<Item = (MemoryRange, bool)>,
    immediates: &[u8],
    workgroups: [u32; 3],
) {
    let buffers = bindings.map(|(range, writes)| {
        if writes {
            // SAFETY: the caller guarantees exclusive access during the call; the slices do not
            // outlive it, since the function is called with any lifetime.
            HostBuffer::Write(unsafe { range.as_mut_slice() })
        } else {
            // SAFETY: as above; nothing writes the range.
            HostBuffer::Read(unsafe { range.as_slice() })
        }
    });
    let with_help = |helpers: usize, work: &(dyn Fn() + Sync)| machine.with_help(helpers, work);
    let threads = HostThreads { count: machine.threads(), with_help: &with_help };
    let buffers = buffers.collect();
    let mut arguments = HostArguments::new(name, buffers, immediates, workgroups, threads);
    let called = catch_unwind(AssertUnwindSafe(|| function(&mut arguments)));
    if let Err(panic) = called {
        let text = panic_text(&*panic);
        resume_unwind(Box::new(HostPanic(format!("host function `{name}` panicked: {text}"))));
    }
}
