//! CUDA versions and toolkit libraries in the report of `scry doctor`.

use std::fmt::Write;

use scry_gpu::{BackendKind, DeviceInfo, LibraryState, LibraryStatus};
use serde_json::{Value, json};

/// Returns the libraries that CUDA devices use, if one of these devices is a CUDA device.
pub fn used_by<'a>(devices: impl IntoIterator<Item = &'a DeviceInfo>) -> Vec<LibraryStatus> {
    let has_cuda = devices.into_iter().any(|info| info.backend == BackendKind::Cuda);
    if has_cuda { scry_gpu::cuda_libraries() } else { Vec::new() }
}

/// Formats the newest CUDA version that the driver supports, and the GPU's compute capability;
/// `None` except for CUDA devices.
pub fn versions(info: &DeviceInfo) -> Option<String> {
    let capability = capability_text(info)?;
    Some(format!("CUDA {}, compute capability {capability}", info.api_version))
}

/// Returns the compute capability as NVIDIA writes it: `9.0`; `None` except for CUDA devices.
pub fn capability_text(info: &DeviceInfo) -> Option<String> {
    info.compute_capability.map(|[major, minor]| format!("{major}.{minor}"))
}

/// Formats the libraries, each with its state.
pub fn text(libraries: &[LibraryStatus]) -> String {
    let mut text = String::new();
    for LibraryStatus { name, needed_by, state } in libraries {
        // Writing to a string cannot fail.
        let _ = match state {
            LibraryState::Found { file, version } => {
                writeln!(text, "{name} {version}  found as {file}\n    needed by {needed_by}")
            }
            LibraryState::Absent { reason, help } => writeln!(
                text,
                "{name}  not available: {reason}\n    needed only by {needed_by}\n    help: {help}"
            ),
        };
    }
    text
}

/// Returns a library as JSON.
pub fn to_json(library: &LibraryStatus) -> Value {
    let LibraryStatus { name, needed_by, state } = library;
    match state {
        LibraryState::Found { file, version } => json!({
            "name": name, "needed_by": needed_by, "found": true, "file": file, "version": version,
        }),
        LibraryState::Absent { reason, help } => json!({
            "name": name, "needed_by": needed_by, "found": false, "reason": reason,
            "help": help,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cuda_device() -> DeviceInfo {
        let mut info = scry_gpu::testing::null_info();
        info.backend = BackendKind::Cuda;
        info.api_version = "12.8".to_owned();
        info.compute_capability = Some([9, 0]);
        info
    }

    fn library(state: LibraryState) -> LibraryStatus {
        LibraryStatus { name: "NVRTC", needed_by: "Device::compile_cuda", state }
    }

    #[test]
    fn libraries_are_searched_for_cuda_only() {
        assert_eq!(used_by(&[scry_gpu::testing::null_info()]), []);
        let found = used_by(&[scry_gpu::testing::null_info(), cuda_device()]);
        let names: Vec<_> = found.iter().map(|library| library.name).collect();
        assert_eq!(names, ["NVRTC", "cuBLAS", "NCCL"]);
    }

    #[test]
    fn cuda_versions_are_shown() {
        let text = versions(&cuda_device());
        assert_eq!(text.as_deref(), Some("CUDA 12.8, compute capability 9.0"));
        assert_eq!(versions(&scry_gpu::testing::null_info()), None);
    }

    #[test]
    fn found_libraries_show_version_and_file() {
        let (file, version) = ("/cuda/lib64/libnvrtc.so.12".to_owned(), "12.8".to_owned());
        let found = library(LibraryState::Found { file, version });
        let expected = "NVRTC 12.8  found as /cuda/lib64/libnvrtc.so.12\n    needed by \
                        Device::compile_cuda\n";
        assert_eq!(text(std::slice::from_ref(&found)), expected);
        let document = to_json(&found);
        assert_eq!(document["found"], true);
        assert_eq!(document["version"], "12.8");
    }

    #[test]
    fn absent_libraries_show_reason_and_help() {
        let (reason, help) = ("none of a, b was found".to_owned(), "install it".to_owned());
        let absent = library(LibraryState::Absent { reason, help });
        let expected = "NVRTC  not available: none of a, b was found\n    needed only by \
                        Device::compile_cuda\n    help: install it\n";
        assert_eq!(text(std::slice::from_ref(&absent)), expected);
        let document = to_json(&absent);
        assert_eq!(document["found"], false);
        assert_eq!(document["help"], "install it");
    }
}
