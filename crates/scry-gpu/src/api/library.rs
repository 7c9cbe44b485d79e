//! The status of libraries that are loaded on first use.

use crate::backend;

/// The status of an optional library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LibraryStatus {
    /// The vendor's name, such as `NVRTC`.
    pub name: &'static str,
    /// The calls that need it.
    pub needed_by: &'static str,
    /// Whether the library can be opened.
    pub state: LibraryState,
}

/// Whether a library can be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LibraryState {
    /// It was opened, and has the required functions.
    Found {
        /// The file name if the system's search path has the library, otherwise the path.
        file: String,
        /// The library's own version, such as `12.8`.
        version: String,
    },
    /// It cannot be opened; calls that need it fail with this reason and help.
    Absent {
        /// The names and folders that were tried, with the result of each.
        reason: String,
        /// How to install it.
        help: String,
    },
}

/// Returns the status of the CUDA toolkit's libraries that CUDA devices use, after trying to open
/// each: NVRTC for kernels in CUDA C, cuBLAS for its matrix products. Kernels in WGSL need neither.
///
/// A library that is found stays loaded. The list is empty in a build without the feature `cuda`.
///
/// ```
/// use scry_gpu::LibraryState;
///
/// for library in scry_gpu::cuda_libraries() {
///     let status = match library.state {
///         LibraryState::Found { file, version } => format!("{version}, found as {file}"),
///         LibraryState::Absent { reason, help } => format!("{reason}; help: {help}"),
///     };
///     println!("{}: {status}", library.name);
/// }
/// ```
#[must_use]
pub fn cuda_libraries() -> Vec<LibraryStatus> {
    backend::cuda_libraries()
}
