//! Tests of the diagnosis of a missing device, in child processes whose environment hides drivers.

use super::*;
use crate::backend::vulkan::find;

/// The name of [`report`].
const REPORT: &str = "no_device::report";

/// Not a test of its own: the body of the child processes.
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
fn missing_manifest_names_the_variable() {
    if !has_loader() {
        eprintln!("SKIPPED, no Vulkan loader");
        return;
    }
    let nowhere = "/nonexistent/icd.json";
    let output =
        run_in_child(REPORT, &[("VK_DRIVER_FILES", nowhere), ("VK_ICD_FILENAMES", nowhere)]);
    assert!(output.contains("reason: the Vulkan loader found no usable driver"), "{output}");
    assert!(output.contains("VK_DRIVER_FILES=/nonexistent/icd.json"), "{output}");
    assert!(output.contains("mesa-vulkan-drivers"), "{output}");
}

#[test]
fn missing_driver_library_is_named() {
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
    let output =
        run_in_child(REPORT, &[("VK_DRIVER_FILES", manifest), ("VK_ICD_FILENAMES", manifest)]);
    assert!(output.contains("libvulkan_absent.so"), "{output}");
    assert!(output.contains("the libraries that the driver named above needs"), "{output}");
}

#[test]
fn missing_validation_layer_is_an_error() {
    if !has_loader() {
        eprintln!("SKIPPED, no Vulkan loader");
        return;
    }
    let output = run_in_child(REPORT, &[("SCRY_VALIDATE", "1"), ("VK_LAYER_PATH", "/nonexistent")]);
    assert!(output.contains("reason: SCRY_VALIDATE=1"), "{output}");
    assert!(output.contains("vulkan-validationlayers"), "{output}");
}
