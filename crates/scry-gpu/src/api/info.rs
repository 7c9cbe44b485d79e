//! Descriptions of devices: identity, limits, features.

use std::fmt;

use scry_ir::{Features, MatrixProducts};

/// The driver interface of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
#[non_exhaustive]
pub enum BackendKind {
    /// Vulkan 1.2 or newer.
    Vulkan,
    /// NVIDIA's CUDA driver.
    Cuda,
    /// wgpu: Metal, Direct3D 12 or Vulkan, whichever the system has. Only Apple's systems have it
    /// without the feature `wgpu`.
    Wgpu,
    /// The host's CPU.
    Cpu,
    /// A device that checks everything and computes nothing, for tests.
    Null,
}

impl BackendKind {
    /// Returns the lower-case name, as selectors spell it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Vulkan => "vulkan",
            Self::Cuda => "cuda",
            Self::Wgpu => "wgpu",
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

/// The kind of hardware or software of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
#[non_exhaustive]
pub enum DeviceKind {
    /// A GPU with its own memory.
    Discrete,
    /// A GPU that shares the host's memory.
    Integrated,
    /// A GPU seen through a virtual machine.
    Virtual,
    /// The host's CPU: the CPU device, or a software driver such as lavapipe.
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

/// An address on the PCI bus, displayed and serialized as `0000:65:00.0`.
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

/// Device limits. Requests above a limit fail with an error that names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of one buffer.
    pub max_buffer_size: u64,
    /// Bytes of one `var<storage>` binding: less than 4 GiB on every device. A larger buffer
    /// must be bound slice by slice, or as a whole to a kernel that is not WGSL.
    pub max_storage_binding_size: u64,
    /// Bytes of one `var<uniform>` binding: also less than 4 GiB.
    pub max_uniform_binding_size: u64,
    /// `var<storage>` bindings of one kernel.
    pub max_storage_bindings: u32,
    /// `var<uniform>` bindings of one kernel.
    pub max_uniform_bindings: u32,
    /// Invocations of a workgroup along x, y and z.
    pub max_workgroup_size: [u32; 3],
    /// Invocations of a workgroup in total.
    pub max_workgroup_invocations: u32,
    /// Bytes of workgroup memory of one workgroup. On CUDA this is
    /// [`SharedMemory::per_block_opt_in`], to which kernels opt in automatically.
    pub max_workgroup_memory: u32,
    /// Bytes of the immediate block.
    pub max_immediates: u32,
    /// Workgroups along x, y and z that the device supports in one launch. Larger grids of WGSL
    /// kernels are linearised into rows within the limit; `workgroup_id` and the other built-in
    /// values are still those of the requested grid.
    pub max_native_workgroups: [u32; 3],
}

impl Limits {
    /// Bytes of the largest binding of a WGSL kernel on any device. Elements, and the scalars in
    /// them, have 32-bit indices. Loop bound proofs and scalar indices rely on bindings shorter
    /// than 4 GiB.
    pub(crate) const MAX_WGSL_BINDING: u64 = u32::MAX as u64;
}

/// Sizes of an NVIDIA GPU's shared memory, in bytes. They decide which variant of a kernel runs and
/// how many of its blocks are resident on a multiprocessor.
///
/// ```
/// use scry_gpu::Device;
///
/// let gpu = Device::open("cpu")?;
/// // The stages of a pipeline that fit, with tiles of 16 KiB.
/// let bytes = match gpu.info().shared_memory {
///     Some(shared) => shared.per_block_opt_in,
///     None => gpu.info().limits.max_workgroup_memory, // not CUDA
/// };
/// assert!(bytes / (16 << 10) >= 1);
/// # Ok::<(), scry_gpu::GpuError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct SharedMemory {
    /// Maximum of one block without opting in: 48 KiB on current GPUs.
    pub per_block: u32,
    /// Maximum of one block that opts in, static and dynamic together. Kernels compiled by Scry opt
    /// in where they need it.
    pub per_block_opt_in: u32,
    /// Total of a multiprocessor, shared by its resident blocks.
    pub per_multiprocessor: u32,
}

/// A driver defect that is worked around.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Workaround {
    /// Name of the workaround, such as `report-aborted-loops`.
    pub name: &'static str,
    /// The defect of the driver.
    pub reason: &'static str,
    /// Driver versions that were tested and have the defect. The workaround applies to other
    /// versions too, until a fixed one is known.
    pub tested_versions: &'static str,
}

