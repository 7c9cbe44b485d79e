//! Reports which libraries of the toolkit are installed.

use std::ffi::c_int;

use super::driver_api::Cuda;
use super::nccl::{NVLS_CONFIG_VERSION, Nccl, UniqueId};
use crate::api::error::{DRIVER_FAILED, DriverError, GpuError, LibraryError, Result};
use crate::api::library::{LibraryState, LibraryStatus};
use crate::backend::cuda::compile::nvrtc::Nvrtc;
use crate::backend::cuda::queue::cublas;

/// Returns the state of each library; opens it in the same way as its first use does.
pub(in crate::backend) fn libraries() -> Vec<LibraryStatus> {
    vec![
        LibraryStatus {
            name: "NVRTC",
            needed_by: "Device::compile_cuda, for kernels in CUDA C",
            state: state(nvrtc_version()),
        },
        LibraryStatus {
            name: "cuBLAS",
            needed_by: "Device::cublas_matmul, for matrix products",
            state: state(cublas_version()),
        },
        LibraryStatus {
            name: "NCCL",
            needed_by: "DeviceGroup, for collectives of several GPUs",
            state: state(Nccl::shared().map(|it| (it.file().to_owned(), it.version_text()))),
        },
    ]
}

/// Returns the version of NCCL as a number, such as 22803, and whether it can disable NVLink
/// multicast for a communicator.
pub(in crate::backend) fn nccl_version() -> Result<(u32, bool)> {
    Nccl::shared().map(|nccl| (nccl.version(), nccl.version() >= NVLS_CONFIG_VERSION))
}

/// Creates the id of a communicator.
pub(in crate::backend) fn nccl_unique_id() -> Result<[u8; 128]> {
    let id = Nccl::shared()?.unique_id();
    let failed = |why| GpuError::Driver(DriverError::new("NCCL", "NCCL", why, DRIVER_FAILED));
    id.map(|UniqueId(bytes)| bytes).map_err(failed)
}

/// Returns the file and the version of NVRTC.
fn nvrtc_version() -> Result<(String, String)> {
    let nvrtc = Nvrtc::shared(driver_version())?;
    Ok((nvrtc.file().to_owned(), nvrtc.version_text()))
}

/// Returns the file and the version of cuBLAS.
fn cublas_version() -> Result<(String, String)> {
    cublas::file_and_version(driver_version())
}

/// Returns the CUDA version of the driver, which decides the version of a library that is
/// preferred. Without a driver the newest library is preferred.
fn driver_version() -> c_int {
    Cuda::shared().map_or(c_int::MAX, |cuda| cuda.version)
}

/// Converts the result of opening a library.
fn state(opened: Result<(String, String)>) -> LibraryState {
    match opened {
        Ok((file, version)) => LibraryState::Found { file, version },
        Err(GpuError::Library(LibraryError { problem, help, .. })) => {
            LibraryState::Absent { reason: problem, help }
        }
        Err(other) => LibraryState::Absent {
            reason: other.to_string(),
            help: "install another version of the library".to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_has_version_or_search_path() {
        let found = libraries();
        let names: Vec<_> = found.iter().map(|library| library.name).collect();
        assert_eq!(names, ["NVRTC", "cuBLAS", "NCCL"]);
        let expected = [
            ("libnvrtc", "install NVIDIA's CUDA toolkit"),
            ("libcublas", "install NVIDIA's CUDA toolkit"),
            ("libnccl", "install NCCL"),
        ];
        for (library, (file_name, hint)) in found.into_iter().zip(expected) {
            match library.state {
                LibraryState::Found { file, version } => {
                    assert!(file.contains(&library.name.to_lowercase()), "{file}");
                    let (major, minor) = version.split_once('.').unwrap();
                    assert!(major.parse::<u32>().unwrap() >= 2, "{version}");
                    assert!(minor.split('.').all(|part| part.parse::<u32>().is_ok()), "{version}");
                }
                LibraryState::Absent { reason, help } => {
                    let text = format!("{reason}; {help}");
                    let words = [file_name, hint];
                    assert!(words.iter().all(|word| text.contains(word)), "{words:?}: {text}");
                }
            }
        }
    }

    #[test]
    fn absence_differs_from_other_errors() {
        let absent = GpuError::Library(LibraryError {
            function: None,
            library: "NVRTC",
            problem: "none was found".to_owned(),
            help: "get one".to_owned(),
        });
        let expected =
            LibraryState::Absent { reason: "none was found".into(), help: "get one".into() };
        assert_eq!(state(Err(absent)), expected);
        let found = LibraryState::Found { file: "libnvrtc.so.12".into(), version: "12.8".into() };
        assert_eq!(state(Ok(("libnvrtc.so.12".into(), "12.8".into()))), found);
    }
}
