//! Errors whose cause is a device or its driver.

use std::time::Duration;

use super::label::{Label, labelled};

type StaticStr = &'static str;

error_structs! {
    /// A kernel exceeds a limit that this driver has beyond those of its API.
    #[error(
        "{}kernel `{kernel}` on {device}: {problem}; the limit of the driver, {driver}, is \
         {limit}; help: {help}",
        labelled(.label)
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
        /// Returns the limit, with its unit.
        limit: String,
        /// Returns what to do.
        help: String,
    }

    /// The device has no memory left for an allocation.
    #[error(
        "{device} is out of memory: {requested} bytes asked for {label}; {detail}; help: {help}"
    )]
    OutOfMemoryError {
        /// Returns the name of the device.
        device: String,
        /// Returns the size of the allocation in bytes.
        requested: u64,
        /// Returns what the memory was for.
        label: String,
        /// Returns what holds the memory at present.
        detail: String,
        /// Returns what to do.
        help: String,
    }

    /// Work needed longer than the time limit.
    #[error("work on {device} did not finish within the time limit of {limit:?}; help: {help}")]
    TimeoutError {
        /// Returns the name of the device.
        device: String,
        /// Returns the limit in force.
        limit: Duration,
        /// Returns what to do.
        help: String,
    }

    /// A wait was interrupted; the work continues.
    #[error(
        "the wait for {device} was interrupted by Device::interrupt, and the work continues; help: \
         wait again for its result"
    )]
    InterruptedError {
        /// Returns the name of the device.
        device: String,
    }

    /// The device is gone.
    #[error("{device} is lost: {reason}; help: drop it and open a new Device")]
    DeviceLostError {
        /// Returns the name of the device.
        device: String,
        /// Returns what happened.
        reason: String,
    }

    /// The driver refused a call for a reason that it does not explain further.
    #[error("{call} failed on {device}: {code}")]
    DriverError {
        /// Returns the name of the device.
        device: String,
        /// Returns the driver call.
        call: StaticStr,
        /// Returns the driver's error code.
        code: String,
    }
}
