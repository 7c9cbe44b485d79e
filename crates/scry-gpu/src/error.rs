//! Every way in which a call can fail, and whose it is to mend.

use std::fmt;
use std::time::Duration;

use scry_ir::{Features, ShaderError};

use crate::info::BackendKind;
use crate::native::Language;

/// The result of most calls.
pub type Result<T, E = GpuError> = std::result::Result<T, E>;

/// Whose it is to mend an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The call's: its arguments do not fit.
    Usage,
    /// The shader's.
    Shader,
    /// The device's, or its driver's.
    Device,
}

/// Why a call failed.
///
/// Buffers that the failed call does not name keep their bytes, and the device still works, unless
/// the error is [`GpuError::DeviceLost`].
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GpuError {
    /// No device could be opened.
    #[error("{0}")]
    NoDevice(NoDevice),

    /// The WGSL source was refused; shows the line.
    #[error("{0}")]
    Shader(Box<ShaderError>),

    /// The kernel uses features that the device lacks.
    #[error("kernel `{kernel}` needs {features}, which {device} does not have; {remedy}")]
    Unsupported {
        /// Entry point of the kernel.
        kernel: String,
        /// What it uses and the device lacks.
        features: Features,
        /// Name of the device.
        device: String,
        /// Which devices present have it, or that none has.
        remedy: String,
    },

    /// A ready-made kernel uses instructions that the device lacks.
    #[error("kernel `{kernel}` needs {needed}, but {device} has {present}; {remedy}")]
    Capability {
        /// Name of the kernel.
        kernel: String,
        /// What it needs, such as `compute capability 9.0`.
        needed: String,
        /// Name of the device.
        device: String,
        /// What the device has.
        present: String,
        /// What to do.
        remedy: String,
    },

    /// The kernel is not WGSL, and the device runs nothing else.
    #[error(
        "kernel `{kernel}` is written in {language}, but this backend runs WGSL only: {device}; \
         {remedy}"
    )]
    Language {
        /// Entry point of the kernel.
        kernel: String,
        /// What it is written in.
        language: Language,
        /// Name of the device.
        device: String,
        /// What to do.
        remedy: String,
    },

    /// A kernel that is not WGSL was refused by its compiler; shows what that said.
    #[error("kernel `{kernel}`: its {language} was refused by {device}; {remedy}\n{log}")]
    Source {
        /// Entry point of the kernel.
        kernel: String,
        /// What it is written in.
        language: Language,
        /// Name of the device.
        device: String,
        /// What the compiler said.
        log: String,
        /// What to do.
        remedy: String,
    },

    /// A library that the call needs cannot be opened or is too old.
    #[error("{library} is not available: {problem}; {remedy}")]
    Library {
        /// The library.
        library: &'static str,
        /// What was tried, and what came of it.
        problem: String,
        /// How to get it.
        remedy: String,
    },

    /// An argument of a launch does not fit the kernel.
    #[error("kernel `{kernel}`, {argument}: {problem}; {remedy}")]
    Argument {
        /// Entry point of the kernel.
        kernel: String,
        /// Which argument, by WGSL name and place.
        argument: String,
        /// What is wrong with it.
        problem: String,
        /// What to do.
        remedy: String,
    },

    /// A kernel met a limit of the device's driver that no driver has to have: it is refused, or a
    /// launch did not run to its end. What such a launch was to write is incomplete; the device
    /// goes on.
    #[error(
        "kernel `{kernel}` on {device}: {problem}; the limit of the driver, {driver}, is {limit}; \
         {remedy}"
    )]
    Kernel {
        /// Entry point of the kernel.
        kernel: String,
        /// Name of the device.
        device: String,
        /// Name and version of the driver.
        driver: String,
        /// What happened, and to which launch of a batch.
        problem: String,
        /// The limit, with its unit.
        limit: String,
        /// What to do.
        remedy: String,
    },

    /// Something is larger than the device takes.
    #[error("{what} is {requested}, but {device} takes at most {limit} ({limit_name}); {remedy}")]
    TooLarge {
        /// What is too large.
        what: String,
        /// How large it is, with its unit.
        requested: String,
        /// Name of the device.
        device: String,
        /// The most that the device takes, with its unit.
        limit: String,
        /// Name of the limit, as in [`Limits`](crate::Limits).
        limit_name: &'static str,
        /// What to do.
        remedy: String,
    },

    /// A range does not lie within its buffer, or is not aligned.
    #[error("{operation}: {problem}; {remedy}")]
    Range {
        /// The call.
        operation: &'static str,
        /// What is wrong with the range, in elements.
        problem: String,
        /// What to do.
        remedy: String,
    },

    /// A buffer or kernel of one device was used with another.
    #[error("{what} belongs to {owner}, but was used with {user}; {remedy}")]
    WrongDevice {
        /// The buffer or kernel.
        what: String,
        /// The device that it belongs to.
        owner: String,
        /// The device that it was used with.
        user: String,
        /// What to do.
        remedy: String,
    },

    /// The device has no memory left for an allocation.
    #[error("{device} is out of memory: {requested} bytes asked for {label}; {detail}")]
    OutOfMemory {
        /// Name of the device.
        device: String,
        /// Bytes asked for.
        requested: u64,
        /// What the memory was for.
        label: String,
        /// What holds the memory at present, and what to do.
        detail: String,
    },

    /// Work took longer than the time limit. The CPU ends it and goes on; where the backend cannot
    /// stop a kernel, the device is given up, and later calls say [`GpuError::DeviceLost`].
    #[error("work on {device} did not finish within the time limit of {limit:?}; {remedy}")]
    Timeout {
        /// Name of the device.
        device: String,
        /// The limit in force.
        limit: Duration,
        /// What to do.
        remedy: String,
    },

    /// A wait was interrupted by [`Device::interrupt`](crate::Device::interrupt); the work goes on.
    #[error(
        "the wait for {device} was interrupted by Device::interrupt; the work \
         goes on, wait again for its result"
    )]
    Interrupted {
        /// Name of the device.
        device: String,
    },

    /// The device is gone: it was reset, removed, or given up after a time limit. Open a new one.
    #[error("{device} is lost: {reason}; drop it and open a new Device")]
    DeviceLost {
        /// Name of the device.
        device: String,
        /// What happened.
        reason: String,
    },

    /// The driver refused a call for a reason that it does not explain further.
    #[error("{call} failed on {device}: {code}")]
    Driver {
        /// Name of the device.
        device: String,
        /// The driver call.
        call: &'static str,
        /// The driver's error code.
        code: String,
    },
}

