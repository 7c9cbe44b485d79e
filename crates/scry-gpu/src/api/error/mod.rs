//! Errors: one enum with a struct per variant.

#[macro_use]
mod structs;
mod call;
mod device;
mod function;
mod group;
mod in_function;
mod kernel;
mod label;
mod search;

use std::fmt;

use scry_ir::ShaderError;

pub use call::{
    ArgumentError, BufferAccessError, TooLargeError, WouldBlockError, WrongDeviceError,
};
pub(crate) use device::{DEFECT, DRIVER_FAILED};
pub use device::{
    DeviceLostError, DriverError, InterruptedError, KernelError, OutOfMemoryError, TimeoutError,
};
pub use group::{GroupError, GroupFault};
pub(crate) use in_function::InFunction;
pub use kernel::{CapabilityError, LanguageError, LibraryError, SourceError, UnsupportedError};
pub use search::{Attempt, NoDevice};

/// The result of most calls.
pub type Result<T, E = GpuError> = std::result::Result<T, E>;

/// The cause of an error: the caller, the kernel or the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The caller: the arguments of the call are wrong.
    Usage,
    /// The kernel: it was rejected, or the device lacks what it needs.
    Kernel,
    /// The device, its driver or a library; also time limits and interrupted waits.
    Device,
}

/// The error of a failed call.
///
/// Buffers that neither the failed call nor a failed or cancelled launch uses keep their bytes, and
/// the device still works, unless the error is [`GpuError::DeviceLost`].
///
/// `Debug` prints the same text as `Display`: a `main` that returns [`Result`] prints a readable
/// error:
///
/// ```no_run
/// fn main() -> scry_gpu::Result<()> {
///     let gpu = scry_gpu::Device::open("vulkan:1")?;
///     println!("{}", gpu.info().name);
///     Ok(())
/// }
/// ```
///
/// Match the variants to react to an error. Each holds a struct with methods that return the
/// parts of the text:
///
/// ```
/// use scry_gpu::{Device, GpuError};
///
/// # fn main() -> scry_gpu::Result<()> {
/// let gpu = Device::open("cpu")?;
/// match gpu.alloc::<f32>(usize::MAX / 8) {
///     Err(GpuError::TooLarge(error)) => assert_eq!(error.limit_name(), "max_buffer_size"),
///     Err(GpuError::OutOfMemory(error)) => println!("{:?} bytes", error.requested()),
///     Err(other) => return Err(other),
///     Ok(buffer) => println!("{} elements", buffer.len()),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, thiserror::Error)]
#[error(transparent)]
#[non_exhaustive]
pub enum GpuError {
    /// No device could be opened.
    NoDevice(NoDevice),

    /// The WGSL source was rejected; the text shows the line.
    Shader(Box<ShaderError>),

    /// The kernel uses features that the device lacks.
    Unsupported(UnsupportedError),

    /// The device supports no variant of an operation of the kernel library, or lacks what a kernel
    /// needs.
    Capability(CapabilityError),

    /// The kernel is not WGSL, and the device only runs WGSL.
    Language(LanguageError),

    /// A kernel that is not WGSL was rejected by its compiler; the text has the compiler's
    /// messages.
    Source(SourceError),

    /// A library that the call needs cannot be opened or is too old.
    Library(LibraryError),

    /// An argument of a launch does not fit the kernel, or one of a function of the kernel library
    /// does not fit the others.
    Argument(ArgumentError),

    /// A kernel exceeds an undocumented limit of this driver, or uses what the driver computes
    /// wrongly: the kernel is rejected, or a launch was terminated early. The output of such a
    /// launch is incomplete; the device still works.
    Kernel(KernelError),

    /// A request exceeds a limit of the device.
    TooLarge(TooLargeError),

    /// An access to a buffer is invalid: its range, length, alignment or element type does not fit
    /// the buffer, or it reads a [`Download`](crate::Download) whose batch was not submitted.
    BufferAccess(BufferAccessError),

    /// A buffer or kernel of one device was used with another.
    WrongDevice(WrongDeviceError),

    /// The call would block a thread that must not block, such as the main thread of a browser.
    WouldBlock(WouldBlockError),

    /// The device has no memory left for an allocation.
    OutOfMemory(OutOfMemoryError),

    /// Work exceeded the time limit. The device cancels it and stays usable; if a kernel cannot be
    /// stopped, the device is lost, and later calls return [`GpuError::DeviceLost`].
    Timeout(TimeoutError),

    /// A wait was interrupted by [`Device::interrupt`](crate::Device::interrupt); the work
    /// continues.
    Interrupted(InterruptedError),

    /// The device is lost: it was reset or removed, or a kernel could not be stopped after a time
    /// limit. Open a new one.
    DeviceLost(DeviceLostError),

    /// A driver call failed with an error code that has no other variant.
    Driver(DriverError),

    /// A group of devices could not be formed, or a rank of it left, failed, made another call or
    /// did not call in time. The device still works; the group does not: form a new one.
    Group(GroupError),
}

impl GpuError {
    /// Returns what is at fault: the caller, the kernel, or the device.
    ///
    /// ```
    /// use scry_gpu::{Device, ErrorKind};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let error = gpu.compile("fn").unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Kernel);
    /// let error = gpu.alloc::<u8>(2)?.write(&[0; 3]).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Usage);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Argument(_)
            | Self::TooLarge(_)
            | Self::BufferAccess(_)
            | Self::WrongDevice(_)
            | Self::WouldBlock(_) => ErrorKind::Usage,
            Self::Group(error) if error.fault() == GroupFault::Mismatch => ErrorKind::Usage,
            Self::Shader(_)
            | Self::Unsupported(_)
            | Self::Capability(_)
            | Self::Language(_)
            | Self::Source(_)
            | Self::Kernel(_) => ErrorKind::Kernel,
            _ => ErrorKind::Device,
        }
    }

    /// Sets the name of the kernel's source, which begins the text.
    pub(crate) fn with_label(self, label: Option<&str>) -> Self {
        let Some(name) = label else { return self };
        let label = Some(name.to_owned());
        match self {
            Self::Shader(error) => error.with_label(name).into(),
            Self::Unsupported(error) => Self::Unsupported(UnsupportedError { label, ..error }),
            Self::Argument(error) => Self::Argument(ArgumentError { label, ..error }),
            Self::Kernel(error) => Self::Kernel(KernelError { label, ..error }),
            Self::Driver(error) => Self::Driver(DriverError { label, ..error }),
            Self::TooLarge(error) => Self::TooLarge(TooLargeError { label, ..error }),
            other => other,
        }
    }
}

impl fmt::Debug for GpuError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<ShaderError> for GpuError {
    fn from(error: ShaderError) -> Self {
        Self::Shader(Box::new(error))
    }
}

#[cfg(test)]
mod tests;
