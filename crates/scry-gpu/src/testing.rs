//! Test devices: drivers with injected faults, and null devices that log the submitted work. Not
//! part of the stable interface.

use std::sync::{Arc, Mutex, PoisonError};

use crate::api::device::Device;
use crate::api::device_selection::{FoundDevices, SearchMode, now};
use crate::api::error::Result;
use crate::api::info::{BackendKind, DeviceInfo, Limits};
#[cfg(vulkan)]
pub use crate::backend::SpirvWriter;
use crate::backend::fault::FaultDriver;
pub use crate::backend::fault::{Fault, FaultPlan};
use crate::backend::null::{Log, NullDriver};
use crate::backend::shared::copy_kernel::COPY_KERNEL;
use crate::core::command::{Command, Step};

/// Returns the properties of the null device.
#[must_use]
pub fn null_info() -> DeviceInfo {
    crate::backend::null::null_info()
}

/// Opens a device with a driver that fails according to `plan`.
///
/// # Errors
/// As [`Device::open`].
pub fn open_with_faults(selector: &str, plan: &Arc<FaultPlan>) -> Result<Device> {
    Ok(Device::from_driver(Box::new(with_faults(selector, plan)?)))
}

/// Opens a device with smaller limits than its own: `restrict` changes them.
///
/// # Errors
/// As [`Device::open`].
pub fn open_with_limits(selector: &str, restrict: impl FnOnce(&mut Limits)) -> Result<Device> {
    let driver = with_faults(selector, &FaultPlan::new(Fault::DriverError, u64::MAX))?;
    Ok(Device::from_driver(Box::new(driver.with_limits(restrict))))
}

fn with_faults(selector: &str, plan: &Arc<FaultPlan>) -> Result<FaultDriver> {
    let wanted = |kind| selector == "null" || kind != BackendKind::Null;
    let found = now(FoundDevices::search(&wanted, SearchMode::Blocking));
    Ok(FaultDriver::new(now(found.open_selected(selector, SearchMode::Blocking))?, plan))
}

/// Opens a null device with the properties `info`, and a log of the work submitted to it.
#[must_use]
pub fn observed(info: DeviceInfo) -> (Device, Observed) {
    let log = Arc::new(Mutex::new(Vec::new()));
    let driver = NullDriver::new(info, log.clone());
    (Device::from_driver(Box::new(driver)), Observed(log))
}

/// Opens a null device whose kernels have failure reports, like those of drivers that may terminate
/// a launch early. The launches with the indices `failing`, counted from 0, report a failure.
#[must_use]
pub fn reporting(info: DeviceInfo, failing: &[u64]) -> (Device, Observed) {
    let log = Arc::new(Mutex::new(Vec::new()));
    let driver = NullDriver::reporting(info, log.clone(), failing);
    (Device::from_driver(Box::new(driver)), Observed(log))
}

/// Opens the device of [`reporting`], with a driver that also fails according to `plan`.
#[must_use]
pub fn reporting_with_faults(
    info: DeviceInfo,
    failing: &[u64],
    plan: &Arc<FaultPlan>,
) -> (Device, Observed) {
    let log = Arc::new(Mutex::new(Vec::new()));
    let inner = Box::new(NullDriver::reporting(info, log.clone(), failing));
    let driver = FaultDriver::new(inner, plan);
    (Device::from_driver(Box::new(driver)), Observed(log))
}

/// Selects whether large copies within a device are executed by a kernel or by the driver's copy
/// command, instead of the device's default.
pub fn copy_with_kernel(device: &Device, enabled: bool) {
    device.context.copier.enable(enabled, &COPY_KERNEL);
}

/// A log of the work submitted to a null device.
pub struct Observed(Log);

/// Number of commands of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Launches.
    pub dispatches: usize,
    /// Copies.
    pub copies: usize,
    /// Fills.
    pub fills: usize,
    /// Barriers, including those that make results visible to the host.
    pub barriers: usize,
}

impl Observed {
    /// Returns whether the driver was dropped: no handle of the device, or of an object created
    /// from it, exists.
    #[must_use]
    pub fn is_device_dropped(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// Counts the commands submitted since the last call.
    #[must_use]
    pub fn take(&self) -> Counts {
        let mut counts = Counts::default();
        for step in self.0.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            match step {
                Step::Barrier(_) => counts.barriers += 1,
                Step::Run(Command::Dispatch(_)) => counts.dispatches += 1,
                Step::Run(Command::Copy { .. }) => counts.copies += 1,
                Step::Run(Command::Fill { .. }) => counts.fills += 1,
            }
        }
        counts
    }
}
