//! `scry doctor`: the devices of each backend, or the reason why it has none, and a self-test of
//! each device.

use std::fmt::Write;

use scry_gpu::{Attempt, BackendKind, Device, DeviceInfo, GpuError, LibraryStatus};
use serde_json::{Value, json};

use super::{devices, libraries};
use crate::args::DeviceSelection;
use crate::report::{Failure, Report};

/// Environment variables that affect which devices are found, and how they are used.
const VARIABLES: [(&str, &str); 27] = [
    ("RUST_LOG", "the log filter: `scry=debug`, or `scry::kernel=debug`"),
    ("SCRY_DEVICE", "the selector of the default device"),
    ("SCRY_GROUP", "how groups of devices move data: `auto`, `host` or `nccl`"),
    ("SCRY_GROUP_CHECK", "1: the ranks of a group compare all their calls first"),
    ("SCRY_NCCL", "the file of NCCL, libnccl.so.2"),
    ("SCRY_CACHE_DIR", "the folder of compiled kernels, or `off`"),
    ("SCRY_DEBUG", "the stages of compilations that are printed, and of which kernels"),
    ("SCRY_DEBUG_DIR", "the folder in which SCRY_DEBUG writes files instead"),
    ("SCRY_SPIRV", "`naga`: kernels for Vulkan are compiled by naga's SPIR-V writer"),
    ("SCRY_WGPU_LIMITS", "`webgpu`: the backend wgpu has only what every browser has"),
    ("SCRY_TUNE", "0: operations of the kernel library are not tuned"),
    ("SCRY_FUSE", "how far graphs of tensors fuse operations: `0` or `exact`"),
    ("SCRY_VALIDATE", "1 loads Vulkan's validation layer"),
    ("SCRY_VALIDATE_LOG", "the file that validation messages go to"),
    ("VK_DRIVER_FILES", "the only Vulkan drivers that the loader considers"),
    ("VK_ICD_FILENAMES", "the older name of VK_DRIVER_FILES"),
    ("VK_ADD_DRIVER_FILES", "more Vulkan drivers"),
    ("VK_LOADER_DRIVERS_SELECT", "which Vulkan drivers the loader uses"),
    ("VK_LOADER_DRIVERS_DISABLE", "which Vulkan drivers the loader leaves out"),
    ("VK_INSTANCE_LAYERS", "Vulkan layers to load, such as validation"),
    ("MESA_VK_DEVICE_SELECT", "the device that Mesa lists first"),
    ("CUDA_VISIBLE_DEVICES", "the GPUs that CUDA may use, in this order"),
    ("CUDA_PATH", "folder of the CUDA toolkit; NVRTC and cuBLAS are searched there too"),
    ("CUDA_HOME", "another name of CUDA_PATH"),
    ("NCCL_NVLS_ENABLE", "0: NCCL does not use NVLink multicast"),
    ("NCCL_SOCKET_IFNAME", "the network interfaces that NCCL may use"),
    ("LD_LIBRARY_PATH", "folders in which libraries are searched first"),
];

/// The rule by which the default device is chosen.
const PREFERENCE: &str = "order of preference: CUDA; discrete, integrated and virtual GPUs; Scry's \
                          CPU device; other devices (such as Mesa's lavapipe)";

/// The result of examining one device.
struct DeviceReport {
    info: DeviceInfo,
    opened: bool,
    /// The reason why the self-test failed, if it did.
    problem: Option<String>,
}

/// The device that programs use by default.
enum DefaultDevice {
    /// The first device that opens.
    First(DeviceInfo),
    /// The device that `SCRY_DEVICE` selects.
    ByVariable(String, DeviceInfo),
    /// `SCRY_DEVICE` selects no device, or one that cannot be opened.
    Failed(GpuError),
}

