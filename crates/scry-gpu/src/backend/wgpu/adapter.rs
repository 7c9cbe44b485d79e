//! wgpu's adapters: enumerates them, checks their limits, and opens them.

use std::mem::ManuallyDrop;
use std::sync::Mutex;

use scry_ir::{Features, MatrixProducts};
use wgpu::{AdapterInfo, Backends, DeviceDescriptor, DeviceType, Instance, InstanceDescriptor};

use super::WgpuDriver;
use super::device::{Gpu, ready};
use super::limits::{LimitChoice, convert_limits, max_immediates, missing_limit};
use crate::api::error::{DRIVER_FAILED, DriverError, GpuError, Result};
use crate::api::info::{BackendKind, DeviceInfo, DeviceKind, PciAddress, Workaround};
use crate::backend::shared::locks::lock;
use crate::backend::shared::loop_limits::LoopDefects;
use crate::backend::{Absence, Found};
use crate::core::driver::{Adapter, Driver, LocalFuture};
use crate::lifecycle::fork_guard::Process;

/// An adapter that can be opened.
pub(super) struct WgpuAdapter {
    pub(super) raw: wgpu::Adapter,
    choice: LimitChoice,
    /// The limits of devices.
    limits: wgpu::Limits,
    info: DeviceInfo,
}

impl Adapter for WgpuAdapter {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn open(&self) -> Result<Box<dyn Driver>> {
        Ok(Box::new(self.open_with(self.choice.features(self.raw.features()))?))
    }

    fn open_async(&self) -> LocalFuture<'_, Result<Box<dyn Driver>>> {
        Box::pin(async {
            let opened = self.request(self.choice.features(self.raw.features())).await?;
            Ok(Box::new(opened) as _)
        })
    }
}

impl WgpuAdapter {
    fn new(raw: wgpu::Adapter, choice: LimitChoice) -> Self {
        let defects = loop_defects(&raw.get_info());
        let (features, limits) = (choice.features(raw.features()), choice.limits(&raw, defects));
        let info = info(&raw.get_info(), features, &limits);
        Self { raw, choice, limits, info }
    }

    /// Opens the device with these of its optional features.
    pub(super) fn open_with(&self, features: wgpu::Features) -> Result<WgpuDriver> {
        let pending = || self.failed("browsers open devices asynchronously only".to_owned());
        ready(self.request(features)).unwrap_or_else(|| Err(pending()))
    }

    async fn request(&self, features: wgpu::Features) -> Result<WgpuDriver> {
        let descriptor = DeviceDescriptor {
            label: None,
            required_features: features,
            required_limits: self.limits.clone(),
            ..DeviceDescriptor::default()
        };
        let opened = self.raw.request_device(&descriptor).await;
        let opened = opened.map_err(|error| self.failed(error.to_string()))?;
        let mut info = self.info.clone();
        info.limits.max_immediates = max_immediates(features, &self.limits);
        Ok(WgpuDriver::new(Gpu::new(opened, info, loop_defects(&self.raw.get_info()))))
    }

    fn failed(&self, why: String) -> GpuError {
        let (name, call) = (&self.info.name, "Adapter::request_device");
        GpuError::Driver(DriverError::new(name, call, why, DRIVER_FAILED))
    }
}

/// In browsers adapters must be awaited.
pub(in crate::backend) const FIND_ASYNC: Option<fn() -> LocalFuture<'static, Found>> =
    if cfg!(target_arch = "wasm32") { Some(|| Box::pin(find_async())) } else { None };

async fn find_async() -> Found {
    // Without it, an instance of wgpu cannot even be created.
    if !wgpu::util::is_browser_webgpu_supported().await {
        return select(Vec::new()).map(boxed);
    }
    let instance = instance();
    let raw = instance.enumerate_adapters(Backends::PRIMARY).await;
    keep(instance, &raw);
    select(raw).map(boxed)
}

fn boxed(adapters: Vec<WgpuAdapter>) -> Vec<Box<dyn Adapter>> {
    adapters.into_iter().map(|adapter| Box::new(adapter) as _).collect()
}

