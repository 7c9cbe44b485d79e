//! Vulkan's result codes as errors that say what happened and what to do.

use ash::vk;

use crate::api::error::{DeviceLostError, DriverError, GpuError};

/// The error for a Vulkan call on `device` that returned `code`.
pub(crate) fn failed(device: &str, call: &'static str, code: vk::Result) -> GpuError {
    if code == vk::Result::ERROR_DEVICE_LOST {
        return lost(device, format!("{call} reported VK_ERROR_DEVICE_LOST"));
    }
    GpuError::Driver(DriverError { device: device.to_owned(), call, code: explain(code) })
}

/// The error for a device that is gone.
pub(crate) fn lost(device: &str, reason: String) -> GpuError {
    GpuError::DeviceLost(DeviceLostError { device: device.to_owned(), reason })
}

/// The error for work that the driver cannot take, whatever Vulkan would say of it.
pub(crate) fn refused(device: &str, call: &'static str, code: String) -> GpuError {
    GpuError::Driver(DriverError { device: device.to_owned(), call, code })
}

/// A result code by its name, and what it means.
pub(crate) fn explain(code: vk::Result) -> String {
    let advice = match code {
        vk::Result::ERROR_OUT_OF_HOST_MEMORY => "; free host memory",
        vk::Result::ERROR_OUT_OF_DEVICE_MEMORY => "; free device memory",
        vk::Result::ERROR_TOO_MANY_OBJECTS => "; close devices that are no longer used",
        vk::Result::ERROR_INITIALIZATION_FAILED => {
            "; check that the driver fits the kernel module, and that this user may use the device"
        }
        vk::Result::ERROR_UNKNOWN => "; update the driver",
        _ => "",
    };
    format!("{code:?} ({code}){advice}")
}
