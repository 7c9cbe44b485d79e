//! CUDA adapters: enumerates the driver's devices, queries their properties, and opens them.

use std::ffi::{c_char, c_int};
use std::fs;
use std::sync::Arc;

use scry_ir::{Features, MatrixProducts};
use scry_ptx::Target;

use super::CudaDriver;
use super::device::{self, Gpu};
use super::ffi::driver_api::Cuda;
use super::ffi::error;
use super::ffi::types::{Code, Device, attribute};
use super::probe::Probe;
use crate::api::error::Result;
use crate::api::info::{BackendKind, DeviceInfo, DeviceKind, Limits, PciAddress, SharedMemory};
use crate::backend::Absence;
use crate::core::driver::{Adapter, Driver};

/// PCI vendor number of NVIDIA.
const NVIDIA: u32 = 0x10de;

/// `CU_COMPUTEMODE_PROHIBITED`: the device permits no contexts.
const PROHIBITED: c_int = 2;

/// Maximum number of storage buffers of a kernel. Every GPU supports 4096 bytes of kernel
/// parameters, which must hold 16 bytes for each storage or uniform buffer (address and length),
/// the immediates, and up to three addresses: of the grid parameters or workgroup counts, and of
/// the two numbers that kernels poll.
const MAX_STORAGE_BINDINGS: u32 = 160;
/// Maximum number of uniform buffers of a kernel.
const MAX_UNIFORM_BINDINGS: u32 = 64;
/// Maximum bytes of immediates of a kernel.
const MAX_IMMEDIATES: u32 = 256;

/// A device that can be opened.
pub(super) struct CudaAdapter(Probe);

impl Adapter for CudaAdapter {
    fn info(&self) -> &DeviceInfo {
        &self.0.info
    }

    fn open(&self) -> Result<Box<dyn Driver>> {
        Ok(Box::new(CudaDriver::new(self.open_gpu()?)?))
    }
}

impl CudaAdapter {
    /// Opens the device without a queue.
    pub(super) fn open_gpu(&self) -> Result<Arc<Gpu>> {
        Ok(Arc::new(Gpu::open(&self.0)?))
    }
}

/// Returns every usable device in the driver's order: the fastest first, unless the environment
/// variable `CUDA_DEVICE_ORDER` is set.
pub(super) fn find(cuda: &'static Cuda) -> Result<Vec<CudaAdapter>, Absence> {
    let mut count = 0;
    // SAFETY: the driver writes an integer.
    let code = unsafe { (cuda.api.device_get_count)(&raw mut count) };
    code.ok().map_err(|code| Absence {
        reason: format!("cuDeviceGetCount failed: {}", error::explain(&cuda.api, code)),
        help: "check that nvidia-smi lists the GPU".to_owned(),
    })?;
    let mut adapters = Vec::new();
    let mut unusable = Vec::new();
    for ordinal in 0..count {
        match probe(cuda, ordinal, adapters.len()) {
            Ok(probe) => adapters.push(CudaAdapter(probe)),
            Err(reason) => unusable.push(reason),
        }
    }
    if adapters.is_empty() {
        return Err(no_usable_device(&unusable));
    }
    for reason in unusable {
        log::info!("cuda: not used: {reason}");
    }
    let devices: Vec<Device> = adapters.iter().map(|adapter| adapter.0.device).collect();
    for CudaAdapter(probe) in &mut adapters {
        let is_peer = |other: Device| {
            other != probe.device && device::can_access(&cuda.api, probe.device, other)
        };
        let all = devices.iter().enumerate();
        probe.info.peers = all.filter(|(_, other)| is_peer(**other)).map(|(at, _)| at).collect();
    }
    Ok(adapters)
}

/// Returns why there is no device; `unusable` has the reason for each one that was found.
fn no_usable_device(unusable: &[String]) -> Absence {
    if unusable.is_empty() {
        return Absence {
            reason: "NVIDIA's driver is there, but has no device".to_owned(),
            help: super::ffi::driver_api::no_device_help(),
        };
    }
    Absence {
        reason: unusable.join("; "),
        help: "use a GPU of the Turing generation (2018) or newer that this user may compute \
                 on, or this one through Vulkan"
            .to_owned(),
    }
}

/// Queries the properties of a device that is not open.
struct DeviceQuery {
    cuda: &'static Cuda,
    device: Device,
}

impl DeviceQuery {
    fn check(&self, call: &str, code: Code) -> Result<(), String> {
        let explain = |code| format!("{call}: {}", error::explain(&self.cuda.api, code));
        code.ok().map_err(explain)
    }

