//! Finding devices and choosing one.
//!
//! Both are written as futures, since browsers list and open devices asynchronously. Elsewhere
//! nothing in them is pending.

use std::pin::pin;
use std::sync::Once;
use std::task::{Context, Poll, Waker};

use scry_ir::Features;

use crate::api::error::{Attempt, DRIVER_FAILED, GpuError, NoDevice, Result};
use crate::api::info::{BackendKind, DeviceInfo, DeviceKind};
use crate::backend::{Absence, BACKENDS, LEFT_OUT};
use crate::core::driver::{Adapter, Driver};
use crate::lifecycle::exit_guard::{self, EXITING};

/// The environment variable that selects the device of [`Device::auto`](crate::Device::auto).
pub(crate) const VARIABLE: &str = "SCRY_DEVICE";

/// The help for a device that cannot be opened.
const UPDATE: &str = "update the driver, or choose another device with SCRY_DEVICE";

/// Whether a search may await: browsers list and open devices asynchronously only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SearchMode {
    /// All calls block; the future of the search is ready at once.
    Blocking,
    /// Devices that must be awaited are found too.
    Awaiting,
}

/// Returns the output of a search with [`SearchMode::Blocking`].
pub(crate) fn now<T>(search: impl Future<Output = T>) -> T {
    match pin!(search).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("blocking searches await nothing"),
    }
}

/// Returns all devices in order of preference.
pub(crate) async fn list(mode: SearchMode) -> Vec<DeviceInfo> {
    let found = FoundDevices::search_all(mode).await;
    found.adapters.iter().map(|adapter| adapter.info().clone()).collect()
}

/// Opens the device that the environment selects, or else the first one.
pub(crate) async fn open_auto(mode: SearchMode) -> Result<Box<dyn Driver>> {
    let selector = std::env::var_os(VARIABLE).unwrap_or_default();
    let selector = selector.to_string_lossy();
    if !selector.trim().is_empty() {
        return open(&selector, mode).await.map_err(with_variable);
    }
    let driver = FoundDevices::search_all(mode).await.open_first(None, mode).await?;
    if driver.info().kind == DeviceKind::Software {
        static WARNED: Once = Once::new();
        WARNED.call_once(|| log::warn!("no GPU was found: kernels run on {}", driver.info().name));
    }
    Ok(driver)
}

/// Opens the device that a selector names. If it names a backend, the others are searched only if
/// no such device can be opened, to list their devices in the error.
pub(crate) async fn open(selector: &str, mode: SearchMode) -> Result<Box<dyn Driver>> {
    let Some(backend) = backend_of(selector) else {
        return FoundDevices::search_all(mode).await.open_selected(selector, mode).await;
    };
    let found = FoundDevices::search(&|kind| kind == backend, mode).await;
    match found.open_selected(selector, mode).await {
        Err(GpuError::NoDevice(mut error)) => {
            let is_other = |kind| kind != backend && kind != BackendKind::Null;
            error.present.extend(FoundDevices::search(&is_other, mode).await.titles());
            Err(GpuError::NoDevice(error))
        }
        other => other,
    }
}

/// Adds to the error that the selector was the value of [`VARIABLE`].
pub(crate) fn with_variable(error: GpuError) -> GpuError {
    match error {
        GpuError::NoDevice(error) => {
            GpuError::NoDevice(NoDevice { variable: Some(VARIABLE), ..error })
        }
        other => other,
    }
}

/// Returns the backend that a selector names, alone (`vulkan`) or with a device of it (`vulkan:1`).
fn backend_of(selector: &str) -> Option<BackendKind> {
    use BackendKind::{Cpu, Cuda, Null, Vulkan, Wgpu};
    let selector = selector.trim().to_ascii_lowercase();
    let names = |kind: &BackendKind| match selector.strip_prefix(kind.name()) {
        Some("") => true,
        Some(rest) => rest.strip_prefix(':').is_some_and(|index| index.parse::<usize>().is_ok()),
        None => false,
    };
    [Vulkan, Cuda, Wgpu, Cpu, Null].into_iter().find(names)
}

/// Every device present, in order of preference, and why the other backends have none.
pub(crate) struct FoundDevices {
    pub adapters: Vec<Box<dyn Adapter>>,
    pub attempts: Vec<Attempt>,
}

impl FoundDevices {
    /// Searches every backend except null, which executes nothing and must be selected by name.
    pub(crate) async fn search_all(mode: SearchMode) -> Self {
        Self::search(&|kind| kind != BackendKind::Null, mode).await
    }

