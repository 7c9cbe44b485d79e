//! For tests of Scry and of programs that use it: devices that fail by plan, and a look at what a
//! device was told to do. No part of the stable interface.

use std::sync::{Arc, Mutex, PoisonError};

use crate::api::device::Device;
use crate::api::device_selection::Found;
use crate::api::error::Result;
use crate::api::info::{BackendKind, DeviceInfo};
#[cfg(feature = "vulkan")]
pub use crate::backend::SpirvWriter;
use crate::backend::fault::FaultDriver;
pub use crate::backend::fault::{Fault, Plan};
use crate::backend::null::{Log, NullDriver};
use crate::backend::shared::copy_kernel::COPY_KERNEL;
use crate::core::command::{Command, Step};

/// What the null device claims to be.
#[must_use]
pub fn null_info() -> DeviceInfo {
    crate::backend::null::null_info()
}

/// Opens a device whose driver fails by plan.
///
/// # Errors
/// As [`Device::open`].
pub fn open_with_faults(selector: &str, plan: &Arc<Plan>) -> Result<Device> {
    let everywhere = Found::of(&|kind| selector == "null" || kind != BackendKind::Null);
    let inner = everywhere.open_selected(selector)?;
    Ok(Device::from_driver(Box::new(FaultDriver { inner, plan: plan.clone() })))
}

/// Opens a null device that claims to be `info`, and shows what it is told to do.
#[must_use]
pub fn observed(info: DeviceInfo) -> (Device, Observed) {
    let log = Arc::new(Mutex::new(Vec::new()));
    let driver = NullDriver::new(info, log.clone());
    (Device::from_driver(Box::new(driver)), Observed(log))
}

/// Opens a null device all of whose kernels report how a launch ended, as kernels do on drivers
/// that may end one early. The launches of these numbers, counted from 0, report that they failed.
#[must_use]
pub fn reporting(info: DeviceInfo, failing: &[u64]) -> (Device, Observed) {
    let log = Arc::new(Mutex::new(Vec::new()));
    let driver = NullDriver::reporting(info, log.clone(), failing);
    (Device::from_driver(Box::new(driver)), Observed(log))
}

/// The device of [`reporting`], with a driver that fails by plan as well.
#[must_use]
pub fn reporting_with_faults(
    info: DeviceInfo,
    failing: &[u64],
    plan: &Arc<Plan>,
) -> (Device, Observed) {
    let log = Arc::new(Mutex::new(Vec::new()));
    let inner = Box::new(NullDriver::reporting(info, log.clone(), failing));
    let driver = FaultDriver { inner, plan: plan.clone() };
    (Device::from_driver(Box::new(driver)), Observed(log))
}

/// Has large copies within a device go through a kernel, or has them left to the driver, whatever
/// is best for that kind of device.
pub fn copy_with_kernel(device: &Device, enabled: bool) {
    device.context.copier.enable(enabled, &COPY_KERNEL);
}

/// The work that a null device was given.
pub struct Observed(Log);

/// How much work of each kind there was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Launches.
    pub dispatches: usize,
    /// Copies.
    pub copies: usize,
    /// Fills.
    pub fills: usize,
    /// Barriers, those that make results visible to the host included.
    pub barriers: usize,
}

impl Observed {
    /// Whether the device's driver is gone: no handle of it or of anything made from it is left.
    #[must_use]
    pub fn is_device_dropped(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// Counts the work since the last call.
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
