//! The logical device: shared handles, and whether the device is lost or abandoned.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use ash::{ext, khr, vk};
use scry_ir::{FloatTypes, MatrixProducts};

use super::compile::{NoWriter, SpirvWriter};
use super::ffi::error;
use super::ffi::features::{Extensions, FeatureChain};
use super::ffi::instance::Instance;
use super::lock;
use super::probe::{self, CacheIdentity, Probe, Timestamps};
use super::workarounds::{Fix, Workarounds};
use crate::api::error::{DeviceLostError, DriverError, GpuError, Result};
use crate::api::info::{DeviceInfo, DeviceKind};
use crate::lifecycle::fork_guard::{FORKED, Process};
use crate::lifecycle::pinned_libraries;

/// A logical device. Everything created from it holds an `Arc` of it.
pub(super) struct Gpu {
    pub(super) raw: ash::Device,
    pub(super) info: DeviceInfo,
    pub(super) instance: Arc<Instance>,
    pub(super) physical: vk::PhysicalDevice,
    /// The smaller of the device's Vulkan version and the newest one that the backend uses.
    pub(super) version: u32,
    pub(super) queue_family: u32,
    pub(super) timestamps: Timestamps,
    pub(super) cache_identity: CacheIdentity,
    pub(super) workarounds: Workarounds,
    /// Functions of `VK_KHR_push_descriptor`, where the device supports it.
    pub(super) push: Option<khr::push_descriptor::Device>,
    pub(super) max_push_descriptors: u32,
    /// Whether descriptor sets are faster than push descriptors.
    pub(super) prefers_sets: bool,
    /// Whether the driver zero-initialises workgroup memory on request.
    pub(super) zeroes_workgroup_memory: bool,
    pub(super) has_dot_product: bool,
    /// The float types of which the driver keeps NaN, infinities and signed zeros on request.
    pub(super) nan_preserving: FloatTypes,
    /// Whether the stop word can be in memory that the host writes and the device reads fast, so
    /// that kernels can poll it. The device reads other host memory about once per microsecond, too
    /// slowly for all subgroups of a GPU.
    pub(super) can_poll: bool,
    /// The writer of the kernels' SPIR-V.
    pub(super) writer: SpirvWriter,
    extensions: Extensions,
    /// The function that names objects; `Some` if validation is enabled.
    debug_names: Option<ext::debug_utils::Device>,
    /// The process that opened the device.
    process: Process,
    /// Set once the device is abandoned: no more waits, and objects that it may be using are
    /// leaked.
    abandoned: AtomicBool,
    /// The reason of the device loss, once it happened.
    lost: OnceLock<String>,
}

impl Gpu {
    /// Opens the device with one queue and all extensions and features that its info reports.
    pub(super) fn open(instance: &Arc<Instance>, probe: &Probe) -> Result<Self> {
        let Probe { physical, version, extensions, .. } = probe;
        let writer = SpirvWriter::selected().map_err(|NoWriter { problem, help }| {
            GpuError::Driver(DriverError::new(&probe.info.name, "Device::open", problem, help))
        })?;
        let mut info = probe.info.clone();
        if !writer.writes_matrices() {
            info.offer_matrices(MatrixProducts::empty());
        }
        let mut features = FeatureChain::query(&instance.raw, *physical, extensions, *version);
        let raw = match take_reusable(instance, *physical) {
            Some(raw) => raw,
            None => create(instance, probe, &mut features)?,
        };
        if probe.workarounds.has(Fix::PinLibraries) {
            pinned_libraries::pin_nvidia_libraries();
        }
        let push = extensions
            .push_descriptor
            .then(|| khr::push_descriptor::Device::new(&instance.raw, &raw));
        let debug_names =
            instance.debug.as_ref().map(|_| ext::debug_utils::Device::new(&instance.raw, &raw));
        Ok(Self {
            raw,
            info,
            instance: Arc::clone(instance),
            physical: *physical,
            version: *version,
            queue_family: probe.queue_family,
            timestamps: probe.timestamps,
            cache_identity: probe.cache_identity,
            workarounds: probe.workarounds.clone(),
            max_push_descriptors: probe.max_push_descriptors,
            // Software drivers allocate a set for each push; GPU drivers write it into the command
            // buffer.
            prefers_sets: probe.info.kind == DeviceKind::Software,
            push,
            zeroes_workgroup_memory: features.zeroes_workgroup_memory(),
            has_dot_product: features.has_dot_product(),
            nan_preserving: probe.nan_preserving,
            can_poll: has_visible_local_memory(instance, *physical),
            writer,
            extensions: *extensions,
            debug_names,
            process: Process::current(),
            abandoned: AtomicBool::new(false),
            lost: OnceLock::new(),
        })
    }

    /// Returns the error for a call that returned `code`, and records a device loss.
    pub(super) fn failed(&self, call: &'static str, code: vk::Result) -> GpuError {
        let error = error::failed(&self.info.name, call, code);
        if let GpuError::DeviceLost(DeviceLostError { reason, .. }) = &error {
            self.mark_lost(reason.clone());
        }
        error
    }

