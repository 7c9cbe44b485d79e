//! Tests of the Vulkan driver's methods, on the first device.

mod cancellation;
mod kernels;
mod memory;
mod no_device;
mod submissions;
mod validation;

use std::process::Command as Process;

use super::VulkanDriver;
use super::adapter;
use super::ffi::instance::Instance;
use crate::backend::tests::{
    DOUBLE, DriverExt, barrier, bytes, compute_barrier, copy, dispatch, dispatch_with,
    full_barrier, range, run, submissions as bodies,
};
use crate::core::command::{BufferRange, Command, Stages, Step};
use crate::core::driver::{Driver, GridSource, MemoryId, MemoryKind, Work};

/// Opens the first device; prints why and returns `None` if there is no Vulkan and none is
/// required.
fn driver() -> Option<VulkanDriver> {
    let adapters = Instance::shared().and_then(|instance| adapter::find(&instance));
    match adapters {
        Ok(adapters) => Some(adapters[0].open_driver().unwrap()),
        Err(absence) => {
            let required = std::env::var_os("SCRY_REQUIRE_VULKAN").is_some_and(|v| v != "0");
            assert!(!required, "SCRY_REQUIRE_VULKAN is set, but {absence:?}");
            eprintln!("SKIPPED, no Vulkan device: {}", absence.reason);
            None
        }
    }
}

/// Opens the first device twice: with push descriptors, if supported, and with descriptor sets.
fn drivers() -> Vec<VulkanDriver> {
    if driver().is_none() {
        return Vec::new();
    }
    let adapters = adapter::find(&Instance::shared().unwrap()).unwrap();
    let open = |prefers_sets: bool| {
        let mut gpu = adapters[0].open_gpu().unwrap();
        gpu.prefers_sets = prefers_sets;
        VulkanDriver::new(gpu.into()).unwrap()
    };
    [false, true].map(open).into()
}

/// Environment variable that marks the child process of a test.
const CHILD: &str = "SCRY_TEST_CHILD";

fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// Runs one test in a child process with these environment variables, and returns its output.
fn run_in_child(test: &str, variables: &[(&str, &str)]) -> String {
    let this = std::env::current_exe().unwrap();
    let output = Process::new(this)
        .args(["--exact", "--nocapture"])
        .arg(format!("backend::vulkan::tests::{test}"))
        .env(CHILD, "1")
        .env_remove("SCRY_REQUIRE_VULKAN")
        .env_remove("SCRY_VALIDATE")
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}{errors}");
    text + &errors
}

fn has_loader() -> bool {
    // SAFETY: the initialisers of the system's Vulkan loader have no preconditions.
    unsafe { ash::Entry::load() }.is_ok()
}
