//! Tests of fault 29: no GPU, no driver, no loader; each in its own process.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::time::Duration;

use scry_gpu::{BackendKind, Device, GpuError, Result};
use scry_test_support::null;

use super::child::{Outcome, in_child_with};
use super::devices::check_works;

/// Checks the errors where there is no GPU: requests for one fail, and everything else works.
fn check_without_gpu() {
    check_works(&null());
    let rest = if Device::backends().contains(&BackendKind::Cpu) {
        check_works(&Device::auto().unwrap());
        vec!["cpu:0"]
    } else {
        assert_absent(Device::auto(), &[]);
        assert_absent(Device::open("0"), &[]);
        vec![]
    };
    let listed: Vec<_> =
        Device::list().iter().map(|info| format!("{}:{}", info.backend, info.index)).collect();
    assert_eq!(listed, rest);
    assert_eq!(Device::is_available(), !rest.is_empty());
    for attempt in Device::absent_backends() {
        assert!(!attempt.reason().is_empty() && !attempt.help().is_empty(), "{attempt:?}");
    }
    assert_absent(Device::with_backend(BackendKind::Vulkan), &[]);
    for selector in ["vulkan", "vulkan:0", "9"] {
        assert_absent(Device::open(selector), &rest);
    }
}

/// Returns the GPU driver libraries that this process has loaded.
#[cfg(target_os = "linux")]
fn loaded_gpu_drivers() -> Vec<&'static str> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    ["libvulkan", "libcuda"].into_iter().filter(|library| maps.contains(library)).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn opening_the_cpu_loads_no_gpu_driver() {
    let name = "absence::opening_the_cpu_loads_no_gpu_driver";
    let outcome = in_child_with(name, Duration::from_secs(60), &[], || {
        if !Device::backends().contains(&BackendKind::Cpu) {
            return;
        }
        check_works(&Device::open("cpu").unwrap());
        check_works(&Device::open("cpu:0").unwrap());
        check_works(&Device::with_backend(BackendKind::Cpu).unwrap());
        assert_eq!(loaded_gpu_drivers(), [""; 0]);
        // Listing all devices does load them, if there are any.
        if Device::list().iter().any(|info| info.backend == BackendKind::Vulkan) {
            assert!(loaded_gpu_drivers().contains(&"libvulkan"), "the test cannot see libraries");
        }
    });
    outcome.assert_finished();
}

#[test]
fn device_error_names_its_variable() {
    let name = "absence::device_error_names_its_variable";
    let variable = ("SCRY_DEVICE", OsString::from("vulkan:77"));
    let outcome = in_child_with(name, Duration::from_secs(60), &[variable], || {
        let error = Device::auto().expect_err("the index is beyond the list");
        let GpuError::NoDevice(no_device) = &error else { panic!("{error}") };
        assert_eq!(no_device.variable(), Some("SCRY_DEVICE"));
        assert_eq!(no_device.selector(), Some("vulkan:77"));
        println!("{error}");
        let error = Device::open("vulkan:77").expect_err("the index is beyond the list");
        assert!(error.to_string().starts_with("no device matches `vulkan:77`"), "{error}");
        assert!(!error.to_string().contains("SCRY_DEVICE"), "{error}");
    });
    let output = outcome.assert_finished();
    for words in ["SCRY_DEVICE=vulkan:77 matches no device", "help: set SCRY_DEVICE to a device"] {
        assert!(output.contains(words), "`{words}` is not in: {output}");
    }
}

/// Checks the errors where there is no CUDA device; there may be other devices, which must work.
fn check_without_cuda() {
    let devices = Device::list();
    assert!(devices.iter().all(|info| info.backend != BackendKind::Cuda), "{devices:?}");
    let rest: Vec<_> =
        devices.iter().map(|info| format!("{}:{}", info.backend, info.index)).collect();
    for selector in &rest {
        check_works(&Device::open(selector).unwrap());
    }
    let rest: Vec<_> = rest.iter().map(String::as_str).collect();
    assert_absent(Device::with_backend(BackendKind::Cuda), &[]);
    for selector in ["cuda", "cuda:0"] {
        assert_absent(Device::open(selector), &rest);
    }
    let absent = Device::absent_backends();
    let cuda = absent.iter().find(|attempt| attempt.backend() == BackendKind::Cuda).unwrap();
    assert!(!cuda.reason().is_empty() && !cuda.help().is_empty(), "{cuda:?}");
}

