//! Checks that a buffer belongs to the device that uses it.

use std::sync::Arc;

use crate::api::error::{GpuError, Result, WrongDeviceError};
use crate::core::context::Context;

/// Returns the label in backquotes, or a description if it is empty.
pub(crate) fn quoted(label: &str) -> String {
    if label.is_empty() { "the buffer".to_owned() } else { format!("buffer `{label}`") }
}

/// Returns an error if a buffer belongs to another device. Errors name `operation`, the public
/// function, and `role`, the argument.
pub(crate) fn same_device(
    user: &Arc<Context>,
    (owner, label): (&Arc<Context>, &str),
    operation: &str,
    role: impl FnOnce() -> String,
) -> Result<()> {
    same_device_as(user, owner, operation, || format!("{} ({})", quoted(label), role()))
}

/// [`same_device`] for a caller that describes the buffer itself, with `what`.
pub(crate) fn same_device_as(
    user: &Arc<Context>,
    owner: &Arc<Context>,
    operation: &str,
    what: impl FnOnce() -> String,
) -> Result<()> {
    if Arc::ptr_eq(user, owner) {
        return Ok(());
    }
    Err(GpuError::WrongDevice(WrongDeviceError {
        operation: operation.to_owned(),
        what: what(),
        owner: owner.info.name.clone(),
        user: user.info.name.clone(),
        help: "use it with the Device that created it (opening one device twice creates two \
                 Devices; clone the Device instead), or copy the data by download and upload"
            .to_owned(),
    }))
}