    /// Returns the error for a call that violates a rule of the core: a defect of this crate, which
    /// no program should be able to cause.
    pub(super) fn defect_error(&self, call: &'static str, why: String) -> GpuError {
        error::defect(&self.info.name, call, why)
    }

    /// Records the device loss, and returns its error.
    pub(super) fn mark_lost(&self, reason: String) -> GpuError {
        let reason = self.lost.get_or_init(|| reason).clone();
        self.abandon();
        error::lost(&self.info.name, reason)
    }

    /// Returns an error if the device is lost or abandoned.
    pub(super) fn check_alive(&self) -> Result<()> {
        if !self.is_abandoned() {
            return Ok(());
        }
        let reason = match self.lost.get() {
            _ if self.process.has_forked() => FORKED.to_owned(),
            Some(reason) => reason.clone(),
            None => "it was abandoned earlier".to_owned(),
        };
        Err(error::lost(&self.info.name, reason))
    }

    /// Abandons the device: no more waits, and objects that it may be using are leaked.
    pub(super) fn abandon(&self) {
        self.abandoned.store(true, Ordering::Release);
    }

    /// Returns whether objects must be leaked instead of destroyed. Always true in a forked child:
    /// they belong to the parent.
    pub(super) fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Acquire) || self.process.has_forked()
    }

    /// Returns the device memory in bytes that this process may use now, including what it has
    /// allocated, if the driver reports it.
    pub(super) fn memory_budget(&self) -> Option<u64> {
        probe::memory_budget(&self.instance.raw, self.physical, &self.extensions)
    }

    /// Names an object for debugging tools, if the extension is enabled.
    pub(super) fn set_name<H: vk::Handle>(&self, object: H, name: &str) {
        let Some(names) = &self.debug_names else { return };
        let Ok(name) = std::ffi::CString::new(name) else {
            return;
        };
        let info =
            vk::DebugUtilsObjectNameInfoEXT::default().object_handle(object).object_name(&name);
        // SAFETY: the object belongs to this device, and no other thread uses it yet.
        if let Err(code) = unsafe { names.set_debug_utils_object_name(&info) } {
            log::debug!("vulkan: an object has no name: {}", error::explain(code));
        }
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        if self.is_abandoned() {
            // The device may still be running, and needs its instance.
            std::mem::forget(Arc::clone(&self.instance));
            return;
        }
        // NVIDIA's driver (580) deadlocks if a thread that has used Vulkan exits while another one
        // destroys a device. The exiting thread holds the lock of the list of threads, and waits
        // for the driver's lock. The other one holds the driver's lock and joins a helper thread,
        // which needs the list to exit. So devices of this driver are reused instead of destroyed.
        if self.workarounds.has(Fix::ReuseDevices) {
            lock(&self.instance.reusable_devices).push((self.physical, self.raw.clone()));
            return;
        }
        // SAFETY: all objects created from the device hold an `Arc` of `self`, so none is left, and
        // `VulkanDriver` has waited for its work.
        unsafe { self.raw.destroy_device(None) };
    }
}

/// Returns whether a device has device-local memory that is host-visible and coherent.
fn has_visible_local_memory(instance: &Instance, physical: vk::PhysicalDevice) -> bool {
    // SAFETY: the physical device belongs to the instance.
    let all = unsafe { instance.raw.get_physical_device_memory_properties(physical) };
    let wanted = vk::MemoryPropertyFlags::DEVICE_LOCAL
        | vk::MemoryPropertyFlags::HOST_VISIBLE
        | vk::MemoryPropertyFlags::HOST_COHERENT;
    all.memory_types_as_slice().iter().any(|ty| ty.property_flags.contains(wanted))
}

/// Removes an unused logical device of this physical device from those kept for reuse.
fn take_reusable(instance: &Instance, physical: vk::PhysicalDevice) -> Option<ash::Device> {
    let mut reusable = lock(&instance.reusable_devices);
    let index = reusable.iter().position(|(owner, _)| *owner == physical)?;
    Some(reusable.swap_remove(index).1)
}

/// Creates a logical device.
fn create(instance: &Instance, probe: &Probe, features: &mut FeatureChain) -> Result<ash::Device> {
    let queues = [vk::DeviceQueueCreateInfo::default()
        .queue_family_index(probe.queue_family)
        .queue_priorities(&[1.0])];
    let extensions = probe.extensions.names(probe.version);
    let device = features.with_chain(|chain| {
        let info = vk::DeviceCreateInfo::default()
            .queue_create_infos(&queues)
            .enabled_extension_names(&extensions)
            .push_next(chain);
        // SAFETY: only extensions and features that the device reports are enabled.
        unsafe { instance.raw.create_device(probe.physical, &info, None) }
    });
    device.map_err(|code| error::failed(&probe.info.name, "vkCreateDevice", code))
}
