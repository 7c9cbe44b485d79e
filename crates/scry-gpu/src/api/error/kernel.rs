//! Errors caused by a kernel, or by a device that cannot run it.

use scry_ir::Features;

use super::function::{Function, function_prefix};
use super::label::{EntryPoint, Label, label_prefix};
use crate::api::native::Language;

type StaticStr = &'static str;

error_structs! {
    /// The kernel uses features that the device lacks.
    #[error(
        "{}{}kernel `{kernel}` needs {features}, which {device} does not have; help: {help}",
        label_prefix(.label),
        function_prefix(.function)
    )]
    UnsupportedError {
        /// Returns the function that was called, such as `Device::compile`.
        function: Function,
        /// Returns the name of the kernel's source, if
        /// [`CompileOptions::label`](crate::CompileOptions::label) gave it one.
        label: Label,
        /// Returns the entry point of the kernel.
        kernel: String,
        /// Returns the features that the kernel uses and the device lacks.
        features: Features,
        /// Returns the name of the device.
        device: String,
        /// Returns the present devices that have the features, or a text that none has.
        help: String,
    }

    /// The device supports no variant of an operation of the kernel library, or lacks what a kernel
    /// needs.
    #[error(
        "{} needs {needed}, but {device} has {present}; help: {help}",
        capability_subject(.function, .kernel)
    )]
    CapabilityError {
        /// Returns the function that was called, such as `Kernels::matmul`.
        function: Function,
        /// Returns the name of the kernel, if it is one of the program.
        kernel: EntryPoint,
        /// Returns the requirement, such as `compute capability 9.0`.
        needed: String,
        /// Returns the name of the device.
        device: String,
        /// Returns what the device has.
        present: String,
        /// Returns what to do.
        help: String,
    }

    /// The kernel is written in a language that the device does not run.
    #[error(
        "{}{} written in {language}, which this backend does not run: {device}; help: {help}",
        function_prefix(.function),
        language_subject(.kernel)
    )]
    LanguageError {
        /// Returns the function that was called, such as `Device::compile_ptx`.
        function: Function,
        /// Returns the entry point of the kernel; `None` for several kernels.
        kernel: EntryPoint,
        /// Returns the language of the kernel.
        language: Language,
        /// Returns the name of the device.
        device: String,
        /// Returns what to do.
        help: String,
    }

    /// A kernel that is not WGSL was rejected by its compiler.
    #[error(
        "{}kernel `{kernel}`: its {language} was rejected by {device}; help: {help}\n{log}",
        function_prefix(.function)
    )]
    SourceError {
        /// Returns the function that was called, such as `Device::compile_ptx`.
        function: Function,
        /// Returns the entry point of the kernel.
        kernel: String,
        /// Returns the language of the kernel.
        language: Language,
        /// Returns the name of the device.
        device: String,
        /// Returns the compiler's messages.
        log: String,
        /// Returns what to do.
        help: String,
    }

    /// A library that the call needs cannot be opened or is too old.
    #[error("{}{library} is not available: {problem}; help: {help}", function_prefix(.function))]
    LibraryError {
        /// Returns the function that was called, such as `Device::cublas_matmul`.
        function: Function,
        /// Returns the name of the library.
        library: StaticStr,
        /// Returns the attempts to open it, with their results.
        problem: String,
        /// Returns how to install it.
        help: String,
    }
}

impl CapabilityError {
    /// Creates the error of a function that selects kernels, for libraries of kernels: `device`,
    /// its name, has `present`, but the function needs `needed`.
    ///
    /// ```
    /// use scry_gpu::{CapabilityError, GpuError};
    ///
    /// let error = GpuError::Capability(CapabilityError::new(
    ///     "Library::sort", "subgroups", "GPU X", "none", "use Library::simple_sort",
    /// ));
    /// assert_eq!(
    ///     error.to_string(),
    ///     "Library::sort needs subgroups, but GPU X has none; help: use Library::simple_sort"
    /// );
    /// ```
    #[must_use]
    pub fn new(
        function: &str,
        needed: impl Into<String>,
        device: impl Into<String>,
        present: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self {
            function: Some(function.to_owned().into()),
            kernel: None,
            needed: needed.into(),
            device: device.into(),
            present: present.into(),
            help: help.into(),
        }
    }

    /// Names the kernel, for libraries that run kernels of the program.
    #[must_use]
    pub fn with_kernel(self, kernel: impl Into<String>) -> Self {
        Self { kernel: Some(kernel.into()), ..self }
    }
}

/// Returns the subject of the text: the kernel, or the function that selected it.
fn capability_subject(function: &Function, kernel: &EntryPoint) -> String {
    match (kernel, function) {
        (Some(kernel), function) => format!("{}kernel `{kernel}`", function_prefix(function)),
        (None, Some(function)) => function.to_string(),
        (None, None) => "the kernel".to_owned(),
    }
}

/// Returns the subject of the text and its verb, to be followed by "written in".
fn language_subject(kernel: &EntryPoint) -> String {
    match kernel {
        Some(kernel) => format!("kernel `{kernel}` is"),
        None => "its kernels are".to_owned(),
    }
}
