//! Why there is no device: told in child processes whose environment hides the drivers.

use super::*;
use crate::backend::vulkan::find;

/// The name of [`report`].
const REPORT: &str = "no_device::report";

/// Not a test of its own: what the child processes run.
#[test]
fn report() {
    if !is_child() {
        return;
    }
    match find() {
        Ok(adapters) => println!("found {}", adapters.len()),
        Err(absence) => println!("reason: {}\nhelp: {}", absence.reason, absence.help),
    }
}

#[test]
fn a_missing_manifest_is_told_with_the_variable_that_names_it() {
    if !has_loader() {
        eprintln!("SKIPPED, no Vulkan loader");
        return;
    }
    let nowhere = "/nonexistent/icd.json";
    let told =
        told_by_child(REPORT, &[("VK_DRIVER_FILES", nowhere), ("VK_ICD_FILENAMES", nowhere)]);
    assert!(told.contains("reason: the Vulkan loader found no driver"), "{told}");
    assert!(told.contains("VK_DRIVER_FILES=/nonexistent/icd.json"), "{told}");
    assert!(told.contains("mesa-vulkan-drivers"), "{told}");
}

#[test]
fn a_driver_whose_library_is_missing_is_told_by_the_librarys_name() {
    if !has_loader() {
        eprintln!("SKIPPED, no Vulkan loader");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let manifest = folder.path().join("icd.json");
    let text = r#"{"file_format_version": "1.0.0",
        "ICD": {"library_path": "/nonexistent/libvulkan_absent.so", "api_version": "1.3.0"}}"#;
    std::fs::write(&manifest, text).unwrap();
    let manifest = manifest.to_str().unwrap();
    let told =
        told_by_child(REPORT, &[("VK_DRIVER_FILES", manifest), ("VK_ICD_FILENAMES", manifest)]);
    assert!(told.contains("libvulkan_absent.so"), "{told}");
    assert!(told.contains("the libraries that the driver named above needs"), "{told}");
}

#[test]
fn validation_that_is_asked_for_but_not_installed_is_no_silent_skip() {
    if !has_loader() {
        eprintln!("SKIPPED, no Vulkan loader");
        return;
    }
    let told = told_by_child(REPORT, &[("SCRY_VALIDATE", "1"), ("VK_LAYER_PATH", "/nonexistent")]);
    assert!(told.contains("reason: SCRY_VALIDATE=1"), "{told}");
    assert!(told.contains("vulkan-validationlayers"), "{told}");
}
