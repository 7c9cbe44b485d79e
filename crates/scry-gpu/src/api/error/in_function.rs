//! Errors that name the public function that was called.

use std::borrow::Cow;

use super::{
    DeviceLostError, DriverError, GpuError, InterruptedError, LanguageError, LibraryError,
    OutOfMemoryError, Result, SourceError, TimeoutError, TooLargeError, UnsupportedError,
    WouldBlockError,
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
    /// Sets the function that was called, in variants that need it. The others contain it already,
    /// or name the kernel or source instead.
    pub(crate) fn in_function(self, function: impl Into<Cow<'static, str>>) -> Self {
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
            other => other,
        }
    }
}
