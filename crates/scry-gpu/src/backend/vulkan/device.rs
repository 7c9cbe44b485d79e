//! The logical device: handles that everything else shares, and whether it still lives.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use ash::{ext, khr, vk};

use super::ffi::error;
use super::ffi::features::{Extensions, FeatureChain};
use super::ffi::instance::Instance;
use super::lock;
use super::probe::{self, CacheIdentity, Probe, Timestamps};
use super::workarounds::{Fix, Workarounds};
use crate::api::error::{DeviceLostError, GpuError, Result};
use crate::api::info::{DeviceInfo, DeviceKind};
use crate::lifecycle::fork_guard::{FORKED, Process};
use crate::lifecycle::pinned_libraries;

/// A logical device. Everything made from it holds an `Arc` of it.
pub(super) struct Gpu {
    pub(super) raw: ash::Device,
    pub(super) info: DeviceInfo,
    pub(super) instance: Arc<Instance>,
    pub(super) physical: vk::PhysicalDevice,
    pub(super) version: u32,
    pub(super) queue_family: u32,
    pub(super) timestamps: Timestamps,
    pub(super) cache_identity: CacheIdentity,
    pub(super) workarounds: Workarounds,
    /// Pushes descriptors into command buffers, where the device can.
    pub(super) push: Option<khr::push_descriptor::Device>,
    pub(super) max_push_descriptors: u32,
    /// Whether descriptor sets are the faster way even where bindings can be pushed.
    pub(super) prefers_sets: bool,
    pub(super) zeroes_workgroup_memory: bool,
    pub(super) has_dot_product: bool,
    extensions: Extensions,
    names: Option<ext::debug_utils::Device>,
    /// Where the device was opened.
    process: Process,
    /// Set once nothing may be waited for, nor freed, any more.
    given_up: AtomicBool,
    /// Why the device is lost, once it is.
    lost: OnceLock<String>,
}

impl Gpu {
    /// Opens the device with one queue and everything that its info reports.
    pub(super) fn open(instance: &Arc<Instance>, probe: &Probe) -> Result<Self> {
        let Probe { physical, version, extensions, .. } = probe;
        let mut features = FeatureChain::query(&instance.raw, *physical, extensions, *version);
        let raw = match parked(instance, *physical) {
            Some(raw) => raw,
            None => create(instance, probe, &mut features)?,
        };
        if probe.workarounds.has(Fix::PinLibraries) {
            pinned_libraries::hold_nvidias();
        }
        let push = extensions
            .push_descriptor
            .then(|| khr::push_descriptor::Device::new(&instance.raw, &raw));
        let names =
            instance.debug.as_ref().map(|_| ext::debug_utils::Device::new(&instance.raw, &raw));
        Ok(Self {
            raw,
            info: probe.info.clone(),
            instance: Arc::clone(instance),
            physical: *physical,
            version: *version,
            queue_family: probe.queue_family,
            timestamps: probe.timestamps,
            cache_identity: probe.cache_identity,
            workarounds: probe.workarounds.clone(),
            max_push_descriptors: probe.max_push_descriptors,
            // A software device makes a set of every push; a GPU's driver writes it in place.
            prefers_sets: probe.info.kind == DeviceKind::Software,
            push,
            zeroes_workgroup_memory: features.zeroes_workgroup_memory(),
            has_dot_product: features.has_dot_product(),
            extensions: *extensions,
            names,
            process: Process::current(),
            given_up: AtomicBool::new(false),
            lost: OnceLock::new(),
        })
    }

    /// The error for a call that returned `code`; remembers the loss of the device.
    pub(super) fn failed(&self, call: &'static str, code: vk::Result) -> GpuError {
        let error = error::failed(&self.info.name, call, code);
        if let GpuError::DeviceLost(DeviceLostError { reason, .. }) = &error {
            self.lose(reason.clone());
        }
        error
    }