/// Checks that no device was found, and that the error lists the selectors `others`.
fn assert_absent(result: Result<Device>, others: &[&str]) {
    match result {
        Err(GpuError::NoDevice(no_device)) => {
            println!("{no_device}");
            assert!(!no_device.attempts().is_empty(), "{no_device:?}");
            let selectors = no_device.present().iter().map(|it| it.split(' ').next().unwrap());
            assert!(selectors.eq(others.iter().copied()), "{no_device:?}");
        }
        other => panic!("{other:?}"),
    }
}

/// Runs `body` in a child with these environment variables. Other variables that require, select or
/// validate devices have no effect in it.
fn in_isolated_child(
    name: &str,
    variables: &[(&'static str, OsString)],
    body: impl FnOnce(),
) -> Outcome {
    let required = ["SCRY_REQUIRE_VULKAN", "SCRY_REQUIRE_CUDA"];
    let mut all = required.map(|name| (name, OsString::from("0"))).to_vec();
    all.extend(["SCRY_VALIDATE", "SCRY_DEVICE"].map(|name| (name, OsString::new())));
    all.extend_from_slice(variables);
    in_child_with(name, Duration::from_secs(30), &all, body)
}

/// Returns the environment variable that hides GPUs from CUDA, but not from Vulkan.
fn hide_cuda_devices() -> (&'static str, OsString) {
    ("CUDA_VISIBLE_DEVICES", OsString::new())
}

/// Runs [`check_without_gpu`] in a child in which these variables hide GPUs from Vulkan.
fn run_without_gpus(name: &str, variables: &[(&'static str, OsString)]) -> Outcome {
    in_isolated_child(name, &[variables, &[hide_cuda_devices()]].concat(), check_without_gpu)
}

/// Checks that the child printed that there is no Vulkan device, and these words.
fn assert_no_vulkan(outcome: Outcome, words: &[&str]) {
    assert_no_device("vulkan", outcome, words);
}

fn assert_no_device(backend: &str, outcome: Outcome, words: &[&str]) {
    assert_output(outcome, &[&[&*format!("no device matches `{backend}`")], words].concat());
}

fn assert_output(outcome: Outcome, words: &[&str]) {
    let output = outcome.assert_finished();
    for word in ["help: "].iter().chain(words) {
        assert!(output.contains(word), "`{word}` is not in: {output}");
    }
}

/// Creates a folder with libraries of these names, which `make` writes, and returns the environment
/// variable with which the system finds them before the real ones.
fn shadowing_files(
    files: &[&str],
    make: impl Fn(&Path) -> std::io::Result<()>,
) -> (tempfile::TempDir, (&'static str, OsString)) {
    let folder = tempfile::tempdir().unwrap();
    for file in files {
        make(&folder.path().join(file)).unwrap();
    }
    let path = ("LD_LIBRARY_PATH", folder.path().as_os_str().to_owned());
    (folder, path)
}

/// Checks the errors while a file that `make` writes hides the Vulkan loader.
fn check_without_loader(name: &str, make: impl Fn(&Path) -> std::io::Result<()>) {
    let (_folder, path) = shadowing_files(&["libvulkan.so.1"], make);
    assert_no_vulkan(run_without_gpus(name, &[path]), &["vulkan: ", "libvulkan"]);
}

/// Checks the errors, which must contain these words, while a file that `make` writes hides
/// NVIDIA's driver library.
fn check_without_libcuda(name: &str, make: impl Fn(&Path) -> std::io::Result<()>, words: &[&str]) {
    if fs::exists("/usr/lib/wsl/lib/libcuda.so.1").unwrap_or(false) {
        eprintln!("skipped fault 29, no libcuda: it is at a fixed path, which cannot be shadowed");
        return;
    }
    let (_folder, path) = shadowing_files(&["libcuda.so.1", "libcuda.so"], make);
    let outcome = in_isolated_child(name, &[path], check_without_cuda);
    assert_no_device("cuda", outcome, &[&["cuda: ", "libcuda.so.1"], words].concat());
}

fn write_garbage(path: &Path) -> std::io::Result<()> {
    fs::write(path, "not a library")
}

/// Returns the path of a valid library without the functions of Vulkan and CUDA.
fn other_library() -> Option<&'static str> {
    let other = ["/lib/x86_64-linux-gnu/libm.so.6", "/usr/lib64/libm.so.6", "/lib/libm.so.6"];
    other.into_iter().find(|path| fs::exists(path).unwrap_or(false))
}

#[test]
#[cfg(target_os = "linux")]
fn fault_29_no_loader() {
    check_without_loader("absence::fault_29_no_loader", write_garbage);
}

#[test]
#[cfg(target_os = "linux")]
fn fault_29_invalid_vulkan_loader() {
    let Some(other) = other_library() else {
        eprintln!("skipped fault 29, an invalid loader: no other library was found");
        return;
    };
    check_without_loader("absence::fault_29_invalid_vulkan_loader", |path| {
        std::os::unix::fs::symlink(other, path)
    });
}

#[test]
#[cfg(target_os = "linux")]
fn fault_29_no_libcuda() {
    let words = ["could not be opened", "install NVIDIA's driver"];
    check_without_libcuda("absence::fault_29_no_libcuda", write_garbage, &words);
}

#[test]
#[cfg(target_os = "linux")]
fn fault_29_invalid_libcuda() {
    let Some(other) = other_library() else {
        eprintln!("skipped fault 29, an invalid libcuda: no other library was found");
        return;
    };
    let make = |path: &Path| std::os::unix::fs::symlink(other, path);
    let words = ["has no function cuDriverGetVersion", "update NVIDIA's driver"];
    check_without_libcuda("absence::fault_29_invalid_libcuda", make, &words);
}

#[test]
fn fault_29_no_cuda_device() {
    let name = "absence::fault_29_no_cuda_device";
    let outcome = in_isolated_child(name, &[hide_cuda_devices()], check_without_cuda);
    if outcome.output.contains("NVIDIA's driver library could not be opened") {
        println!("skipped fault 29, a driver without CUDA devices: there is no driver");
        return assert_no_device("cuda", outcome, &["cuda: ", "install NVIDIA's driver"]);
    }
    let words = ["cuda: ", "CUDA_VISIBLE_DEVICES= restricts the visible devices"];
    assert_no_device("cuda", outcome, &words);
}

#[test]
fn fault_29_no_driver() {
    let nowhere = OsString::from("/nonexistent/icd.json");
    let variables = [("VK_DRIVER_FILES", nowhere.clone()), ("VK_ICD_FILENAMES", nowhere)];
    assert_no_vulkan(
        run_without_gpus("absence::fault_29_no_driver", &variables),
        &["vulkan: ", "Vulkan"],
    );
}

#[test]
fn fault_29_missing_driver_library() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = folder.path().join("icd.json");
    let text = r#"{"file_format_version": "1.0.0",
        "ICD": {"library_path": "/nonexistent/libvulkan_absent.so", "api_version": "1.3.0"}}"#;
    fs::write(&manifest, text).unwrap();
    let manifest = manifest.into_os_string();
    let variables = [("VK_DRIVER_FILES", manifest.clone()), ("VK_ICD_FILENAMES", manifest)];
    let name = "absence::fault_29_missing_driver_library";
    assert_no_vulkan(run_without_gpus(name, &variables), &["vulkan: ", "Vulkan"]);
}

#[test]
fn fault_29_invalid_vulkan_manifest() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = folder.path().join("icd.json");
    fs::write(&manifest, "{\"ICD\": [").unwrap();
    let manifest = manifest.into_os_string();
    let variables = [("VK_DRIVER_FILES", manifest.clone()), ("VK_ICD_FILENAMES", manifest)];
    let name = "absence::fault_29_invalid_vulkan_manifest";
    assert_no_vulkan(run_without_gpus(name, &variables), &["vulkan: ", "Vulkan"]);
}

#[test]
fn fault_29_backend_selected_by_environment() {
    let nowhere = OsString::from("/nonexistent/icd.json");
    let variables = [
        ("VK_DRIVER_FILES", nowhere.clone()),
        ("VK_ICD_FILENAMES", nowhere),
        ("SCRY_DEVICE", OsString::from("vulkan")),
    ];
    let name = "absence::fault_29_backend_selected_by_environment";
    let outcome = in_isolated_child(name, &variables, || {
        let rest = Device::list();
        let rest: Vec<_> =
            rest.iter().map(|info| format!("{}:{}", info.backend, info.index)).collect();
        let rest: Vec<_> = rest.iter().map(String::as_str).collect();
        // Another device must not be returned for a requested one.
        assert_absent(Device::auto(), &rest);
    });
    assert_output(outcome, &["SCRY_DEVICE=vulkan matches no device", "vulkan: ", "Vulkan"]);
}