    /// Returns an attribute; 0 if the driver does not support it.
    fn attribute(&self, attribute: c_int) -> u32 {
        let mut value = 0;
        // SAFETY: the driver writes an integer, or returns an error.
        let code =
            unsafe { (self.cuda.api.device_get_attribute)(&raw mut value, attribute, self.device) };
        if code == Code::SUCCESS { u32::try_from(value).unwrap_or(0) } else { 0 }
    }

    fn name(&self) -> Result<String, String> {
        let mut name = [0u8; 256];
        // One byte is reserved for the terminating zero.
        let room = name.len() as c_int - 1;
        let start = name.as_mut_ptr().cast::<c_char>();
        // SAFETY: the buffer has at least `room` bytes.
        let code = unsafe { (self.cuda.api.device_get_name)(start, room, self.device) };
        self.check("cuDeviceGetName", code)?;
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(0);
        Ok(String::from_utf8_lossy(&name[..end]).trim().to_owned())
    }

    fn uuid(&self) -> Option<[u8; 16]> {
        let mut uuid = [0; 16];
        // SAFETY: the driver writes 16 bytes.
        let code = unsafe { (self.cuda.api.device_get_uuid)(&raw mut uuid, self.device) };
        (code == Code::SUCCESS).then_some(uuid)
    }

    fn memory(&self) -> Result<u64, String> {
        let mut bytes = 0;
        // SAFETY: the driver writes an integer.
        let code = unsafe { (self.cuda.api.device_total_mem)(&raw mut bytes, self.device) };
        self.check("cuDeviceTotalMem", code)?;
        Ok(bytes as u64)
    }

    fn pci(&self) -> PciAddress {
        PciAddress {
            domain: self.attribute(attribute::PCI_DOMAIN),
            bus: self.attribute(attribute::PCI_BUS),
            device: self.attribute(attribute::PCI_DEVICE),
            function: 0,
        }
    }

    /// Returns the compute capability, major and minor number.
    fn capability(&self) -> [u16; 2] {
        [attribute::CAPABILITY_MAJOR, attribute::CAPABILITY_MINOR]
            .map(|attribute| u16::try_from(self.attribute(attribute)).unwrap_or(0))
    }

    fn target(&self, name: &str) -> Result<Target, String> {
        let [major, minor] = self.capability();
        let target = Target::for_capability(major, minor);
        target.ok_or_else(|| format!("{name} has compute capability {major}.{minor}, below 7.5"))
    }
}

fn probe(cuda: &'static Cuda, ordinal: c_int, index: usize) -> Result<Probe, String> {
    let mut device = 0;
    // SAFETY: the driver writes an integer.
    let code = unsafe { (cuda.api.device_get)(&raw mut device, ordinal) };
    let query = DeviceQuery { cuda, device };
    query.check("cuDeviceGet", code)?;
    let name = query.name()?;
    let target = query.target(&name)?;
    if query.attribute(attribute::COMPUTE_MODE) == PROHIBITED as u32 {
        return Err(format!("{name} is in the compute mode \"prohibited\""));
    }
    Ok(Probe {
        cuda,
        device,
        target,
        has_pools: query.attribute(attribute::MEMORY_POOLS) != 0,
        writes_values: query.attribute(attribute::STREAM_WRITE_64) != 0,
        info: info(&query, index, name)?,
    })
}

fn info(query: &DeviceQuery, index: usize, name: String) -> Result<DeviceInfo, String> {
    let memory = query.memory()?;
    let build = driver_build();
    let version = query.cuda.version_text();
    let shared = SharedMemory {
        per_block: query.attribute(attribute::SHARED_MEMORY),
        per_block_opt_in: query.attribute(attribute::SHARED_MEMORY_OPTIN),
        per_multiprocessor: query.attribute(attribute::SHARED_MEMORY_PER_MULTIPROCESSOR),
    };
    let is_integrated = query.attribute(attribute::INTEGRATED) != 0;
    Ok(DeviceInfo {
        index,
        name,
        backend: BackendKind::Cuda,
        kind: if is_integrated { DeviceKind::Integrated } else { DeviceKind::Discrete },
        vendor_id: NVIDIA,
        device_id: query.attribute(attribute::PCI_MODEL) >> 16,
        uuid: query.uuid(),
        driver_uuid: Some(driver_uuid(query.cuda.version, build.as_deref())),
        pci: Some(query.pci()),
        driver: match build {
            Some(build) => format!("NVIDIA {build}"),
            None => format!("NVIDIA, for CUDA {version}"),
        },
        api_version: version,
        compute_capability: Some(query.capability()),
        multiprocessors: Some(query.attribute(attribute::MULTIPROCESSORS)),
        shared_memory: Some(shared),
        // Available once all devices are known.
        peers: Vec::new(),
        memory,
        // Available once the device is open: reading it requires a context.
        memory_budget: None,
        subgroup_size: 32,
        binding_alignment: 16,
        features: Features::all(),
        matrix_products: MatrixProducts::all(),
        limits: limits(memory, shared.per_block_opt_in),
        workarounds: Vec::new(),
    })
}

