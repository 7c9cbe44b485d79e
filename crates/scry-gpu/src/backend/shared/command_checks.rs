//! Checks of commands before they reach a GPU's driver.

use crate::core::command::{BufferRange, Dispatch};
use crate::core::driver::{KernelId, MemoryId, MemoryKind, RecordingId};

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
        _ if size == 0 => Err(format!("a range at {offset} is empty")),
        _ => Err(format!("{size} bytes at {offset} are not in an allocation of {capacity}")),
    }
}

/// Returns the error text for a host access that is out of bounds, or to memory of another kind
/// than the call needs. `actual` is the kind of the allocation, and its size in bytes.
pub(crate) fn host_access_problem(
    actual: (MemoryKind, u64),
    call: &str,
    needed: MemoryKind,
    offset: u64,
    len: usize,
) -> String {
    match actual {
        (kind, _) if kind != needed => {
            format!("{call} needs {needed:?} memory, but the allocation is {kind:?} memory")
        }
        (kind, size) => {
            format!("{len} bytes at {offset} are not in {kind:?} memory of {size} bytes")
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::id::Slots;

    #[test]
    fn range_errors_name_the_problem() {
        let memory = Slots::default().insert(());
        let check = |offset, size| check_range(BufferRange { memory, offset, size }, 16);
        assert_eq!(check(4, 12), Ok(()));
        assert_eq!(check(4, 0), Err("a range at 4 is empty".to_owned()));
        let outside = "13 bytes at 4 are not in an allocation of 16";
        assert_eq!(check(4, 13), Err(outside.to_owned()));
        assert!(check(u64::MAX, 1).is_err());
    }

    #[test]
    fn host_access_errors_name_kind_or_range() {
        use MemoryKind::{Readback, Upload};
        assert_eq!(
            host_access_problem((Readback, 8), "write", Upload, 0, 4),
            "write needs Upload memory, but the allocation is Readback memory"
        );
        assert_eq!(
            host_access_problem((Upload, 8), "write", Upload, 6, 4),
            "4 bytes at 6 are not in Upload memory of 8 bytes"
        );
    }
}
