//! What a device is and what it can do.

use std::fmt;

use scry_ir::Features;

/// The programming interface through which a device is driven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum BackendKind {
    /// Vulkan 1.2 or newer.
    Vulkan,
    /// NVIDIA's CUDA driver.
    Cuda,
    /// The host's processor.
    Cpu,
    /// A device that checks everything and computes nothing, for tests.
    Null,
}

impl BackendKind {
    /// The lower-case name, as selectors spell it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Vulkan => "vulkan",
            Self::Cuda => "cuda",
            Self::Cpu => "cpu",
            Self::Null => "null",
        }
    }
}

impl fmt::Display for BackendKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a device is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeviceKind {
    /// A GPU with memory of its own.
    Discrete,
    /// A GPU that shares the host's memory.
    Integrated,
    /// A GPU seen through a virtual machine.
    Virtual,
    /// The host's processor, running kernels in software.
    Software,
    /// Anything else.
    Other,
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Discrete => "discrete",
            Self::Integrated => "integrated",
            Self::Virtual => "virtual",
            Self::Software => "software",
            Self::Other => "other",
        })
    }
}

/// A place on the PCI bus; written `0000:65:00.0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PciAddress {
    /// Domain.
    pub domain: u32,
    /// Bus.
    pub bus: u32,
    /// Device.
    pub device: u32,
    /// Function.
    pub function: u32,
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { domain, bus, device, function } = self;
        write!(f, "{domain:04x}:{bus:02x}:{device:02x}.{function:x}")
    }
}

/// The largest things that a device takes. Whatever is beyond is refused with the limit's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of one buffer.
    pub max_buffer_size: u64,
    /// Bytes of one `var<storage>` binding: less than 4 GiB on every device. A larger buffer is
    /// bound slice by slice, or as a whole to a kernel that is not WGSL.
    pub max_storage_binding_size: u64,
    /// Bytes of one `var<uniform>` binding, less than 4 GiB as well.
    pub max_uniform_binding_size: u64,
    /// `var<storage>` bindings of one kernel.
    pub max_storage_bindings: u32,
    /// `var<uniform>` bindings of one kernel.
    pub max_uniform_bindings: u32,
    /// Invocations of a workgroup along x, y and z.
    pub max_workgroup_size: [u32; 3],
    /// Invocations of a workgroup in all.
    pub max_workgroup_invocations: u32,
    /// Bytes of workgroup memory.
    pub max_workgroup_memory: u32,
    /// Bytes of the immediate block.
    pub max_immediates: u32,
    /// Workgroups along x, y and z that the device itself takes in one launch. Larger launches are
    /// folded: the kernel does not notice.
    pub max_native_workgroups: [u32; 3],
}

impl Limits {
    /// Bytes of the largest binding of a WGSL kernel on any device. Elements, and the scalars in
    /// them, are numbered in 32 bits. The proofs that loops over them end, and the indices of parts
    /// of elements, rely on bindings that are shorter than 4 GiB.
    pub(crate) const MAX_WGSL_BINDING: u64 = u32::MAX as u64;
}

/// A defect of a driver, and what is done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Workaround {
    /// What is done, such as `report-cut-loops`.
    pub name: &'static str,
    /// What the driver does wrong.
    pub reason: &'static str,
    /// Versions of the driver that were seen to do so. Others are treated alike until one is known
    /// that does not.
    pub tried: &'static str,
}

/// A device: identity, limits, features.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// Position among the devices of its backend, from 0: `vulkan:0` selects the first.
    pub index: usize,
    /// Name given by the driver.
    pub name: String,
    /// The backend that drives the device.
    pub backend: BackendKind,
    /// What the device is made of.
    pub kind: DeviceKind,
    /// PCI vendor, or the identifier that the Khronos registry gives.
    pub vendor_id: u32,
    /// The vendor's number of the model.
    pub device_id: u32,
    /// Identity of the device, stable across processes.
    pub uuid: Option<[u8; 16]>,
    /// Identity of the driver build.
    pub driver_uuid: Option<[u8; 16]>,
    /// Place on the PCI bus.
    pub pci: Option<PciAddress>,
    /// Driver name and version.
    pub driver: String,
    /// Version of the backend's interface, such as `1.3.230` for Vulkan.
    pub api_version: String,
    /// NVIDIA's compute capability, major and minor number, where CUDA tells: `[9, 0]` for an H200.
    pub compute_capability: Option<[u16; 2]>,
    /// Multiprocessors of an NVIDIA GPU, where CUDA tells.
    pub multiprocessors: Option<u32>,
    /// Bytes of the device's own memory.
    pub memory: u64,
    /// Bytes that this process may take at present, where the driver tells.
    pub memory_budget: Option<u64>,
    /// Invocations of a subgroup; where it varies, the size kernels are compiled for by default.
    pub subgroup_size: u32,
    /// Offsets of bindings must be multiples of this many bytes.
    pub binding_alignment: u64,
    /// Optional features that kernels may use.
    pub features: Features,
    /// The largest things that the device takes.
    pub limits: Limits,
    /// Defects of its driver that are worked around.
    pub workarounds: Vec<Workaround>,
}

impl DeviceInfo {
    /// Backend, index and name, as errors list devices: the part before the space selects it.
    pub(crate) fn title(&self) -> String {
        format!("{}:{} {}", self.backend, self.index, self.name)
    }
}
