//! Errors caused by the arguments of a call.

use super::function::{Function, function_prefix};
use super::label::{EntryPoint, Label, label_prefix};

type StaticStr = &'static str;

error_structs! {
    /// An argument of a launch does not fit the kernel, or one of a function of the kernel library
    /// does not fit the others.
    #[error(
        "{}{argument}{}{problem}; help: {help}",
        argument_prefix(.label, .function, .kernel),
        if .kernel.is_some() { ": " } else { " " }
    )]
    ArgumentError {
        /// Returns the name of the kernel's source, if
        /// [`CompileOptions::label`](crate::CompileOptions::label) gave it one.
        label: Label,
        /// Returns the function that was called, such as `Kernels::matmul`, if its argument is
        /// wrong. `None` for an argument of a kernel.
        function: Function,
        /// Returns the entry point of the kernel, if its argument is wrong.
        kernel: EntryPoint,
        /// Returns the argument: a binding with its WGSL name, a parameter of the function, or what
        /// is set for the launch, such as `immediates`.
        argument: String,
        /// Returns what is wrong with the argument.
        problem: String,
        /// Returns what to do.
        help: String,
    }

    /// A request exceeds a limit of the device.
    #[error(
        "{}{}{what} is {requested}, but {device} is limited to {limit} ({limit_name}); help: \
         {help}",
        label_prefix(.label),
        function_prefix(.function)
    )]
    TooLargeError {
        /// Returns the name of the kernel's source, if the call compiles or launches a kernel and
        /// [`CompileOptions::label`](crate::CompileOptions::label) gave it one.
        label: Label,
        /// Returns the function that was called, such as `Device::alloc`.
        function: Function,
        /// Returns what is too large.
        what: String,
        /// Returns the requested size, with its unit.
        requested: String,
        /// Returns the name of the device.
        device: String,
        /// Returns the device's limit, with its unit.
        limit: String,
        /// Returns the name of the limit: a field of [`Limits`](crate::Limits), or a description of
        /// a limit that is the same on all devices.
        limit_name: StaticStr,
        /// Returns what to do.
        help: String,
    }

    /// An access to a buffer is invalid: its range, length, alignment or element type does not fit
    /// the buffer, or it reads a [`Download`](crate::Download) whose batch was not submitted.
    #[error("{operation}: {problem}; help: {help}")]
    BufferAccessError {
        /// Returns the function that was called.
        operation: StaticStr,
        /// Returns what is wrong, with the numbers of elements or bytes.
        problem: String,
        /// Returns what to do.
        help: String,
    }

    /// The call would block a thread that must not block, such as the main thread of a browser.
    #[error(
        "{}{device} has unfinished work, and this thread must not block; help: {}",
        function_prefix(.function),
        await_instead(.function.as_deref())
    )]
    WouldBlockError {
        /// Returns the function that was called, such as `Buffer::download`.
        function: Function,
        /// Returns the name of the device.
        device: String,
    }

    /// A buffer or kernel of one device was used with another.
    #[error("{operation}: {what} belongs to {owner}, but was used with {user}; help: {help}")]
    WrongDeviceError {
        /// Returns the function that was called.
        operation: String,
        /// Returns the buffer or kernel, and which argument of the call it is.
        what: String,
        /// Returns the device that it belongs to.
        owner: String,
        /// Returns the device that it was used with.
        user: String,
        /// Returns what to do.
        help: String,
    }
}

impl TooLargeError {
    /// Renames what is too large, for libraries whose callers know neither the kernel nor its grid,
    /// and says what to do instead. The name of the kernel's source is dropped.
    #[must_use]
    pub fn with_subject(self, what: impl Into<String>, help: impl Into<String>) -> Self {
        Self { label: None, what: what.into(), help: help.into(), ..self }
    }
}

impl WrongDeviceError {
    /// Names the function and what belongs to the other device, for libraries whose callers do not
    /// know the kernel, and says what to do instead.
    #[must_use]
    pub fn with_subject(
        self,
        function: impl Into<String>,
        what: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self { operation: function.into(), what: what.into(), help: help.into(), ..self }
    }
}

impl ArgumentError {
    /// Creates the error for an argument of a function, for libraries of kernels; `problem` is the
    /// predicate of the sentence.
    ///
    /// ```
    /// use scry_gpu::{ArgumentError, GpuError};
    ///
    /// let error = GpuError::Argument(ArgumentError::new(
    ///     "Library::sort", "`bits`", "is 40, but keys have 32", "pass at most 32",
    /// ));
    /// assert_eq!(
    ///     error.to_string(),
    ///     "Library::sort: `bits` is 40, but keys have 32; help: pass at most 32"
    /// );
    /// ```
    #[must_use]
    pub fn new(
        function: &str,
        argument: impl Into<String>,
        problem: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self {
            label: None,
            function: Some(function.to_owned().into()),
            kernel: None,
            argument: argument.into(),
            problem: problem.into(),
            help: help.into(),
        }
    }
}

/// Functions that wait for the device, and the futures to await instead.
const ASYNC_FUNCTIONS: [(&str, &str); 21] = [
    ("Batch::submit", "the ticket of Batch::submit_async"),
    ("Batch::submit_timed", "Batch::submit_timed_async"),
    ("Buffer::download", "Buffer::download_async"),
    ("Buffer::download_into", "Buffer::download_async"),
    ("Buffer::from_fn", "Device::upload_async"),
    ("Buffer::get", "Buffer::download_async"),
    ("Buffer::upload", "Device::upload_async"),
    ("Buffer::write", "Buffer::write_async"),
    ("Buffer::write_at", "Slice::write_async"),
    ("Device::upload", "Device::upload_async"),
    ("Device::upload_bytes", "UntypedBuffer::write_bytes_async"),
    ("Device::wait", "Device::wait_async"),
    ("Download::get", "Download::get_async"),
    ("Slice::download", "Slice::download_async"),
    ("Slice::download_into", "Slice::download_async"),
    ("Slice::write", "Slice::write_async"),
    ("Ticket::wait", "the ticket"),
    ("Ticket::wait_timeout", "the ticket"),
    ("UntypedBuffer::download_bytes", "UntypedBuffer::download_bytes_async"),
    ("UntypedBuffer::download_bytes_into", "UntypedBuffer::download_bytes_async"),
    ("UntypedBuffer::write_bytes", "UntypedBuffer::write_bytes_async"),
];

/// Returns the help for a function that would block: the future to await instead.
fn await_instead(function: Option<&str>) -> String {
    let found = ASYNC_FUNCTIONS.iter().find(|(blocking, _)| Some(*blocking) == function);
    match found {
        Some((_, instead)) => format!("await {instead}"),
        None => "await Device::ready_async first".to_owned(),
    }
}

/// Returns the beginning of the text. For a function it is followed by the argument as subject and
/// the problem as predicate, for a kernel by the argument and a colon.
fn argument_prefix(label: &Label, function: &Function, kernel: &EntryPoint) -> String {
    match kernel {
        None => function_prefix(function),
        Some(kernel) => format!("{}kernel `{kernel}`, ", label_prefix(label)),
    }
}
