//! The backends, and the table of those that this build has.

#[cfg(feature = "cpu")]
mod cpu;
#[cfg(cuda)]
mod cuda;
pub(crate) mod fault;
pub(crate) mod null;
pub(crate) mod shared;
#[cfg(test)]
#[cfg(any(cuda, vulkan, wgpu))]
mod tests;
#[cfg(vulkan)]
mod vulkan;
#[cfg(vulkan)]
pub use vulkan::SpirvWriter;
#[cfg(wgpu)]
mod wgpu;

use crate::api::info::BackendKind;
use crate::api::library::LibraryStatus;
use crate::core::driver::{Adapter, LocalFuture};

/// Describes a buffer in errors: its label in backquotes, if it has one.
fn describe_buffer(label: &str) -> String {
    match label {
        "" => "an unnamed buffer".to_owned(),
        label => format!("`{label}`"),
    }
}

/// Returns the error text for a submission without times.
fn no_times(submission: u64) -> String {
    format!("submission {submission} was not timed, or its times were read or discarded")
}

/// The reason why a backend has no device, and what the user can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Absence {
    pub reason: String,
    pub help: String,
}

/// The devices that a backend found, at least one.
pub(crate) type Adapters = Vec<Box<dyn Adapter>>;

/// The devices of a backend, or why it has none.
pub(crate) type Found = Result<Adapters, Absence>;

/// A backend.
pub(crate) struct Backend {
    /// The value that identifies the backend in [`DeviceInfo`](crate::DeviceInfo).
    pub kind: BackendKind,
    /// Enumerates the devices; an error if there is none.
    pub find: fn() -> Found,
    /// The async form of `find`, where it differs.
    pub find_async: Option<fn() -> LocalFuture<'static, Found>>,
}

/// Returns the libraries that CUDA devices open on demand.
pub(crate) fn cuda_libraries() -> Vec<LibraryStatus> {
    #[cfg(cuda)]
    let libraries = cuda::libraries();
    #[cfg(not(cuda))]
    let libraries = Vec::new();
    libraries
}

/// Returns the version of NCCL as a number, such as 22803, and whether it can disable NVLink
/// multicast for a communicator.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn nccl_version() -> crate::Result<(u32, bool)> {
    #[cfg(cuda)]
    let version = cuda::nccl_version();
    #[cfg(not(cuda))]
    let version = Err(crate::api::native::library_error("NCCL", "a build without `cuda`"));
    version
}

/// Creates the id of a communicator of NCCL.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn nccl_unique_id() -> crate::Result<[u8; 128]> {
    #[cfg(cuda)]
    let id = cuda::nccl_unique_id();
    #[cfg(not(cuda))]
    let id = Err(crate::api::native::library_error("NCCL", "a build without `cuda`"));
    id
}

/// All backends of this build.
pub(crate) const BACKENDS: &[Backend] = &[
    #[cfg(cuda)]
    Backend { kind: BackendKind::Cuda, find: cuda::find, find_async: None },
    #[cfg(vulkan)]
    Backend { kind: BackendKind::Vulkan, find: vulkan::find, find_async: None },
    #[cfg(wgpu)]
    Backend { kind: BackendKind::Wgpu, find: wgpu::find, find_async: wgpu::FIND_ASYNC },
    #[cfg(feature = "cpu")]
    Backend { kind: BackendKind::Cpu, find: cpu::find, find_async: None },
    Backend { kind: BackendKind::Null, find: null::find, find_async: None },
];

/// Backends that this build excludes, and the features that enable them.
pub(crate) const LEFT_OUT: &[(BackendKind, &str)] = &[
    #[cfg(not(cuda))]
    (BackendKind::Cuda, "cuda"),
    #[cfg(not(vulkan))]
    (BackendKind::Vulkan, "vulkan"),
    #[cfg(not(wgpu))]
    (BackendKind::Wgpu, "wgpu"),
    #[cfg(not(feature = "cpu"))]
    (BackendKind::Cpu, "cpu"),
];
