//! Errors caused by a device or its driver.

use std::time::Duration;

use super::function::{Function, function_prefix};
use super::label::{Label, label_prefix};

type StaticStr = &'static str;

/// A limit of a driver, with its unit.
type DriverLimit = Option<String>;

/// A number of bytes, if it is known.
type ByteCount = Option<u64>;

/// The help for a driver call that failed without an explanation.
pub(crate) const DRIVER_FAILED: &str =
    "update the driver; if it still fails, report it with the output of `scry doctor`";

/// The help for internal errors, which no program should be able to cause.
pub(crate) const DEFECT: &str =
    "report this defect of scry-gpu, with the kernel and the output of `scry doctor`";

error_structs! {
    /// A kernel exceeds an undocumented limit of this driver, or uses what the driver computes
    /// wrongly.
    #[error(
        "{}kernel `{kernel}` on {device}: {problem}; {}; help: {help}",
        label_prefix(.label),
        driver_and_limit(.driver, .limit)
    )]
    KernelError {
        /// Returns the name of the kernel's source, if
        /// [`CompileOptions::label`](crate::CompileOptions::label) gave it one.
        label: Label,
        /// Returns the entry point of the kernel.
        kernel: String,
        /// Returns the name of the device.
        device: String,
        /// Returns the name and version of the driver.
        driver: String,
        /// Returns what happened, and to which launch of a batch.
        problem: String,
        /// Returns the limit, with its unit; `None` if the driver failed a self-test.
        limit: DriverLimit,
        /// Returns what to do.
        help: String,
    }

    /// The device has no memory left for an allocation.
    #[error(
        "{}{device} is out of memory: {}requested for {label}; {detail}; help: {help}",
        function_prefix(.function),
        byte_count(.requested)
    )]
    OutOfMemoryError {
        /// Returns the function that was called, such as `Device::alloc`.
        function: Function,
        /// Returns the name of the device.
        device: String,
        /// Returns the size of the allocation in bytes; `None` for memory that a driver or a
        /// library allocates for itself.
        requested: ByteCount,
        /// Returns the purpose of the memory.
        label: String,
        /// Returns the current users of the memory.
        detail: String,
        /// Returns what to do.
        help: String,
    }

    /// Work exceeded the time limit.
    #[error(
        "{}work on {device} did not finish within the time limit of {limit:?}; help: {help}",
        function_prefix(.function)
    )]
    TimeoutError {
        /// Returns the function that was called, such as `Device::wait`.
        function: Function,
        /// Returns the name of the device.
        device: String,
        /// Returns the time limit.
        limit: Duration,
        /// Returns what to do.
        help: String,
    }

    /// A wait was interrupted; the work continues.
    #[error(
        "{}the wait for {device} was interrupted by Device::interrupt, and the work continues; \
         help: wait again for its result",
        function_prefix(.function)
    )]
    InterruptedError {
        /// Returns the function that was called, such as `Device::wait`.
        function: Function,
        /// Returns the name of the device.
        device: String,
    }

    /// The device is lost.
    #[error(
        "{}{device} is lost: {reason}; help: drop it and open a new Device",
        function_prefix(.function)
    )]
    DeviceLostError {
        /// Returns the function that was called, such as `Device::run`.
        function: Function,
        /// Returns the name of the device.
        device: String,
        /// Returns what happened.
        reason: String,
    }

    /// A driver call failed with an error code that has no variant of its own.
    #[error(
        "{}{}{call} failed on {device}: {code}{}help: {help}",
        label_prefix(.label),
        function_prefix(.function),
        separator(.code)
    )]
    DriverError {
        /// Returns the name of the source of the kernel that was compiled or launched, if
        /// [`CompileOptions::label`](crate::CompileOptions::label) gave it one.
        label: Label,
        /// Returns the function that was called, such as `Device::compile`.
        function: Function,
        /// Returns the name of the device.
        device: String,
        /// Returns the driver call.
        call: StaticStr,
        /// Returns the driver's error code.
        code: String,
        /// Returns what to do.
        help: String,
    }
}

impl DriverError {
    /// Creates an error that names neither a kernel's source nor the function that was called.
    pub(crate) fn new(device: &str, call: StaticStr, code: String, help: &str) -> Self {
        let (device, help) = (device.to_owned(), help.to_owned());
        Self { label: None, function: None, device, call, code, help }
    }

    /// Returns the text without label, function and help.
    pub(crate) fn problem(&self) -> String {
        format!("{} failed on {}: {}", self.call, self.device, self.code)
    }
}

/// Returns the part of a text that names the driver, and its limit if it has one.
fn driver_and_limit(driver: &str, limit: &DriverLimit) -> String {
    match limit {
        Some(limit) => format!("the limit of the driver, {driver}, is {limit}"),
        None => format!("the driver is {driver}"),
    }
}

/// Returns the part of a text that contains the requested size, if it is known.
fn byte_count(requested: &ByteCount) -> String {
    requested.map_or_else(String::new, |bytes| format!("{bytes} bytes "))
}

/// Returns the separator before the help: a semicolon, or a line break after a code of several
/// lines.
fn separator(code: &str) -> &'static str {
    if code.contains('\n') { "\n" } else { "; " }
}
