//! Errors that name the public function that was called.

use std::borrow::Cow;

use super::{
    DeviceLostError, DriverError, GpuError, GroupError, InterruptedError, LanguageError,
    LibraryError, OutOfMemoryError, Result, SourceError, TimeoutError, TooLargeError,
    UnsupportedError, WouldBlockError,
};

/// Names the public function in the error of a result.
pub(crate) trait InFunction {
    /// Sets the function that was called. The outermost of nested functions wins: the program
    /// called that one.
    fn in_function(self, function: impl Into<Cow<'static, str>>) -> Self;
}

impl<T> InFunction for Result<T> {
    fn in_function(self, function: impl Into<Cow<'static, str>>) -> Self {
        self.map_err(|error| error.in_function(function))
    }
}

impl GpuError {
    /// Sets the function that was called, in variants that need it: for libraries, whose callers
    /// know only the library's function. The other variants contain a function already, or name the
    /// kernel, the source or the selector instead.
    ///
    /// ```
    /// use scry_gpu::{Device, GpuError};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let error = gpu.alloc::<f32>(usize::MAX / 8).unwrap_err();
    /// let error = error.in_function("Library::sort");
    /// assert!(error.to_string().starts_with("Library::sort: "));
    /// # Ok::<(), GpuError>(())
    /// ```
    #[must_use]
    pub fn in_function(self, function: impl Into<Cow<'static, str>>) -> Self {
        let function = Some(function.into());
        match self {
            Self::Unsupported(error) => Self::Unsupported(UnsupportedError { function, ..error }),
            Self::Language(error) => Self::Language(LanguageError { function, ..error }),
            Self::Source(error) => Self::Source(SourceError { function, ..error }),
            Self::Library(error) => Self::Library(LibraryError { function, ..error }),
            Self::OutOfMemory(error) => Self::OutOfMemory(OutOfMemoryError { function, ..error }),
            Self::Timeout(error) => Self::Timeout(TimeoutError { function, ..error }),
            Self::Interrupted(error) => Self::Interrupted(InterruptedError { function, ..error }),
            Self::DeviceLost(error) => Self::DeviceLost(DeviceLostError { function, ..error }),
            Self::TooLarge(error) => Self::TooLarge(TooLargeError { function, ..error }),
            Self::WouldBlock(error) => Self::WouldBlock(WouldBlockError { function, ..error }),
            Self::Driver(error) => Self::Driver(DriverError { function, ..error }),
            Self::Group(error) => Self::Group(GroupError { function, ..error }),
            other => other,
        }
    }
}
