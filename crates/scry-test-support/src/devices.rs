//! The devices that tests run on, and [`succeed`], which unwraps the results of their calls.

use std::env;
use std::sync::OnceLock;

use scry_gpu::{BackendKind, Device, Result};

/// Returns every available device other than the null device, or only the one that the environment
/// variable `SCRY_DEVICE` selects. They are opened once and shared by all tests of the process.
///
/// Prints each backend that is skipped and why. If `SCRY_REQUIRE_VULKAN=1` is set, a missing Vulkan
/// device fails the test instead; `SCRY_REQUIRE_CUDA=1` does the same for CUDA. Neither has an
/// effect if `SCRY_DEVICE` is set.
pub fn devices() -> Vec<Device> {
    static OPEN: OnceLock<Vec<Device>> = OnceLock::new();
    OPEN.get_or_init(open_all).clone()
}

/// Runs a test on every device, naming each.
pub fn on_each_device(test: impl Fn(&Device)) {
    for gpu in devices() {
        eprintln!("on {} ({})", gpu.name(), gpu.backend_kind());
        test(&gpu);
    }
}

/// Opens the null device, which validates calls and executes no kernels. It needs no driver.
pub fn null() -> Device {
    Device::with_backend(BackendKind::Null).expect("the null device is always available")
}

/// Returns the value. Panics with the error's text, as users see it.
#[track_caller]
pub fn succeed<T>(result: Result<T>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{error}"),
    }
}

fn open_all() -> Vec<Device> {
    let mut devices = Vec::new();
    if env::var("SCRY_DEVICE").is_ok_and(|selector| !selector.trim().is_empty()) {
        return vec![Device::auto().unwrap_or_else(|error| panic!("{error}"))];
    }
    for info in Device::list() {
        if info.backend == BackendKind::Null {
            continue;
        }
        let selector = format!("{}:{}", info.backend, info.index);
        let device = Device::open(&selector)
            .unwrap_or_else(|error| panic!("{selector} ({}) does not open: {error}", info.name));
        devices.push(device);
    }
    for attempt in Device::absent_backends() {
        let (backend, reason, help) = (attempt.backend(), attempt.reason(), attempt.help());
        eprintln!("skipped {backend}: {reason}; help: {help}");
    }
    require(&devices, BackendKind::Vulkan, "SCRY_REQUIRE_VULKAN");
    require(&devices, BackendKind::Cuda, "SCRY_REQUIRE_CUDA");
    if devices.is_empty() {
        eprintln!("skipped: no device is present, nothing is run");
    }
    devices
}

/// Panics if the environment variable `variable` requires a device of `backend` and there is none.
fn require(devices: &[Device], backend: BackendKind, variable: &str) {
    let required = env::var(variable).is_ok_and(|value| value != "0");
    let is_present = devices.iter().any(|device| device.backend_kind() == backend);
    assert!(is_present || !required, "{variable} is set, but no device of {backend} is present");
}