/// Returns all usable adapters, in this order: discrete, integrated, virtual, other, software.
pub(in crate::backend) fn find() -> Found {
    usable().map(boxed)
}

/// Returns all usable adapters.
pub(super) fn usable() -> Result<Vec<WgpuAdapter>, Absence> {
    if cfg!(target_arch = "wasm32") {
        return Err(Absence {
            reason: "browsers list GPUs asynchronously only".to_owned(),
            help: "await `Device::auto_async` or `Device::open_async`".to_owned(),
        });
    }
    let instance = instance();
    let raw = ready(instance.enumerate_adapters(Backends::PRIMARY)).unwrap_or_default();
    keep(instance, &raw);
    select(raw)
}

/// Returns those of wgpu's adapters that are usable, in order.
fn select(raw: Vec<wgpu::Adapter>) -> Result<Vec<WgpuAdapter>, Absence> {
    let choice = LimitChoice::from_environment()?;
    let (mut adapters, mut unusable) = (Vec::new(), Vec::new());
    for raw in raw {
        match missing_limit(&raw.limits()) {
            None => adapters.push(WgpuAdapter::new(raw, choice)),
            Some(why) => unusable.push(format!("{} {why}", raw.get_info().name)),
        }
    }
    if adapters.is_empty() {
        let (none, help) = match cfg!(target_arch = "wasm32") {
            false => (
                "wgpu finds no adapter for Metal, Direct3D 12 or Vulkan",
                "install or update the graphics driver",
            ),
            true => (
                "WebGPU is not available here",
                "use a browser that has WebGPU, and serve the page by HTTPS or from localhost",
            ),
        };
        let reason = if unusable.is_empty() { none.to_owned() } else { unusable.join("; ") };
        return Err(Absence { reason, help: help.to_owned() });
    }
    for why in unusable {
        log::info!("wgpu: not used: {why}");
    }
    adapters.sort_by_key(|adapter| match adapter.info.kind {
        DeviceKind::Discrete => 0,
        DeviceKind::Integrated => 1,
        DeviceKind::Virtual => 2,
        DeviceKind::Other => 3,
        DeviceKind::Software => 4,
    });
    (0..).zip(&mut adapters).for_each(|(index, adapter)| adapter.info.index = index);
    Ok(adapters)
}

/// The instance that all searches of a process share: its drivers stay loaded.
static SHARED: Mutex<Option<(Process, ManuallyDrop<Instance>)>> = Mutex::new(None);

/// Returns wgpu's shared instance, or a new one if this process has none.
fn instance() -> Instance {
    if let Some((process, instance)) = &*lock(&SHARED)
        && !process.has_forked()
    {
        return Instance::clone(instance);
    }
    let mut descriptor = InstanceDescriptor::new_without_display_handle();
    descriptor.backends = Backends::PRIMARY;
    // Without wgpu's checks of indirect launches: kernels of this crate compute those grids.
    descriptor.flags = wgpu::InstanceFlags::empty();
    Instance::new(descriptor)
}

/// Shares an instance with the searches to come if it found adapters. One that found none may lack
/// a driver that could not be opened at that time, for want of files or memory, for good. A forked
/// child replaces, and leaks, the instance of its parent, whose locks may be held forever.
fn keep(instance: Instance, found: &[wgpu::Adapter]) {
    let mut shared = lock(&SHARED);
    let is_kept = shared.as_ref().is_some_and(|(process, _)| !process.has_forked());
    if !is_kept && !found.is_empty() {
        *shared = Some((Process::current(), ManuallyDrop::new(instance)));
    }
}

/// Returns the defects of the driver below wgpu.
fn loop_defects(raw: &AdapterInfo) -> LoopDefects {
    let is_llvmpipe = raw.driver == "llvmpipe";
    LoopDefects { aborts_loops: is_llvmpipe, drops_conditions: is_llvmpipe }
}