fn limits(memory: u64, shared: u32) -> Limits {
    // Sizes are rounded up to 16 bytes when memory is allocated.
    let max_buffer_size = memory & !15;
    let max_binding_size = max_buffer_size.min(Limits::MAX_WGSL_BINDING);
    Limits {
        max_buffer_size,
        max_storage_binding_size: max_binding_size,
        max_uniform_binding_size: max_binding_size,
        max_storage_bindings: MAX_STORAGE_BINDINGS,
        max_uniform_bindings: MAX_UNIFORM_BINDINGS,
        max_workgroup_size: [1024, 1024, 64],
        max_workgroup_invocations: 1024,
        max_workgroup_memory: shared.max(48 << 10),
        max_immediates: MAX_IMMEDIATES,
        max_native_workgroups: [i32::MAX as u32, 65535, 65535],
    }
}

/// Returns the version of the driver's build, such as `570.86.15`, where Linux reports it.
fn driver_build() -> Option<String> {
    let text = fs::read_to_string("/sys/module/nvidia/version").ok();
    let text = text.or_else(|| {
        let text = fs::read_to_string("/proc/driver/nvidia/version").ok()?;
        parse_build(&text).map(str::to_owned)
    })?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// Extracts the version from the kernel module's text: the first word that consists of digits and
/// dots.
fn parse_build(text: &str) -> Option<&str> {
    let is_version = |word: &&str| {
        word.as_bytes().contains(&b'.')
            && word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
    };
    text.lines().next()?.split_whitespace().find(is_version)
}

/// Returns bytes that identify the driver: the first 16 of the text `VERSION BUILD`, where the
/// version is the CUDA version, such as 12080.
fn driver_uuid(version: c_int, build: Option<&str>) -> [u8; 16] {
    let mut uuid = [0; 16];
    let text = format!("{version} {}", build.unwrap_or_default());
    for (to, from) in uuid.iter_mut().zip(text.bytes()) {
        *to = from;
    }
    uuid
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn largest_kernels_parameters_fit() {
        let limits = limits(80 << 30, 0);
        let buffers = limits.max_storage_bindings + limits.max_uniform_bindings;
        // Address and length of each buffer; the immediates; the addresses of the grid parameters,
        // epoch and stop.
        assert!(buffers * 16 + limits.max_immediates + 3 * 8 <= 4096);
    }

    #[test]
    fn limits_follow_from_the_device() {
        let limits = limits((80 << 30) + 7, 227 << 10);
        assert_eq!(limits.max_buffer_size, 80 << 30);
        assert_eq!(limits.max_storage_binding_size, (4 << 30) - 1);
        assert_eq!(super::limits(2 << 30, 0).max_storage_binding_size, 2 << 30);
        assert_eq!(limits.max_workgroup_memory, 227 << 10);
    }

    #[test]
    fn driver_build_is_parsed() {
        let old = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 2023\n";
        assert_eq!(parse_build(old), Some("535.129.03"));
        let open = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release\n";
        assert_eq!(parse_build(open), Some("570.86.15"));
        assert_eq!(parse_build("no version"), None);
    }

    #[test]
    fn driver_builds_have_distinct_uuids() {
        let identity = |build| driver_uuid(12080, Some(build));
        assert_ne!(identity("570.86.15"), identity("570.86.16"));
        assert_eq!(&identity("570.133.20"), b"12080 570.133.20");
        assert_ne!(driver_uuid(12080, None), driver_uuid(12060, None));
    }

    #[test]
    fn absence_names_unsupported_devices() {
        let absence =
            no_usable_device(&["GTX 1080 has compute capability 6.1, below 7.5".to_owned()]);
        assert!(absence.reason.contains("GTX 1080") && absence.help.contains("Turing"));
        assert!(no_usable_device(&[]).reason.contains("no device"));
    }
}
