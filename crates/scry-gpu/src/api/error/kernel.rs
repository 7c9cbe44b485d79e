//! Errors caused by a kernel, or by a device that cannot run it.

use scry_ir::Features;

use super::function::{Function, function_prefix};
use super::label::{Label, label_prefix};
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

    /// A kernel of the kernel library uses instructions that the device lacks.
    #[error("{} needs {needed}, but {device} has {present}; help: {help}", subject(.kernel))]
    CapabilityError {
        /// Returns the name of the kernel, or the function that was called, such as
        /// `Kernels::matmul`.
        kernel: String,
        /// Returns the requirement, such as `compute capability 9.0`.
        needed: String,
        /// Returns the name of the device.
        device: String,
        /// Returns what the device has.
        present: String,
        /// Returns what to do.
        help: String,
    }

    /// The kernel is not WGSL, and the device only runs WGSL.
    #[error(
        "{} written in {language}, but this backend runs WGSL only: {device}; help: {help}",
        subject_and_verb(.kernel)
    )]
    LanguageError {
        /// Returns the entry point of the kernel, or the function that was called, such as
        /// `Kernels::new`.
        kernel: String,
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

/// Returns the subject of an error: a function, whose path contains `::`, or a kernel.
fn subject(kernel: &str) -> String {
    if kernel.contains("::") { kernel.to_owned() } else { format!("kernel `{kernel}`") }
}

/// Returns [`subject`] with a verb, to be followed by "written in".
fn subject_and_verb(kernel: &str) -> String {
    match kernel.contains("::") {
        true => format!("{kernel}: its kernels are"),
        false => format!("kernel `{kernel}` is"),
    }
}
