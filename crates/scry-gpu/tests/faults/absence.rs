//! Fault 29: no GPU, no driver, no loader; each in a process of its own.

use std::ffi::OsString;
use std::fs;
use std::time::Duration;

use scry_gpu::{BackendKind, Device, GpuError, Result};

use super::child::{Outcome, in_child_with};
use super::devices::{check_works, null};

/// What a program hears that asks for a GPU where there is none.
fn report() {
    // What needs no GPU goes on.
    check_works(&null());
    let rest = if Device::backends().contains(&BackendKind::Cpu) {
        check_works(&Device::auto().unwrap());
        vec!["cpu:0"]
    } else {
        is_absent(Device::auto(), &[]);
        is_absent(Device::open("0"), &[]);
        vec![]
    };
    let listed: Vec<_> =
        Device::list().iter().map(|info| format!("{}:{}", info.backend, info.index)).collect();
    assert_eq!(listed, rest);
    assert_eq!(Device::is_available(), !rest.is_empty());
    for attempt in Device::absent_backends() {
        assert!(!attempt.reason.is_empty() && !attempt.remedy.is_empty(), "{attempt:?}");
    }
    is_absent(Device::with_backend(BackendKind::Vulkan), &[]);
    for selector in ["vulkan", "vulkan:0", "9"] {
        is_absent(Device::open(selector), &rest);
    }
}

/// There must be no such device, but the others that are named.
fn is_absent(result: Result<Device>, others: &[&str]) {
    match result {
        Err(GpuError::NoDevice(no_device)) => {
            println!("{no_device}");
            assert!(!no_device.attempts.is_empty(), "{no_device:?}");
            let selectors = no_device.present.iter().map(|it| it.split(' ').next().unwrap());
            assert!(selectors.eq(others.iter().copied()), "{no_device:?}");
        }
        other => panic!("{other:?}"),
    }
}

fn without_devices(name: &str, variables: &[(&str, OsString)]) -> Outcome {
    let mut all = vec![("SCRY_REQUIRE_VULKAN", OsString::from("0"))];
    all.extend(["SCRY_VALIDATE", "SCRY_DEVICE"].map(|name| (name, OsString::new())));
    all.extend_from_slice(variables);
    in_child_with(name, Duration::from_secs(30), &all, report)
}

/// The report must say that there is no such device, and these words.
fn tells(outcome: Outcome, words: &[&str]) {
    let told = outcome.ended_well();
    let always = ["no device matches `vulkan`", "to mend it:"];
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

#[test]
fn fault_29_a_backend_that_is_asked_for_in_the_environment() {
    let nowhere = OsString::from("/nonexistent/icd.json");
    let variables = [
        ("VK_DRIVER_FILES", nowhere.clone()),
        ("VK_ICD_FILENAMES", nowhere),
        ("SCRY_DEVICE", OsString::from("vulkan")),
        ("SCRY_REQUIRE_VULKAN", OsString::from("0")),
        ("SCRY_VALIDATE", OsString::new()),
    ];
    let name = "absence::fault_29_a_backend_that_is_asked_for_in_the_environment";
    let outcome = in_child_with(name, Duration::from_secs(30), &variables, || {
        let rest = Device::list();
        let rest: Vec<_> =
            rest.iter().map(|info| format!("{}:{}", info.backend, info.index)).collect();
        let rest: Vec<_> = rest.iter().map(String::as_str).collect();
        // Another device is no answer to somebody who asks for this one.
        is_absent(Device::auto(), &rest);
    });
    tells(outcome, &["vulkan: ", "Vulkan"]);
}
