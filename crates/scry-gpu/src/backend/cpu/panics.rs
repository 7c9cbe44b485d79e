//! Panics of kernels: their texts.

use std::any::Any;

/// The panic of a host function: what happened.
pub(super) struct HostPanic(pub(super) String);

/// Returns what happened if a panic is one of a host function.
pub(super) fn panic_of_function(panic: &(dyn Any + Send)) -> Option<String> {
    panic.downcast_ref::<HostPanic>().map(|HostPanic(text)| text.clone())
}

/// Returns the message of a panic.
pub(super) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no panic message")
}