    /// Searches the backends that `wanted` accepts.
    pub(crate) async fn search(wanted: &dyn Fn(BackendKind) -> bool, mode: SearchMode) -> Self {
        let left_out = LEFT_OUT.iter().filter(|(kind, _)| wanted(*kind));
        let attempts = left_out.map(|(kind, feature)| left_out_attempt(*kind, feature)).collect();
        let mut found = Self { adapters: Vec::new(), attempts };
        for backend in BACKENDS.iter().filter(|backend| wanted(backend.kind)) {
            let found_devices = match (exit_guard::begin_call(), backend.find_async) {
                (Some(_call), Some(find)) if mode == SearchMode::Awaiting => find().await,
                (Some(_call), _) => (backend.find)(),
                (None, _) => Err(exiting()),
            };
            match found_devices {
                Ok(adapters) => found.adapters.extend(adapters),
                Err(absence) => found.attempts.push(Attempt {
                    backend: backend.kind,
                    reason: absence.reason,
                    help: absence.help,
                }),
            }
        }
        found.adapters.sort_by_key(|adapter| rank(adapter.info()));
        found
    }

    fn titles(&self) -> impl Iterator<Item = String> {
        self.adapters.iter().map(|adapter| adapter.info().title())
    }

    /// Opens the first device that can be opened.
    pub(crate) async fn open_first(
        self,
        selector: Option<&str>,
        mode: SearchMode,
    ) -> Result<Box<dyn Driver>> {
        let all = 0..self.adapters.len();
        self.open_one_of(all.collect(), selector, mode).await
    }

    /// Opens the first device that a selector matches and that can be opened.
    pub(crate) async fn open_selected(
        self,
        selector: &str,
        mode: SearchMode,
    ) -> Result<Box<dyn Driver>> {
        let selected = (0..self.adapters.len())
            .filter(|&position| matches(selector, position, self.adapters[position].info()));
        let selected = selected.collect();
        self.open_one_of(selected, Some(selector), mode).await
    }

    async fn open_one_of(
        mut self,
        candidates: Vec<usize>,
        selector: Option<&str>,
        mode: SearchMode,
    ) -> Result<Box<dyn Driver>> {
        for &candidate in &candidates {
            let adapter = &self.adapters[candidate];
            match exit_guard::open(&**adapter, mode).await {
                Ok(driver) => return Ok(driver),
                Err(error) => {
                    let (problem, help) = match error {
                        GpuError::Driver(error) if error.help() != DRIVER_FAILED => {
                            (error.problem(), error.help().to_owned())
                        }
                        GpuError::Driver(error) => (error.problem(), UPDATE.to_owned()),
                        other => (other.to_string(), UPDATE.to_owned()),
                    };
                    self.attempts.push(Attempt {
                        backend: adapter.info().backend,
                        reason: format!("{} could not be opened: {problem}", adapter.info().name),
                        help,
                    });
                }
            }
        }
        Err(GpuError::NoDevice(NoDevice {
            selector: selector.map(str::to_owned),
            variable: None,
            present: self.titles().collect(),
            attempts: self.attempts,
        }))
    }
}

/// Returns the reason why no device can be opened while the process exits.
fn exiting() -> Absence {
    Absence {
        reason: EXITING.to_owned(),
        help: "use devices only before the process exits".to_owned(),
    }
}

/// Returns the attempt for a backend that is not part of the build.
fn left_out_attempt(backend: BackendKind, feature: &str) -> Attempt {
    let has_no_drivers = matches!(backend, BackendKind::Cuda | BackendKind::Vulkan);
    let (reason, help) = match cfg!(target_arch = "wasm32") && has_no_drivers {
        true => (
            "WebAssembly has no access to drivers",
            "use WebGPU, which every build for WebAssembly includes".to_owned(),
        ),
        false => (
            "it is not part of this build",
            format!("build with the feature: cargo add scry-gpu --features {feature}"),
        ),
    };
    Attempt { backend, reason: reason.to_owned(), help }
}

/// Returns the rank of a device in the order of preference: CUDA, then discrete, integrated and
/// virtual GPUs, the CPU backend, devices of other kinds, other software, and last the null device.
/// Equal ranks keep the backend's order: Vulkan precedes wgpu. In WebAssembly the CPU is slow, and
/// browsers do not report the kind of a GPU: there WebGPU precedes it.
fn rank(info: &DeviceInfo) -> u32 {
    match (info.backend, info.kind) {
        (BackendKind::Cuda, _) => 0,
        (BackendKind::Wgpu, _) if cfg!(target_arch = "wasm32") => 1,
        (BackendKind::Cpu, _) => 4,
        (BackendKind::Null, _) => 7,
        (_, DeviceKind::Discrete) => 1,
        (_, DeviceKind::Integrated) => 2,
        (_, DeviceKind::Virtual) => 3,
        (_, DeviceKind::Other) => 5,
        (_, DeviceKind::Software) => 6,
    }
}

/// Numbers from here on are parts of names, such as 4090, rather than positions in the list.
const MAX_POSITION: usize = 100;

/// Returns whether a selector matches the device at `position` of the list: `vulkan`, `vulkan:1`,
/// the position, a UUID, a PCI address, or part of the name.
fn matches(selector: &str, position: usize, info: &DeviceInfo) -> bool {
    let selector = selector.trim().to_ascii_lowercase();
    if selector.is_empty() {
        return false;
    }
    if let Ok(index) = selector.parse::<usize>()
        && index < MAX_POSITION
    {
        return index == position;
    }
    let backend = info.backend.name();
    if let Some(rest) = selector.strip_prefix(backend) {
        let index = rest.strip_prefix(':').map(str::parse::<usize>);
        if rest.is_empty() || index == Some(Ok(info.index)) {
            return true;
        }
    }
    is_uuid(&selector, info)
        || is_pci(&selector, info)
        || info.name.to_ascii_lowercase().contains(&selector)
}

