//! Fault 29: no GPU, no driver, no loader; each in a process of its own.

use std::ffi::OsString;
use std::fs;
use std::time::Duration;

use scry_gpu::{BackendKind, Device, GpuError};

use super::child::{Outcome, in_child_with};
use super::devices::{check_works, null};

/// What a program hears that asks for a device where there is none.
fn report() {
    println!("available: {}", Device::is_available());
    println!("listed: {}", Device::list().len());
    for attempt in Device::absent_backends() {
        assert!(!attempt.reason.is_empty() && !attempt.remedy.is_empty(), "{attempt:?}");
    }
    let opened = [
        Device::auto(),
        Device::with_backend(BackendKind::Vulkan),
        Device::open("vulkan"),
        Device::open("vulkan:0"),
        Device::open("0"),
    ];
    for result in opened {
        match result {
            Err(GpuError::NoDevice(no_device)) => {
                println!("{no_device}");
                assert!(!no_device.attempts.is_empty(), "{no_device:?}");
                assert!(no_device.present.is_empty(), "{no_device:?}");
            }
            other => panic!("{other:?}"),
        }
    }
    // What needs no GPU goes on.
    check_works(&null());
}

fn without_devices(name: &str, variables: &[(&str, OsString)]) -> Outcome {
    let mut all = vec![("SCRY_REQUIRE_VULKAN", OsString::from("0"))];
    all.extend(["SCRY_VALIDATE", "SCRY_DEVICE"].map(|name| (name, OsString::new())));
    all.extend_from_slice(variables);
    in_child_with(name, Duration::from_secs(30), &all, report)
}

/// The report must say that there is nothing, and these words.
fn tells(outcome: Outcome, words: &[&str]) {
    let told = outcome.ended_well();
    let always =
        ["available: false", "listed: 0", "no device to compute on was found", "to mend it:"];
    for word in always.iter().chain(words) {
        assert!(told.contains(word), "`{word}` is not in: {told}");
    }
}

/// Hides the loader behind a file of its name that is no library, or another one.
fn without_loader(name: &str, make: impl FnOnce(&std::path::Path) -> std::io::Result<()>) {
    let folder = tempfile::tempdir().unwrap();
    for file in ["libvulkan.so.1", "libvulkan.so"] {
        let _ = fs::remove_file(folder.path().join(file));
    }
    make(&folder.path().join("libvulkan.so.1")).unwrap();
    let path = ("LD_LIBRARY_PATH", folder.path().as_os_str().to_owned());
    tells(without_devices(name, &[path]), &["vulkan: ", "libvulkan"]);
}

#[test]
#[cfg(target_os = "linux")]
fn fault_29_no_loader() {
    let garbage = |path: &std::path::Path| fs::write(path, "this is no library");
    without_loader("absence::fault_29_no_loader", garbage);
}

#[test]
#[cfg(target_os = "linux")]
fn fault_29_a_loader_that_is_none() {
    // A library, and a sound one, but without Vulkan's functions.
    let other = ["/lib/x86_64-linux-gnu/libm.so.6", "/usr/lib64/libm.so.6", "/lib/libm.so.6"];
    let Some(other) = other.iter().find(|path| fs::exists(path).unwrap_or(false)) else {
        eprintln!("skipped fault 29, a loader that is none: no other library was found");
        return;
    };
    without_loader("absence::fault_29_a_loader_that_is_none", |path| {
        std::os::unix::fs::symlink(other, path)
    });
}

#[test]
fn fault_29_no_driver() {
    let nowhere = OsString::from("/nonexistent/icd.json");
    let variables = [("VK_DRIVER_FILES", nowhere.clone()), ("VK_ICD_FILENAMES", nowhere)];
    tells(without_devices("absence::fault_29_no_driver", &variables), &["vulkan: ", "Vulkan"]);
}

#[test]
fn fault_29_a_driver_whose_library_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = folder.path().join("icd.json");
    let text = r#"{"file_format_version": "1.0.0",
        "ICD": {"library_path": "/nonexistent/libvulkan_absent.so", "api_version": "1.3.0"}}"#;
    fs::write(&manifest, text).unwrap();
    let manifest = manifest.into_os_string();
    let variables = [("VK_DRIVER_FILES", manifest.clone()), ("VK_ICD_FILENAMES", manifest)];
    let name = "absence::fault_29_a_driver_whose_library_is_missing";
    tells(without_devices(name, &variables), &["vulkan: ", "Vulkan"]);
}

#[test]
fn fault_29_a_manifest_that_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = folder.path().join("icd.json");
    fs::write(&manifest, "{\"ICD\": [").unwrap();
    let manifest = manifest.into_os_string();
    let variables = [("VK_DRIVER_FILES", manifest.clone()), ("VK_ICD_FILENAMES", manifest)];
    let name = "absence::fault_29_a_manifest_that_is_none";
    tells(without_devices(name, &variables), &["vulkan: ", "Vulkan"]);
}
