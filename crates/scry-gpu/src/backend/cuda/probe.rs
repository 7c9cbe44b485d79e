//! Properties of a device before it is opened.

use scry_ptx::Target;

use super::ffi::driver_api::Cuda;
use super::ffi::types::Device;
use crate::api::info::DeviceInfo;

/// Properties of a device before it is opened.
pub(super) struct Probe {
    pub(super) cuda: &'static Cuda,
    pub(super) device: Device,
    pub(super) target: Target,
    pub(super) has_pools: bool,
    pub(super) writes_values: bool,
    pub(super) info: DeviceInfo,
}
