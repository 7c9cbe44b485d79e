//! Checks of commands before they reach a GPU's driver.

use crate::core::command::{BufferRange, Dispatch};
use crate::core::driver::{KernelId, MemoryId, RecordingId};

/// Returns the error text for an allocation that does not exist.
pub(crate) fn no_allocation(memory: MemoryId) -> String {
    format!("allocation {memory:?} does not exist, or was freed")
}

/// Returns the error text for a kernel that does not exist.
pub(crate) fn no_kernel(kernel: KernelId) -> String {
    format!("kernel {kernel:?} does not exist, or was freed")
}

/// Returns the error text for a recording that does not exist.
pub(crate) fn no_recording(recording: RecordingId) -> String {
    format!("recording {recording:?} does not exist, or was freed")
}

/// Checks that a range is not empty, and within an allocation of `capacity` bytes.
pub(crate) fn check_range(range: BufferRange, capacity: u64) -> Result<(), String> {
    let BufferRange { offset, size, .. } = range;
    match offset.checked_add(size) {
        Some(end) if size > 0 && end <= capacity => Ok(()),
        _ => Err(format!("{size} bytes at {offset} are not in an allocation of {capacity}")),
    }
}

/// Checks that a dispatch has as many bindings and bytes of immediates as its kernel; `expected` is
/// both of these numbers.
pub(crate) fn check_arguments(dispatch: &Dispatch, expected: (usize, usize)) -> Result<(), String> {
    let actual = (dispatch.bindings.len(), dispatch.immediates.len());
    if actual == expected {
        return Ok(());
    }
    Err(format!(
        "kernel {:?} has {} bindings and {} bytes of immediates, but the dispatch has {} and {}",
        dispatch.kernel, expected.0, expected.1, actual.0, actual.1
    ))
}
