//! Vulkan adapters: enumerates physical devices, queries their properties, and opens them.

use std::ffi::CStr;
use std::sync::Arc;

use ash::vk;
use scry_ir::{Features, FloatTypes, MatrixProducts};

use super::VulkanDriver;
use super::device::Gpu;
use super::ffi::error;
use super::ffi::features::{Extensions, FeatureChain};
use super::ffi::instance::{self, Instance, version_text};
use super::ffi::matrices;
use super::probe::{CacheIdentity, Probe, Timestamps, memory};
use super::workarounds::{Fix, Workarounds};
use crate::api::error::Result;
use crate::api::info::{BackendKind, DeviceInfo, DeviceKind, Limits, PciAddress};
use crate::backend::Absence;
use crate::core::driver::{Adapter, Driver};

/// A physical device that can be opened.
pub(super) struct VulkanAdapter {
    instance: Arc<Instance>,
    probe: Probe,
}

impl Adapter for VulkanAdapter {
    fn info(&self) -> &DeviceInfo {
        &self.probe.info
    }

    fn open(&self) -> Result<Box<dyn Driver>> {
        Ok(Box::new(self.open_driver()?))
    }
}

impl VulkanAdapter {
    /// Opens the device.
    pub(super) fn open_driver(&self) -> Result<VulkanDriver> {
        VulkanDriver::new(Arc::new(self.open_gpu()?))
    }

    /// Opens the device without a queue.
    pub(super) fn open_gpu(&self) -> Result<Gpu> {
        Gpu::open(&self.instance, &self.probe)
    }
}

/// Returns all usable devices, in this order: discrete, integrated, virtual, other, software.
pub(super) fn find(instance: &Arc<Instance>) -> Result<Vec<VulkanAdapter>, Absence> {
    // SAFETY: a query without preconditions.
    let physical = unsafe { instance.raw.enumerate_physical_devices() };
    let physical = physical.map_err(|code| Absence {
        reason: format!("vkEnumeratePhysicalDevices failed: {}", error::explain(code)),
        help: instance::driver_help(&[]),
    })?;
    let mut unusable = Vec::new();
    let mut probes = Vec::new();
    for physical in physical {
        match probe(instance, physical) {
            Ok(probe) => probes.push(probe),
            Err(reason) => unusable.push(reason),
        }
    }
    if probes.is_empty() {
        return Err(no_usable_device(instance, unusable));
    }
    for reason in unusable {
        log::info!("vulkan: not used: {reason}");
    }
    probes.sort_by_key(|probe| rank(probe.info.kind));
    let adapters = probes.into_iter().enumerate().map(|(index, mut probe)| {
        probe.info.index = index;
        let instance = Arc::clone(instance);
        VulkanAdapter { instance, probe }
    });
    Ok(adapters.collect())
}

/// Returns the position of a kind of device in the order of adapters.
fn rank(kind: DeviceKind) -> u32 {
    match kind {
        DeviceKind::Discrete => 0,
        DeviceKind::Integrated => 1,
        DeviceKind::Virtual => 2,
        DeviceKind::Other => 3,
        DeviceKind::Software => 4,
    }
}

/// Returns why there is no device; `unusable` has the reason for each one that was found.
fn no_usable_device(instance: &Instance, unusable: Vec<String>) -> Absence {
    if unusable.is_empty() {
        let mut reason = "the installed Vulkan drivers have no device".to_owned();
        let messages = instance.loader_messages();
        instance::append_loader_messages(&mut reason, &messages);
        return Absence { reason, help: instance::driver_help(&messages) };
    }
    Absence {
        reason: unusable.join("; "),
        help: "update the graphics driver to one with Vulkan 1.2 or newer".to_owned(),
    }
}

/// Properties of a physical device, as Vulkan reports them.
struct Properties {
    core: vk::PhysicalDeviceProperties,
    v11: vk::PhysicalDeviceVulkan11Properties<'static>,
    v12: vk::PhysicalDeviceVulkan12Properties<'static>,
    max_push_descriptors: u32,
    max_buffer_size: u64,
    pci: Option<PciAddress>,
}

