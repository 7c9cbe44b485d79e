//! Converts the driver's status codes to errors with help.

use super::driver_api::Api;
use super::types::Code;
use crate::api::error::{
    DEFECT, DRIVER_FAILED, DeviceLostError, DriverError, GpuError, OutOfMemoryError,
};

/// Sticky errors: `CUDA_ERROR_` codes after which the context is lost.
const STICKY: [u32; 18] = [
    4,   // DEINITIALIZED
    214, // ECC_UNCORRECTABLE
    220, // NVLINK_UNCORRECTABLE
    226, // CONTAINED
    700, // ILLEGAL_ADDRESS
    702, // LAUNCH_TIMEOUT
    709, // CONTEXT_IS_DESTROYED
    710, // ASSERT
    714, // HARDWARE_STACK_ERROR
    715, // ILLEGAL_INSTRUCTION
    716, // MISALIGNED_ADDRESS
    717, // INVALID_ADDRESS_SPACE
    718, // INVALID_PC
    719, // LAUNCH_FAILED
    721, // TENSOR_MEMORY_LEAK
    810, // MPS_CLIENT_TERMINATED
    911, // EXTERNAL_DEVICE
    999, // UNKNOWN
];

/// Returns whether the context is lost after this code.
pub(crate) fn is_sticky(code: Code) -> bool {
    STICKY.contains(&code.0)
}

/// Returns the error for a call on `device` that returned `code`.
pub(crate) fn failed(api: &Api, device: &str, call: &'static str, code: Code) -> GpuError {
    to_error(device, call, code, describe(api, code))
}

fn to_error(device: &str, call: &'static str, code: Code, text: String) -> GpuError {
    if is_sticky(code) {
        return lost(device, format!("{call} reported {text}{}", advice_suffix(code)));
    }
    if code == Code::OUT_OF_MEMORY {
        return GpuError::OutOfMemory(OutOfMemoryError {
            function: None,
            device: device.to_owned(),
            requested: None,
            label: format!("internal use by {call}"),
            detail: text,
            help: "drop buffers and devices that are no longer used".to_owned(),
        });
    }
    let help = advice(code).unwrap_or(DRIVER_FAILED);
    GpuError::Driver(DriverError::new(device, call, text, help))
}

/// Returns the error for a lost device.
pub(crate) fn lost(device: &str, reason: String) -> GpuError {
    GpuError::DeviceLost(DeviceLostError { function: None, device: device.to_owned(), reason })
}

/// Returns the error for a defect of this crate, which no program should be able to cause.
pub(crate) fn defect(device: &str, call: &'static str, code: String) -> GpuError {
    GpuError::Driver(DriverError::new(device, call, code, DEFECT))
}

/// Formats a code: name, meaning and advice.
pub(crate) fn explain(api: &Api, code: Code) -> String {
    describe(api, code) + &advice_suffix(code)
}

/// Formats a code: name and meaning.
fn describe(api: &Api, code: Code) -> String {
    match api.describe(code) {
        Some((name, meaning)) => format!("{name} ({}): {meaning}", code.0),
        None => format!("code {}, unknown to the driver", code.0),
    }
}

/// Returns the advice for a code, to be appended to its text.
fn advice_suffix(code: Code) -> String {
    advice(code).map(|advice| format!("; {advice}")).unwrap_or_default()
}

/// Returns what the user can do about a code, if known.
fn advice(code: Code) -> Option<&'static str> {
    Some(match code.0 {
        3 => "open the device after a fork, not before",
        46 => "another process uses the device exclusively: end it, or wait for it",
        222 => "update NVIDIA's driver",
        221 | 223 => {
            "the driver cannot compile: install libnvidia-ptxjitcompiler, and unset \
             CUDA_DISABLE_PTX_JIT"
        }
        304 => {
            "check that this process may open more files (ulimit -n) and more threads \
             (ulimit -u), and that this user may use /dev/nvidia*"
        }
        700 => {
            "a kernel accessed memory out of bounds: compile WGSL checked, or run a native kernel \
             under compute-sanitizer"
        }
        716 => {
            "a kernel accessed memory at a misaligned address: run a native kernel under \
             compute-sanitizer"
        }
        717 | 718 => {
            "a kernel used an invalid address or instruction pointer: run a native kernel under \
             compute-sanitizer"
        }
        701 => "use smaller workgroups",
        702 => "the system ends kernels that take long: divide the work among several launches",
        802 => "the machine's fabric manager is not ready: start nvidia-fabricmanager",
        803 | 804 => "the driver's library and its kernel module differ: restart the machine",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::error::ErrorKind;

    fn error_for(code: u32) -> GpuError {
        to_error("GPU", "cuCall", Code(code), format!("NAME ({code}): meaning"))
    }

    #[test]
    fn sticky_codes_lose_the_device() {
        for code in [4, 214, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 810] {
            let error = error_for(code);
            assert!(matches!(error, GpuError::DeviceLost(_)), "{code}: {error}");
            let expected = format!("GPU is lost: cuCall reported NAME ({code}): meaning");
            assert!(error.to_string().starts_with(&expected), "{error}");
        }
    }

    #[test]
    fn other_codes_keep_the_device() {
        for code in [1, 3, 34, 100, 200, 209, 218, 222, 400, 500, 600, 701, 801, 809] {
            let error = error_for(code);
            assert!(matches!(error, GpuError::Driver(_)), "{code}: {error}");
            assert_eq!(error.kind(), ErrorKind::Device);
            assert!(error.to_string().contains("; help: "), "{error}");
        }
    }

    #[test]
    fn memory_faults_have_their_own_advice() {
        for (code, advice) in
            [(700, "out of bounds"), (716, "misaligned"), (717, "invalid"), (718, "invalid")]
        {
            let text = error_for(code).to_string();
            assert!(text.contains(advice) && text.contains("compute-sanitizer"), "{text}");
            assert_eq!(text.contains("out of bounds"), code == 700, "{text}");
        }
    }

    #[test]
    fn system_limits_appear_in_help() {
        let GpuError::Driver(error) = error_for(304) else { panic!("{}", error_for(304)) };
        assert!(error.help().contains("ulimit -n"), "{error}");
    }

    #[test]
    fn out_of_memory_has_own_error() {
        assert!(matches!(error_for(2), GpuError::OutOfMemory(_)));
        assert_eq!(
            error_for(2).to_string(),
            "GPU is out of memory: requested for internal use by cuCall; NAME (2): meaning; help: \
             drop buffers and devices that are no longer used"
        );
    }
}
