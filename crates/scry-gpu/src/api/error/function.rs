//! The function that was called, in errors that arise below it.

use std::borrow::Cow;

use super::{
    DeviceLostError, DriverError, GpuError, InterruptedError, LibraryError, OutOfMemoryError,
    Result, SourceError, TimeoutError, UnsupportedError,
};

/// The function that the program called, such as `Device::upload`.
pub(super) type Function = Option<Cow<'static, str>>;

/// The function that was called, as it stands before the rest of a text.
pub(super) fn called(function: &Function) -> String {
    function.as_ref().map(|function| format!("{function}: ")).unwrap_or_default()
}

/// Names the public function in the error of a result.
pub(crate) trait InFunction {
    /// The same, with the function that was called. Of nested functions the outermost stays: the
    /// program called that one.
    fn in_function(self, function: impl Into<Cow<'static, str>>) -> Self;
}

impl<T> InFunction for Result<T> {
    fn in_function(self, function: impl Into<Cow<'static, str>>) -> Self {
        self.map_err(|error| error.in_function(function))
    }
}

impl GpuError {
    /// The error with the function that was called. Other variants name it by themselves, or name
    /// the kernel or source instead.
    pub(crate) fn in_function(self, function: impl Into<Cow<'static, str>>) -> Self {
        let function = Some(function.into());
        match self {
            Self::Unsupported(error) => Self::Unsupported(UnsupportedError { function, ..error }),
            Self::Source(error) => Self::Source(SourceError { function, ..error }),
            Self::Library(error) => Self::Library(LibraryError { function, ..error }),
            Self::OutOfMemory(error) => Self::OutOfMemory(OutOfMemoryError { function, ..error }),
            Self::Timeout(error) => Self::Timeout(TimeoutError { function, ..error }),
            Self::Interrupted(error) => Self::Interrupted(InterruptedError { function, ..error }),
            Self::DeviceLost(error) => Self::DeviceLost(DeviceLostError { function, ..error }),
            Self::Driver(error) => Self::Driver(DriverError { function, ..error }),
            other => other,
        }
    }
}