fn probe(loaded: &Instance, physical: vk::PhysicalDevice) -> Result<Probe, String> {
    let instance = &loaded.raw;
    // SAFETY: the physical device belongs to the instance.
    let core = unsafe { instance.get_physical_device_properties(physical) };
    let name = text(core.device_name_as_c_str());
    if core.api_version < instance::MIN_VERSION {
        let version = version_text(core.api_version);
        return Err(format!("{name} has Vulkan {version}, older than 1.2"));
    }
    let version = core.api_version.min(instance::MAX_VERSION);
    let extensions = Extensions::query(instance, physical, version)
        .map_err(|code| format!("{name} does not list its extensions: {}", error::explain(code)))?;
    let features = FeatureChain::query(instance, physical, &extensions, version);
    if !features.has_timeline_semaphores() {
        return Err(format!("{name} has no timeline semaphores"));
    }
    let (queue_family, valid_bits) =
        compute_queue(instance, physical).ok_or_else(|| format!("{name} has no compute queue"))?;
    let properties = properties(instance, physical, &extensions, version);
    let driver_info = text(properties.v12.driver_info_as_c_str());
    let workarounds = Workarounds::matching(properties.v12.driver_id, &driver_info);
    let mut info = info(instance, physical, &properties, &features, &extensions);
    let products = matrices::products(loaded, physical, &extensions, &features)
        .map_err(|code| format!("{name} does not list its matrices: {}", error::explain(code)))?;
    info.offer_matrices(products);
    info.workarounds = workarounds.to_info();
    if workarounds.has(Fix::ReportAbortedLoops) {
        // Kernels with a failure report have one storage buffer more than their source declares.
        let limit = &mut info.limits.max_storage_bindings;
        *limit = limit.saturating_sub(1);
    }
    Ok(Probe {
        physical,
        info,
        workarounds,
        version,
        extensions,
        queue_family,
        timestamps: Timestamps { valid_bits, period: core.limits.timestamp_period },
        max_push_descriptors: properties.max_push_descriptors,
        nan_preserving: nan_preserving(&properties.v12),
        cache_identity: CacheIdentity {
            vendor: core.vendor_id,
            device: core.device_id,
            uuid: core.pipeline_cache_uuid,
        },
    })
}

/// Returns the float types of which the driver keeps NaN, infinities and signed zeros on request.
fn nan_preserving(v12: &vk::PhysicalDeviceVulkan12Properties<'_>) -> FloatTypes {
    let all = [
        (v12.shader_signed_zero_inf_nan_preserve_float16, FloatTypes::F16),
        (v12.shader_signed_zero_inf_nan_preserve_float32, FloatTypes::F32),
        (v12.shader_signed_zero_inf_nan_preserve_float64, FloatTypes::F64),
    ];
    all.into_iter().filter(|(has, _)| *has == vk::TRUE).map(|(_, ty)| ty).collect()
}

/// Returns the compute queue family and the valid bits of its timestamps.
fn compute_queue(instance: &ash::Instance, physical: vk::PhysicalDevice) -> Option<(u32, u32)> {
    // SAFETY: the physical device belongs to the instance.
    let families = unsafe { instance.get_physical_device_queue_family_properties(physical) };
    let computing = (0u32..)
        .zip(&families)
        .filter(|(_, family)| family.queue_flags.contains(vk::QueueFlags::COMPUTE))
        .map(|(index, family)| (index, family.timestamp_valid_bits));
    // The first family with timestamps, else the first.
    computing.min_by_key(|(_, valid_bits)| *valid_bits == 0)
}

fn properties(
    instance: &ash::Instance,
    physical: vk::PhysicalDevice,
    extensions: &Extensions,
    version: u32,
) -> Properties {
    let mut v11 = vk::PhysicalDeviceVulkan11Properties::default();
    let mut v12 = vk::PhysicalDeviceVulkan12Properties::default();
    let mut push = vk::PhysicalDevicePushDescriptorPropertiesKHR::default();
    let mut sizes = vk::PhysicalDeviceMaintenance4Properties::default();
    let mut pci = vk::PhysicalDevicePCIBusInfoPropertiesEXT::default();
    let mut all = vk::PhysicalDeviceProperties2::default().push_next(&mut v11).push_next(&mut v12);
    if extensions.push_descriptor {
        all = all.push_next(&mut push);
    }
    if version >= vk::API_VERSION_1_3 {
        all = all.push_next(&mut sizes);
    }
    if extensions.pci_bus_info {
        all = all.push_next(&mut pci);
    }
    // SAFETY: the chained structures belong to versions and extensions that the device supports.
    unsafe { instance.get_physical_device_properties2(physical, &mut all) };
    let core = all.properties;
    // The links point to local variables.
    (v11.p_next, v12.p_next) = (std::ptr::null_mut(), std::ptr::null_mut());
    Properties {
        core,
        v11,
        v12,
        max_push_descriptors: push.max_push_descriptors,
        max_buffer_size: match sizes.max_buffer_size {
            // Not queried.
            0 => u64::MAX,
            size => size,
        },
        pci: extensions.pci_bus_info.then_some(PciAddress {
            domain: pci.pci_domain,
            bus: pci.pci_bus,
            device: pci.pci_device,
            function: pci.pci_function,
        }),
    }
}