/// A device: identity, limits, features.
///
/// Displayed as one line: the selector, the name, and what distinguishes devices of the same name.
///
/// ```
/// # fn main() -> scry_gpu::Result<()> {
/// let gpu = scry_gpu::Device::open("cpu")?;
/// // Such as `cpu:0 AMD EPYC 9554 (software, scry-cpu 0.2.0, 502.8 GiB)`.
/// println!("{}", gpu.info());
/// assert!(gpu.info().to_string().starts_with("cpu:0 "));
/// # Ok(())
/// # }
/// ```
///
/// With the feature `serde` it can be serialized, as maps with the names of the fields. Backends
/// and kinds are lower-case names, UUIDs and PCI addresses are text, `features` and
/// `matrix_products` are lists of names.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct DeviceInfo {
    /// Position among the devices of its backend, from 0: `vulkan:0` selects the first.
    pub index: usize,
    /// Name given by the driver.
    pub name: String,
    /// The backend that drives the device.
    pub backend: BackendKind,
    /// The kind of hardware or software.
    pub kind: DeviceKind,
    /// PCI vendor, or the identifier from the Khronos registry.
    pub vendor_id: u32,
    /// The vendor's identifier of the model.
    pub device_id: u32,
    /// Identity of the device, stable across processes; `None` where the backend has none, as for
    /// the CPU device.
    #[cfg_attr(feature = "serde", serde(serialize_with = "serialize::uuid"))]
    pub uuid: Option<[u8; 16]>,
    /// Identity of the driver build; `None` as for [`DeviceInfo::uuid`].
    #[cfg_attr(feature = "serde", serde(serialize_with = "serialize::uuid"))]
    pub driver_uuid: Option<[u8; 16]>,
    /// Address on the PCI bus; `None` where the driver does not report it.
    pub pci: Option<PciAddress>,
    /// Driver name and version.
    pub driver: String,
    /// Version of the backend's interface, such as `1.3.230` for Vulkan.
    pub api_version: String,
    /// NVIDIA's compute capability, major and minor number, where CUDA reports it: `[9, 0]` for an
    /// H200.
    pub compute_capability: Option<[u16; 2]>,
    /// Multiprocessors of an NVIDIA GPU, where CUDA reports them.
    pub multiprocessors: Option<u32>,
    /// Shared memory of an NVIDIA GPU, where CUDA reports it; all devices have
    /// [`Limits::max_workgroup_memory`].
    pub shared_memory: Option<SharedMemory>,
    /// The [`DeviceInfo::index`] of each other device of the backend whose memory this one can
    /// access, over NVLink or PCIe. Empty except for CUDA devices.
    pub peers: Vec<usize>,
    /// Bytes of the device's own memory; 0 where the backend does not report them, as wgpu.
    pub memory: u64,
    /// Bytes of it that this process could allocate when the device was listed or opened, where the
    /// driver reports them.
    pub memory_budget: Option<u64>,
    /// Invocations of a subgroup; where it varies, the size kernels are compiled for by default.
    pub subgroup_size: u32,
    /// Offsets of bindings must be multiples of this many bytes.
    pub binding_alignment: u64,
    /// Optional features that kernels may use.
    #[cfg_attr(feature = "serde", serde(serialize_with = "serialize::features"))]
    pub features: Features,
    /// The products of cooperative matrices that kernels may compute; empty without
    /// [`Features::COOPERATIVE_MATRIX`].
    #[cfg_attr(feature = "serde", serde(serialize_with = "serialize::matrix_products"))]
    pub matrix_products: MatrixProducts,
    /// The limits of the device.
    pub limits: Limits,
    /// Defects of its driver that are worked around.
    pub workarounds: Vec<Workaround>,
}

impl DeviceInfo {
    /// Sets the matrix products that kernels may compute, and the feature if there are any.
    /// Products of types that the device lacks are left out.
    #[cfg_attr(not(vulkan), expect(dead_code, reason = "other devices compute all"))]
    pub(crate) fn offer_matrices(&mut self, mut products: MatrixProducts) {
        if !self.features.contains(Features::F16) {
            products -= MatrixProducts::F16;
        }
        self.matrix_products = products;
        self.features.set(Features::COOPERATIVE_MATRIX, !products.is_empty());
    }

    /// Returns the selector, backend and index: `vulkan:0`.
    pub(crate) fn selector(&self) -> String {
        format!("{}:{}", self.backend, self.index)
    }

    /// Returns backend, index and name, as errors list devices: the part before the space is the
    /// selector.
    pub(crate) fn title(&self) -> String {
        format!("{} {}", self.selector(), self.name)
    }
}

impl fmt::Display for DeviceInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, driver, .. } = self;
        let title = self.title();
        if self.memory == 0 {
            return write!(f, "{title} ({kind}, {driver})");
        }
        // The value is printed with one decimal, so rounding is harmless.
        let gib = self.memory as f64 / f64::from(1 << 30);
        write!(f, "{title} ({kind}, {driver}, {gib:.1} GiB)")
    }
}