fn is_uuid(selector: &str, info: &DeviceInfo) -> bool {
    let Some(uuid) = info.uuid else { return false };
    let mut hex = selector.strip_prefix("gpu-").unwrap_or(selector).to_owned();
    hex.retain(|c| c != '-');
    hex == format!("{:032x}", u128::from_be_bytes(uuid))
}

fn is_pci(selector: &str, info: &DeviceInfo) -> bool {
    let Some(pci) = info.pci else { return false };
    let full = pci.to_string();
    // nvidia-smi writes the domain with eight digits; lspci leaves it out.
    let short = full.split_once(':').map_or("", |(_, rest)| rest);
    selector == full || selector == short || selector == format!("0000{full}")
}

/// Returns the help for features that a device lacks: the devices present that have them.
pub(crate) fn devices_with(features: Features) -> String {
    let found = now(FoundDevices::search_all(SearchMode::Blocking));
    let infos = found.adapters.iter().map(|adapter| adapter.info());
    let capable: Vec<String> =
        infos.filter(|info| info.features.contains(features)).map(|info| info.title()).collect();
    match capable.as_slice() {
        [] => "no present device has it; write the kernel without it".to_owned(),
        capable => format!("open a device that has it: {}", capable.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::info::PciAddress;
    use crate::testing;

    fn device() -> DeviceInfo {
        let mut info = testing::null_info();
        info.backend = BackendKind::Vulkan;
        info.index = 1;
        info.name = "Testium RX 9000".to_owned();
        info.uuid = Some(*b"\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\xef");
        info.pci = Some(PciAddress { domain: 0, bus: 0x65, device: 0, function: 0 });
        info
    }

    #[test]
    fn missing_backends_name_their_feature() {
        let text = left_out_attempt(BackendKind::Cuda, "cuda").help;
        assert_eq!(text, "build with the feature: cargo add scry-gpu --features cuda");
        let kinds = |kind: &BackendKind| LEFT_OUT.iter().any(|(left_out, _)| left_out == kind);
        assert!(!BACKENDS.iter().any(|backend| kinds(&backend.kind)), "in the build, or left out");
        assert_eq!(BACKENDS.len() + LEFT_OUT.len(), 5);
    }

    #[test]
    fn awaited_searches_open_devices() {
        let opened = pollster::block_on(open("null", SearchMode::Awaiting)).unwrap();
        assert_eq!(opened.info().backend, BackendKind::Null);
        let error = pollster::block_on(open("null:7", SearchMode::Awaiting)).err().unwrap();
        assert!(error.to_string().contains("no device matches `null:7`"), "{error}");
    }

    #[test]
    fn all_documented_selectors_match() {
        for selector in [
            "vulkan",
            "Vulkan:1",
            "3",
            "01234567-89ab-cdef-0123-456789abcdef",
            "GPU-01234567-89ab-cdef-0123-456789abcdef",
            "0000:65:00.0",
            "65:00.0",
            "00000000:65:00.0",
            "rx 9000",
            "9000",
        ] {
            assert!(matches(selector, 3, &device()), "{selector}");
        }
    }

    #[test]
    fn backend_selectors_search_one_backend() {
        let known = ["cpu", " CPU:0 ", "vulkan:12", "cuda", "null", "wgpu:1"].map(backend_of);
        use BackendKind::{Cpu, Cuda, Null, Vulkan, Wgpu};
        assert_eq!(known, [Cpu, Cpu, Vulkan, Cuda, Null, Wgpu].map(Some));
        for selector in ["", "0", "cpu:", "cpu:x", "cpux", "NVIDIA", "65:00.0"] {
            assert_eq!(backend_of(selector), None, "{selector}");
        }
    }

    #[test]
    fn selectors_do_not_name_other_devices() {
        for selector in
            ["", "cuda", "vulkan:0", "vulkan:x", "2", "65:00.1", "rx 9001", "9001", "0123"]
        {
            assert!(!matches(selector, 3, &device()), "{selector}");
        }
    }

    #[test]
    fn hardware_is_preferred_to_software() {
        let of_kind = |kind| DeviceInfo { kind, ..device() };
        let order = [
            DeviceInfo { backend: BackendKind::Cuda, ..of_kind(DeviceKind::Discrete) },
            of_kind(DeviceKind::Discrete),
            of_kind(DeviceKind::Integrated),
            of_kind(DeviceKind::Virtual),
            DeviceInfo { backend: BackendKind::Cpu, ..of_kind(DeviceKind::Software) },
            of_kind(DeviceKind::Software),
        ];
        assert!(order.windows(2).all(|pair| rank(&pair[0]) < rank(&pair[1])));
    }
}