fn info(adapter: &AdapterInfo, features: wgpu::Features, limits: &wgpu::Limits) -> DeviceInfo {
    let defects = loop_defects(adapter);
    // The WGSL that scry-ir writes has no 16-bit integers: they are halves of words.
    let mut wgsl = Features::I16;
    wgsl.set(Features::F16, features.contains(wgpu::Features::SHADER_F16));
    wgsl.set(Features::SUBGROUPS, features.contains(wgpu::Features::SUBGROUP));
    let alignment =
        limits.min_storage_buffer_offset_alignment.max(limits.min_uniform_buffer_offset_alignment);
    let driver = [adapter.driver.as_str(), adapter.driver_info.as_str()].join(" ");
    // Browsers need not say more than that there is an adapter.
    let or = |text: &str, default: &str| {
        if text.is_empty() { default.to_owned() } else { text.to_owned() }
    };
    DeviceInfo {
        index: 0,
        name: or(&adapter.name, "WebGPU adapter"),
        backend: BackendKind::Wgpu,
        kind: match adapter.device_type {
            DeviceType::DiscreteGpu => DeviceKind::Discrete,
            DeviceType::IntegratedGpu => DeviceKind::Integrated,
            DeviceType::VirtualGpu => DeviceKind::Virtual,
            DeviceType::Cpu => DeviceKind::Software,
            DeviceType::Other => DeviceKind::Other,
        },
        vendor_id: adapter.vendor,
        device_id: adapter.device,
        // wgpu has none: pipelines are not cached on disk.
        uuid: None,
        driver_uuid: None,
        pci: pci_address(&adapter.device_pci_bus_id),
        driver: or(driver.trim(), "unnamed driver"),
        api_version: adapter.backend.to_string(),
        compute_capability: None,
        multiprocessors: None,
        shared_memory: None,
        peers: Vec::new(),
        memory: 0,
        memory_budget: None,
        subgroup_size: adapter.subgroup_max_size,
        binding_alignment: alignment.into(),
        features: wgsl,
        matrix_products: MatrixProducts::empty(),
        limits: convert_limits(features, limits, defects),
        workarounds: workarounds(defects),
    }
}

fn workarounds(defects: LoopDefects) -> Vec<Workaround> {
    let LoopDefects { aborts_loops, drops_conditions } = defects;
    let tested_versions = "22.3.6";
    let aborted = Workaround {
        name: "report-aborted-loops",
        reason: "it ends all loops of an invocation after 65535 iterations in total, counted for \
                 all invocations of a vector, and continues after them",
        tested_versions,
    };
    let nested = Workaround {
        name: "reject-deep-nesting",
        reason: "conditions nested more than 80 deep are ignored, so their code is executed",
        tested_versions,
    };
    let hidden = Workaround {
        name: "hide-loop-bounds",
        reason: "a loop with two exits ends too early if its counter, start and bound being \
                 constants, reaches the bound only after it has wrapped around",
        tested_versions,
    };
    let all = [(aborts_loops, aborted), (drops_conditions, nested), (aborts_loops, hidden)];
    all.into_iter().filter(|(has, _)| *has).map(|(_, workaround)| workaround).collect()
}

/// Parses an address such as `0000:65:00.0`; `None` if the driver reports none.
fn pci_address(text: &str) -> Option<PciAddress> {
    let (rest, function) = text.rsplit_once('.')?;
    let mut parts = rest.split(':').map(|part| u32::from_str_radix(part, 16).ok());
    let [domain, bus, device] = [parts.next()??, parts.next()??, parts.next()??];
    let function = u32::from_str_radix(function, 16).ok()?;
    Some(PciAddress { domain, bus, device, function })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pci_addresses_are_parsed() {
        let address = PciAddress { domain: 0, bus: 0x65, device: 0, function: 1 };
        assert_eq!(pci_address("0000:65:00.1"), Some(address));
        assert_eq!(pci_address(""), None);
        assert_eq!(pci_address("65:00.1"), None);
    }
}
