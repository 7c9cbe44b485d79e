//! Libraries that some calls open when they are first needed, and whether they are there.

use crate::backend;

/// A library that some calls need and the rest does without.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LibraryStatus {
    /// The library, as its maker calls it: `NVRTC`.
    pub name: &'static str,
    /// The calls that need it.
    pub needed_by: &'static str,
    /// Whether the library can be opened.
    pub state: LibraryState,
}

/// Whether a library can be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LibraryState {
    /// It was opened, and has what is needed of it.
    Found {
        /// The file: a name where the system looked it up, otherwise a path.
        file: String,
        /// The library's own version, such as `12.8`.
        version: String,
    },
    /// Calls that need it fail, and say this.
    Absent {
        /// The names and folders that were tried, with the result of each.
        reason: String,
        /// How to get it.
        help: String,
    },
}

/// The libraries of NVIDIA's toolkit that CUDA devices use, each opened to see whether it works:
/// NVRTC for kernels in CUDA C, cuBLAS for its matrix products. Kernels in WGSL need neither.
///
/// A library that is found stays loaded. None is listed in a build without the feature `cuda`.
///
/// ```
/// use scry_gpu::LibraryState;
///
/// for library in scry_gpu::cuda_libraries() {
///     let told = match library.state {
///         LibraryState::Found { file, version } => format!("{version}, found as {file}"),
///         LibraryState::Absent { reason, help } => format!("{reason}; help: {help}"),
///     };
///     println!("{}: {told}", library.name);
/// }
/// ```
#[must_use]
pub fn cuda_libraries() -> Vec<LibraryStatus> {
    backend::cuda_libraries()
}