fn info(
    instance: &ash::Instance,
    physical: vk::PhysicalDevice,
    properties: &Properties,
    features: &FeatureChain,
    extensions: &Extensions,
) -> DeviceInfo {
    let Properties { core, v11, v12, .. } = properties;
    let (memory, memory_budget) = memory(instance, physical, extensions.memory_budget);
    let alignment = core
        .limits
        .min_storage_buffer_offset_alignment
        .max(core.limits.min_uniform_buffer_offset_alignment);
    let driver = [text(v12.driver_name_as_c_str()), text(v12.driver_info_as_c_str())];
    DeviceInfo {
        index: 0,
        name: text(core.device_name_as_c_str()),
        backend: BackendKind::Vulkan,
        kind: kind(core.device_type),
        vendor_id: core.vendor_id,
        device_id: core.device_id,
        uuid: Some(v11.device_uuid),
        driver_uuid: Some(v11.driver_uuid),
        pci: properties.pci,
        driver: driver.join(" ").trim().to_owned(),
        api_version: version_text(core.api_version),
        compute_capability: None,
        multiprocessors: None,
        shared_memory: None,
        peers: Vec::new(),
        memory,
        memory_budget,
        subgroup_size: v11.subgroup_size,
        binding_alignment: alignment,
        features: features.wgsl() | subgroup_features(v11),
        matrix_products: MatrixProducts::empty(),
        limits: limits(properties),
        workarounds: Vec::new(),
    }
}

fn text(vulkan: Result<&CStr, std::ffi::FromBytesUntilNulError>) -> String {
    vulkan.map(|text| text.to_string_lossy().trim().to_owned()).unwrap_or_default()
}

fn kind(ty: vk::PhysicalDeviceType) -> DeviceKind {
    match ty {
        vk::PhysicalDeviceType::DISCRETE_GPU => DeviceKind::Discrete,
        vk::PhysicalDeviceType::INTEGRATED_GPU => DeviceKind::Integrated,
        vk::PhysicalDeviceType::VIRTUAL_GPU => DeviceKind::Virtual,
        vk::PhysicalDeviceType::CPU => DeviceKind::Software,
        _ => DeviceKind::Other,
    }
}

/// Returns WGSL's subgroup feature if the device supports all subgroup operations.
fn subgroup_features(properties: &vk::PhysicalDeviceVulkan11Properties<'_>) -> Features {
    use vk::SubgroupFeatureFlags as Group;
    let all = Group::BASIC
        | Group::VOTE
        | Group::ARITHMETIC
        | Group::BALLOT
        | Group::SHUFFLE
        | Group::SHUFFLE_RELATIVE
        | Group::QUAD;
    let in_compute = properties.subgroup_supported_stages.contains(vk::ShaderStageFlags::COMPUTE);
    if in_compute && properties.subgroup_supported_operations.contains(all) {
        Features::SUBGROUPS
    } else {
        Features::empty()
    }
}

fn limits(properties: &Properties) -> Limits {
    let core = &properties.core.limits;
    // Sizes are rounded up to 16 bytes when memory is allocated.
    let max_buffer_size =
        properties.v11.max_memory_allocation_size.min(properties.max_buffer_size) & !15;
    let resources = core.max_per_stage_resources;
    // A kernel with a linearised grid has one uniform buffer more than its source declares.
    let uniforms = core
        .max_per_stage_descriptor_uniform_buffers
        .min(core.max_descriptor_set_uniform_buffers)
        .min(resources)
        .saturating_sub(1);
    Limits {
        max_buffer_size,
        max_storage_binding_size: u64::from(core.max_storage_buffer_range).min(max_buffer_size),
        max_uniform_binding_size: u64::from(core.max_uniform_buffer_range).min(max_buffer_size),
        max_storage_bindings: core
            .max_per_stage_descriptor_storage_buffers
            .min(core.max_descriptor_set_storage_buffers)
            .min(resources),
        max_uniform_bindings: uniforms,
        max_workgroup_size: core.max_compute_work_group_size,
        max_workgroup_invocations: core.max_compute_work_group_invocations,
        max_workgroup_memory: core.max_compute_shared_memory_size,
        max_immediates: core.max_push_constants_size,
        max_native_workgroups: core.max_compute_work_group_count,
    }
}