/// Serializers for parts of a [`DeviceInfo`].
#[cfg(feature = "serde")]
mod serialize {
    use serde::{Serialize, Serializer};

    use super::{Features, MatrixProducts, PciAddress};

    impl Serialize for PciAddress {
        fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            to.collect_str(self)
        }
    }

    /// Writes five groups of hexadecimal digits, or none.
    pub(super) fn uuid<S: Serializer>(uuid: &Option<[u8; 16]>, to: S) -> Result<S::Ok, S::Error> {
        let text = uuid.map(|uuid| {
            let hex = format!("{:032x}", u128::from_be_bytes(uuid));
            [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
        });
        text.serialize(to)
    }

    /// Writes a list of names.
    pub(super) fn features<S: Serializer>(features: &Features, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(features.names())
    }

    /// Writes a list of names.
    pub(super) fn matrix_products<S: Serializer>(
        products: &MatrixProducts,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(products.names())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn device() -> DeviceInfo {
        let mut info = testing::null_info();
        info.backend = BackendKind::Vulkan;
        info.index = 1;
        info.name = "Testium RX 9000".to_owned();
        info.kind = DeviceKind::Discrete;
        info.driver = "testdrv 1.2".to_owned();
        info.memory = 16 << 30;
        info
    }

    #[test]
    fn a_device_is_one_line() {
        let text = "vulkan:1 Testium RX 9000 (discrete, testdrv 1.2, 16.0 GiB)";
        assert_eq!(device().to_string(), text);
    }

    #[cfg(vulkan)]
    #[test]
    fn products_of_missing_types_are_omitted() {
        let mut info = device();
        info.features = Features::SUBGROUPS;
        info.offer_matrices(MatrixProducts::F16_F32_8X8);
        assert_eq!(info.matrix_products, MatrixProducts::empty());
        assert_eq!(info.features, Features::SUBGROUPS);
        info.offer_matrices(MatrixProducts::F16_F32_8X8 | MatrixProducts::F32_16X16);
        assert_eq!(info.matrix_products, MatrixProducts::F32_16X16);
        assert_eq!(info.features, Features::SUBGROUPS | Features::COOPERATIVE_MATRIX);
        info.features |= Features::F16;
        info.offer_matrices(MatrixProducts::F16_F32_8X8);
        assert_eq!(info.matrix_products, MatrixProducts::F16_F32_8X8);
        info.offer_matrices(MatrixProducts::empty());
        assert_eq!(info.features, Features::SUBGROUPS | Features::F16);
    }

    #[cfg(feature = "serde")]
    #[test]
    fn shared_memory_is_serialized_by_name() {
        let mut info = device();
        assert_eq!(serde_json::to_value(&info).unwrap()["shared_memory"], serde_json::Value::Null);
        info.shared_memory = Some(SharedMemory {
            per_block: 48 << 10,
            per_block_opt_in: 227 << 10,
            per_multiprocessor: 228 << 10,
        });
        let shared = &serde_json::to_value(&info).unwrap()["shared_memory"];
        let expected = [("per_block", 48), ("per_block_opt_in", 227), ("per_multiprocessor", 228)];
        assert!(expected.iter().all(|(name, kib)| shared[name] == kib << 10), "{shared}");
    }

    #[cfg(feature = "serde")]
    #[test]
    fn devices_are_serialized_readably() {
        let mut info = device();
        info.uuid = Some(*b"\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\xef");
        info.pci = Some(PciAddress { domain: 0, bus: 0x65, device: 0, function: 0 });
        info.features = Features::F16 | Features::SUBGROUPS;
        info.matrix_products = MatrixProducts::F16_F32_16X16;
        info.workarounds = vec![Workaround { name: "w", reason: "r", tested_versions: "t" }];
        let json = serde_json::to_value(&info).unwrap();
        assert_eq!(json["backend"], "vulkan");
        assert_eq!(json["kind"], "discrete");
        assert_eq!(json["index"], 1);
        assert_eq!(json["uuid"], "01234567-89ab-cdef-0123-456789abcdef");
        assert_eq!(json["driver_uuid"], serde_json::Value::Null);
        assert_eq!(json["pci"], "0000:65:00.0");
        assert_eq!(json["features"], serde_json::json!(["f16", "subgroups"]));
        assert_eq!(json["matrix_products"], serde_json::json!(["f16-f32-16x16"]));
        assert_eq!(
            json["limits"]["max_workgroup_size"],
            serde_json::json!(info.limits.max_workgroup_size)
        );
        assert_eq!(json["workarounds"][0]["name"], "w");
        assert_eq!(
            serde_json::from_value::<BackendKind>(json["backend"].clone()).unwrap(),
            info.backend
        );
        assert_eq!(serde_json::from_value::<DeviceKind>(json["kind"].clone()).unwrap(), info.kind);
    }
}