    /// The error for work that cannot be done as asked.
    pub(super) fn refused(&self, call: &'static str, why: String) -> GpuError {
        error::refused(&self.info.name, call, why)
    }

    /// Remembers that the device is lost, and returns the error that says so.
    pub(super) fn lose(&self, reason: String) -> GpuError {
        let reason = self.lost.get_or_init(|| reason).clone();
        self.give_up();
        error::lost(&self.info.name, reason)
    }

    /// An error if the device is lost or was given up.
    pub(super) fn check_alive(&self) -> Result<()> {
        if !self.is_given_up() {
            return Ok(());
        }
        let reason = match self.lost.get() {
            _ if self.process.was_left() => FORKED.to_owned(),
            Some(reason) => reason.clone(),
            None => "it was given up earlier".to_owned(),
        };
        Err(error::lost(&self.info.name, reason))
    }

    /// From now on nothing waits for the device, and nothing that it may be using is freed.
    pub(super) fn give_up(&self) {
        self.given_up.store(true, Ordering::Release);
    }

    /// True if objects are to be leaked rather than destroyed; always so in a forked child, to
    /// which they do not belong.
    pub(super) fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Acquire) || self.process.was_left()
    }

    /// Bytes that this process may take of the device's memory at present, where the driver tells.
    pub(super) fn memory_budget(&self) -> Option<u64> {
        probe::memory_budget(&self.instance.raw, self.physical, &self.extensions)
    }

    /// Names an object for tools, where those listen.
    pub(super) fn set_name<H: vk::Handle>(&self, object: H, name: &str) {
        let Some(names) = &self.names else { return };
        let Ok(name) = std::ffi::CString::new(name) else {
            return;
        };
        let info =
            vk::DebugUtilsObjectNameInfoEXT::default().object_handle(object).object_name(&name);
        // SAFETY: the object is one of this device's, and no other thread has it yet.
        if let Err(code) = unsafe { names.set_debug_utils_object_name(&info) } {
            log::debug!("vulkan: an object has no name: {}", error::explain(code));
        }
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        if self.is_given_up() {
            // A device that still runs must not lose its instance either.
            std::mem::forget(Arc::clone(&self.instance));
            return;
        }
        // NVIDIA's driver (580) waits for ever if a thread that has used Vulkan ends while another
        // closes a device: the first holds a list of threads and waits for the driver's lock, the
        // second holds that lock and waits for a helper thread, which at its end wants the list.
        // So its devices are never closed, but used again.
        if self.workarounds.has(Fix::ReuseDevices) {
            lock(&self.instance.parked).push((self.physical, self.raw.clone()));
            return;
        }
        // SAFETY: everything made from the device holds an `Arc` of this, so nothing is left, and
        // the driver waited for its work.
        unsafe { self.raw.destroy_device(None) };
    }
}

/// A device opened earlier, in the same way, that nobody uses any more.
fn parked(instance: &Instance, physical: vk::PhysicalDevice) -> Option<ash::Device> {
    let mut parked = lock(&instance.parked);
    let at = parked.iter().position(|(of, _)| *of == physical)?;
    Some(parked.swap_remove(at).1)
}

fn create(instance: &Instance, probe: &Probe, features: &mut FeatureChain) -> Result<ash::Device> {
    let queues = [vk::DeviceQueueCreateInfo::default()
        .queue_family_index(probe.queue_family)
        .queue_priorities(&[1.0])];
    let extensions = probe.extensions.names(probe.version);
    let device = features.chained(|chain| {
        let info = vk::DeviceCreateInfo::default()
            .queue_create_infos(&queues)
            .enabled_extension_names(&extensions)
            .push_next(chain);
        // SAFETY: only extensions and features that the device reports are enabled.
        unsafe { instance.raw.create_device(probe.physical, &info, None) }
    });
    device.map_err(|code| error::failed(&probe.info.name, "vkCreateDevice", code))
}