impl GpuError {
    /// Whose it is to mend the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Argument { .. }
            | Self::TooLarge { .. }
            | Self::Range { .. }
            | Self::WrongDevice { .. } => ErrorKind::Usage,
            Self::Shader(_)
            | Self::Unsupported { .. }
            | Self::Capability { .. }
            | Self::Language { .. }
            | Self::Source { .. } => ErrorKind::Shader,
            _ => ErrorKind::Device,
        }
    }
}

impl From<ShaderError> for GpuError {
    fn from(error: ShaderError) -> Self {
        Self::Shader(Box::new(error))
    }
}

/// No device: what was asked for, and what became of each backend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoDevice {
    /// The selector, where one was given.
    pub selector: Option<String>,
    /// What was tried, in order.
    pub attempts: Vec<Attempt>,
    /// Devices that are present but were not selected, as `backend:index name`.
    pub present: Vec<String>,
}

/// What became of one backend in the search for a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The backend.
    pub backend: BackendKind,
    /// Why it has no device.
    pub reason: String,
    /// What would change that.
    pub remedy: String,
}

impl fmt::Display for NoDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.selector {
            Some(selector) => write!(f, "no device matches `{selector}`")?,
            None => write!(f, "no device to compute on was found")?,
        }
        for Attempt { backend, reason, remedy } in &self.attempts {
            write!(f, "\n  {backend}: {reason}\n    to mend it: {remedy}")?;
        }
        if !self.present.is_empty() {
            write!(f, "\n  present: {}", self.present.join(", "))?;
        }
        Ok(())
    }
}
