//! Converts Vulkan's result codes to errors.

use ash::vk;

use crate::api::error::{DEFECT, DRIVER_FAILED, DeviceLostError, DriverError, GpuError};

/// Returns the error for a Vulkan call on `device` that returned `code`.
pub(crate) fn failed(device: &str, call: &'static str, code: vk::Result) -> GpuError {
    if code == vk::Result::ERROR_DEVICE_LOST {
        return lost(device, format!("{call} reported VK_ERROR_DEVICE_LOST"));
    }
    let help = advice(code).unwrap_or(DRIVER_FAILED);
    GpuError::Driver(DriverError::new(device, call, describe(code), help))
}

/// Returns the error for a lost device.
pub(crate) fn lost(device: &str, reason: String) -> GpuError {
    GpuError::DeviceLost(DeviceLostError { function: None, device: device.to_owned(), reason })
}

/// Returns the error for a defect of this crate, which no program should be able to cause.
pub(crate) fn defect(device: &str, call: &'static str, code: String) -> GpuError {
    GpuError::Driver(DriverError::new(device, call, code, DEFECT))
}

/// Formats a result code, with advice.
pub(crate) fn explain(code: vk::Result) -> String {
    let advice = advice(code).map(|advice| format!("; {advice}")).unwrap_or_default();
    describe(code) + &advice
}

/// Formats a result code: name and meaning.
fn describe(code: vk::Result) -> String {
    format!("{code:?} ({code})")
}

/// Returns what the user can do about a result code, if known.
fn advice(code: vk::Result) -> Option<&'static str> {
    Some(match code {
        vk::Result::ERROR_OUT_OF_HOST_MEMORY => "free host memory",
        vk::Result::ERROR_OUT_OF_DEVICE_MEMORY => "free device memory",
        vk::Result::ERROR_TOO_MANY_OBJECTS => "close devices that are no longer used",
        vk::Result::ERROR_INITIALIZATION_FAILED => {
            "check that the driver fits the kernel module, and that this user may use the device"
        }
        vk::Result::ERROR_UNKNOWN => "update the driver",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_has_meaning_and_help() {
        let text = |code| failed("GPU", "vkQueueSubmit", code).to_string();
        assert_eq!(
            text(vk::Result::ERROR_TOO_MANY_OBJECTS),
            "vkQueueSubmit failed on GPU: ERROR_TOO_MANY_OBJECTS (Too many objects of the type \
             have already been created); help: close devices that are no longer used"
        );
        assert!(text(vk::Result::ERROR_FRAGMENTED_POOL).ends_with(DRIVER_FAILED));
    }
}