/// Examines all backends, or only the selected device.
pub fn run(args: &DeviceSelection) -> Result<Report, Failure> {
    let devices = match args.device.as_deref() {
        Some(selector) => {
            let device = Device::open(selector)?;
            let problem = self_test(&device);
            let info = device.info().clone();
            vec![DeviceReport { info, opened: true, problem }]
        }
        None => Device::list().into_iter().map(examine).collect(),
    };
    let absent = if args.device.is_some() { Vec::new() } else { Device::absent_backends() };
    let libraries = libraries::used_by(devices.iter().map(|report| &report.info));
    let default = if args.device.is_some() { None } else { default_device(&devices) };
    let any_works = devices.iter().any(|report| report.problem.is_none());
    let any_fails = devices.iter().any(|report| report.problem.is_some());
    Ok(Report {
        text: text(&devices, default.as_ref(), &absent, &libraries),
        json: to_json(&devices, default.as_ref(), &absent, &libraries),
        ok: any_works && !any_fails && !matches!(default, Some(DefaultDevice::Failed(_))),
    })
}

fn examine(info: DeviceInfo) -> DeviceReport {
    let (opened, problem) = match Device::open(&format!("{}:{}", info.backend, info.index)) {
        Ok(device) => (true, self_test(&device)),
        Err(error) => (false, Some(format!("it cannot be opened: {error}"))),
    };
    DeviceReport { info, opened, problem }
}

/// Runs a small kernel; returns the problem, if any.
fn self_test(device: &Device) -> Option<String> {
    const COUNT: u32 = 1000;
    let test = || -> Result<bool, GpuError> {
        let input: Vec<u32> = (0..COUNT).collect();
        let numbers = device.upload(&input)?;
        device.dispatch(include_str!("doctor.wgsl"), &[&numbers], COUNT)?;
        Ok(numbers.download()? == input.iter().map(|x| 3 * x + 1).collect::<Vec<_>>())
    };
    match test() {
        Ok(true) => None,
        Ok(false) => Some(wrong_results(device.info().backend)),
        Err(error) => Some(format!("a test kernel failed: {error}")),
    }
}

/// Returns the problem of a device whose results are wrong.
fn wrong_results(backend: BackendKind) -> String {
    let has_driver = !matches!(backend, BackendKind::Cpu | BackendKind::Null);
    let help = if has_driver { "; help: update the driver" } else { "" };
    format!("a test kernel returned wrong results{help}")
}

/// Returns name, meaning and value of each variable in [`VARIABLES`] that is set.
fn set_variables() -> impl Iterator<Item = (&'static str, &'static str, String)> {
    VARIABLES.into_iter().filter_map(|(name, meaning)| {
        let value = std::env::var_os(name)?;
        Some((name, meaning, value.to_string_lossy().into_owned()))
    })
}

/// Returns the default device; `None` if there is no device at all.
fn default_device(devices: &[DeviceReport]) -> Option<DefaultDevice> {
    let variable = std::env::var_os("SCRY_DEVICE").unwrap_or_default();
    let selector = variable.to_string_lossy();
    if selector.trim().is_empty() {
        let first = devices.iter().find(|report| report.opened)?;
        return Some(DefaultDevice::First(first.info.clone()));
    }
    Some(match Device::auto() {
        Ok(device) => DefaultDevice::ByVariable(selector.into_owned(), device.info().clone()),
        Err(error) => DefaultDevice::Failed(error),
    })
}

fn default_device_text(default: &DefaultDevice) -> String {
    match default {
        DefaultDevice::First(DeviceInfo { backend, index, name, .. }) => {
            format!("default device: {backend}:{index} ({name})\n    {PREFERENCE}\n")
        }
        DefaultDevice::ByVariable(selector, DeviceInfo { backend, index, name, .. }) => {
            format!("SCRY_DEVICE={selector} selects {backend}:{index} ({name})\n")
        }
        DefaultDevice::Failed(error) => format!("{error}\n"),
    }
}

