//! Whether what commands name is there, and fits, before a GPU's driver sees it.

use crate::core::command::{Dispatch, Span};
use crate::core::driver::{KernelId, MemoryId};

/// What to say of an allocation that is none.
pub(crate) fn no_allocation(memory: MemoryId) -> String {
    format!("allocation {memory:?} does not exist, or was freed")
}

/// What to say of a kernel that is none.
pub(crate) fn no_kernel(kernel: KernelId) -> String {
    format!("kernel {kernel:?} does not exist, or was released")
}

/// What is wrong with a span of an allocation of `whole` bytes, if anything is.
pub(crate) fn check_span(span: Span, whole: u64) -> Result<(), String> {
    let Span { offset, size, .. } = span;
    match offset.checked_add(size) {
        Some(end) if size > 0 && end <= whole => Ok(()),
        _ => Err(format!("{size} bytes at {offset} are not in an allocation of {whole}")),
    }
}

/// What is wrong with what a dispatch gives a kernel of so many bindings and bytes of immediates,
/// if anything is.
pub(crate) fn check_fit(dispatch: &Dispatch, takes: (usize, usize)) -> Result<(), String> {
    let given = (dispatch.bindings.len(), dispatch.immediates.len());
    if given == takes {
        return Ok(());
    }
    Err(format!(
        "kernel {:?} takes {} bindings and {} bytes of immediates, and was given {} and {}",
        dispatch.kernel, takes.0, takes.1, given.0, given.1
    ))
}
