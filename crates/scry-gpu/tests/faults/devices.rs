//! The devices of the tests, and the work that most of them run.

use scry_gpu::{BackendKind, Device, Result};
use scry_test_support::{STEP, devices, null};

/// Returns every available device, and the null device.
pub fn devices_and_null() -> Vec<Device> {
    let mut all = devices();
    all.push(null());
    all
}

/// Returns whether the device executes kernels, as all but the null device do.
pub fn executes_kernels(gpu: &Device) -> bool {
    gpu.backend_kind() != BackendKind::Null
}

/// Returns the selectors of the available devices and of the null device.
pub fn selectors() -> Vec<String> {
    let name = |gpu: &Device| format!("{}:{}", gpu.backend_kind(), gpu.info().index);
    let mut all: Vec<String> = devices().iter().map(name).collect();
    all.push("null".to_owned());
    all
}

/// Runs work as [`try_run_work`] does; panics if a call fails.
pub fn check_works(gpu: &Device) {
    try_run_work(gpu).unwrap_or_else(|error| panic!("{gpu:?}: {error}"));
}

/// Uploads, runs a kernel, copies and downloads. Returns the error of a call that fails; panics if
/// the data is wrong.
pub fn try_run_work(gpu: &Device) -> Result<()> {
    let data: Vec<u32> = (0..1000).collect();
    let (a, b, c) = (gpu.upload(&data)?, gpu.alloc::<u32>(1000)?, gpu.alloc::<u32>(1000)?);
    gpu.dispatch(STEP, &[&a, &b], 1000)?;
    b.copy_to(&c)?;
    let expected: Vec<u32> = match executes_kernels(gpu) {
        true => data.iter().map(|x| x + 1).collect(),
        false => vec![0; 1000],
    };
    assert_eq!(c.download()?, expected, "{gpu:?}");
    assert_eq!(a.download()?, data, "{gpu:?}");
    Ok(())
}