fn text(
    devices: &[DeviceReport],
    default: Option<&DefaultDevice>,
    absent: &[Attempt],
    libraries: &[LibraryStatus],
) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    for DeviceReport { info, problem, .. } in devices {
        let DeviceInfo { backend, index, name, .. } = info;
        let state = problem.as_deref().unwrap_or("works: a test kernel returned the right results");
        let _ = writeln!(text, "{backend}:{index}  {name} ({})\n    {state}", info.driver);
        if let Some(versions) = libraries::versions(info) {
            let _ = writeln!(text, "    {versions}");
        }
        if !info.matrix_products.is_empty() {
            let _ = writeln!(text, "    matrix products: {}", info.matrix_products);
        }
        text += &devices::workarounds_text(info);
    }
    // The first device is not worth mentioning if it is the only one.
    let is_shown =
        |default: &&DefaultDevice| !matches!(default, DefaultDevice::First(_)) || devices.len() > 1;
    text += &default.filter(is_shown).map(default_device_text).unwrap_or_default();
    for attempt in absent {
        let (backend, reason, help) = (attempt.backend(), attempt.reason(), attempt.help());
        let _ = writeln!(text, "{backend}  no device: {reason}\n    help: {help}");
    }
    text += &libraries::text(libraries);
    match scry_gpu::disk_cache::directory() {
        Some(folder) => {
            let _ = writeln!(text, "compiled kernels are kept in {}", folder.display());
        }
        None => text.push_str(
            "compiled kernels are not kept: there is no cache folder; `scry cache ls` says why\n",
        ),
    }
    let mut variables = set_variables().peekable();
    if variables.peek().is_none() {
        text.push_str("no environment variable of Scry or of its drivers is set\n");
    } else {
        text.push_str("environment variables:\n");
    }
    for (name, meaning, value) in variables {
        let _ = writeln!(text, "    {name}={value}  ({meaning})");
    }
    text
}

fn to_json(
    devices: &[DeviceReport],
    default: Option<&DefaultDevice>,
    absent: &[Attempt],
    libraries: &[LibraryStatus],
) -> Value {
    let device = |DeviceReport { info, problem, .. }: &DeviceReport| {
        json!({
            "device": devices::to_json(info),
            "works": problem.is_none(),
            "problem": problem,
        })
    };
    let backend = |attempt: &Attempt| {
        json!({
            "backend": attempt.backend().name(),
            "reason": attempt.reason(),
            "help": attempt.help(),
        })
    };
    let (preferred, problem) = match default {
        Some(DefaultDevice::First(info) | DefaultDevice::ByVariable(_, info)) => {
            (Some(format!("{}:{}", info.backend, info.index)), None)
        }
        Some(DefaultDevice::Failed(error)) => (None, Some(error.to_string())),
        // With --device, the selected device was opened.
        None => {
            let opened = devices.iter().find(|report| report.opened);
            (opened.map(|it| format!("{}:{}", it.info.backend, it.info.index)), None)
        }
    };
    let folder = scry_gpu::disk_cache::directory();
    let environment: serde_json::Map<String, Value> =
        set_variables().map(|(name, _, value)| (name.to_owned(), json!(value))).collect();
    json!({
        "devices": devices.iter().map(device).collect::<Vec<_>>(),
        "preferred": preferred,
        "preferred_problem": problem,
        "absent": absent.iter().map(backend).collect::<Vec<_>>(),
        "libraries": libraries.iter().map(libraries::to_json).collect::<Vec<_>>(),
        "cache_folder": folder.map(|folder| folder.display().to_string()),
        "environment": environment,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn driver_updates_are_advised_for_gpus() {
        let advises = |backend| wrong_results(backend).contains("update the driver");
        assert!(advises(BackendKind::Cuda) && advises(BackendKind::Vulkan));
        assert!(!advises(BackendKind::Cpu) && !advises(BackendKind::Null));
    }
}
