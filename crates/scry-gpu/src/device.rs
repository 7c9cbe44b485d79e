//! A device: where everything begins.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

use scry_ir::Features;

use crate::backend;
use crate::batch::Batch;
use crate::binding::{Binding, Sealed as _};
use crate::buffer::Buffer;
use crate::cache::{DeviceIdentity, DiskCache};
use crate::context::Context;
use crate::driver::Driver;
use crate::element::Element;
use crate::encode;
use crate::error::{Attempt, Result};
use crate::info::{BackendKind, DeviceInfo, DeviceKind};
use crate::kernel::{CompileOptions, Kernel};
use crate::launch::{Invocations, Launch};
use crate::list::CommandList;
use crate::logging;
use crate::memory::MemoryUsage;
use crate::select::{self, Found};
use crate::slice::Slice;

/// A device that computes: a GPU, or software that stands in for one.
///
/// Cheap to clone; clones are the same device. May be used from any number of threads at once.
#[derive(Clone)]
pub struct Device {
    pub(crate) context: Arc<Context>,
}

impl Device {
    /// Opens the fastest kind of device that works, or the one that the environment variable
    /// `SCRY_DEVICE` selects (see [`Device::open`]). Without a GPU that is the processor, which is
    /// always there unless the feature `cpu` is off; a warning in the log says so once.
    ///
    /// # Errors
    /// [`GpuError::NoDevice`](crate::GpuError::NoDevice), which tells for each backend what was
    /// tried, why it has no device, and what would change that, or that `SCRY_DEVICE` matches none.
    pub fn auto() -> Result<Self> {
        let selector = std::env::var_os(select::VARIABLE).unwrap_or_default();
        let selector = selector.to_string_lossy();
        if !selector.trim().is_empty() {
            return Self::open(&selector).map_err(select::from_variable);
        }
        let device = Self::opened_by(|| Found::everywhere().open_first(None))?;
        if device.info().kind == DeviceKind::Software {
            static SAID: Once = Once::new();
            SAID.call_once(|| log::warn!("no GPU was found: kernels run on {}", device.name()));
        }
        Ok(device)
    }

    /// Opens the best device of one backend.
    ///
    /// # Errors
    /// [`GpuError::NoDevice`](crate::GpuError::NoDevice).
    pub fn with_backend(kind: BackendKind) -> Result<Self> {
        let found = || Found::of(&|wanted| wanted == kind);
        Self::opened_by(|| found().open_first(Some(kind.name())))
    }

    /// Opens the device that a selector names: a backend (`vulkan`, `cpu`), a device of a backend
    /// (`vulkan:1`), a position in [`Device::list`], a UUID, a PCI address (`0000:65:00.0`), or
    /// part of a name. Of several the first in the list.
    ///
    /// If the selector names a backend, the others are not loaded: to open `cpu` costs less than a
    /// millisecond.
    ///
    /// # Errors
    /// [`GpuError::NoDevice`](crate::GpuError::NoDevice), which lists the devices present.
    pub fn open(selector: &str) -> Result<Self> {
        Self::opened_by(|| select::open(selector))
    }

    fn opened_by(open: impl FnOnce() -> Result<Box<dyn Driver>>) -> Result<Self> {
        let start = Instant::now();
        let device = open().map(Self::from_driver)?;
        logging::opened(device.info(), start.elapsed());
        Ok(device)
    }

    /// Every device present, in order of preference: [`Device::auto`] opens the first.
    #[must_use]
    pub fn list() -> Vec<DeviceInfo> {
        let found = Found::everywhere();
        found.adapters.iter().map(|adapter| adapter.info().clone()).collect()
    }

    /// For each backend of this build that has no device: why not, and what would change that.
    #[must_use]
    pub fn absent_backends() -> Vec<Attempt> {
        Found::everywhere().attempts
    }

    /// The backends of this build.
    #[must_use]
    pub fn backends() -> Vec<BackendKind> {
        backend::BACKENDS.iter().map(|backend| backend.kind).collect()
    }

    /// Whether there is any device.
    #[must_use]
    pub fn is_available() -> bool {
        !Found::everywhere().adapters.is_empty()
    }

    pub(crate) fn from_driver(driver: Box<dyn Driver>) -> Self {
        let driver: Arc<dyn Driver> = driver.into();
        let disk =
            DeviceIdentity::of(driver.info()).and_then(|identity| DiskCache::open(&identity));
        Self { context: Context::new(driver, disk) }
    }

    /// What the device is and can do.
    #[must_use]
    pub fn info(&self) -> &DeviceInfo {
        &self.context.info
    }

    /// The name that its driver gives it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.context.info.name
    }

    /// Bytes of its memory.
    #[must_use]
    pub fn memory(&self) -> u64 {
        self.context.info.memory
    }

    /// Invocations of a subgroup.
    #[must_use]
    pub fn subgroup_size(&self) -> u32 {
        self.context.info.subgroup_size
    }

    /// The backend that drives it.
    #[must_use]
    pub fn backend_kind(&self) -> BackendKind {
        self.context.info.backend
    }

    /// Copies a slice to a new buffer. Returns once `data` is captured.
    ///
    /// # Errors
    /// [`GpuError::OutOfMemory`](crate::GpuError::OutOfMemory),
    /// [`GpuError::TooLarge`](crate::GpuError::TooLarge).
    pub fn upload<T: Element>(&self, data: &[T]) -> Result<Buffer<T>> {
        Buffer::uploaded(&self.context, data)
    }

    /// Makes a buffer of `len` elements, all bytes zero.
    ///
    /// # Errors
    /// As [`Device::upload`].
    pub fn alloc<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        Buffer::allocate(&self.context, len, "")
    }

    /// Compiles the only entry point of a WGSL source.
    ///
    /// # Errors
    /// [`GpuError::Shader`](crate::GpuError::Shader) with the annotated source line;
    /// [`GpuError::Unsupported`](crate::GpuError::Unsupported) and
    /// [`GpuError::TooLarge`](crate::GpuError::TooLarge) if the device lacks what it needs.
    pub fn compile(&self, wgsl: &str) -> Result<Kernel> {
        self.compile_with(wgsl, &CompileOptions::default())
    }

    /// Compiles one entry point of a WGSL source.
    ///
    /// # Errors
    /// As [`Device::compile`].
    pub fn compile_named(&self, wgsl: &str, entry: &str) -> Result<Kernel> {
        self.compile_with(wgsl, &CompileOptions::new().entry(entry))
    }

    /// Compiles a WGSL source with overrides.
    ///
    /// # Errors
    /// As [`Device::compile`].
    pub fn compile_with(&self, wgsl: &str, options: &CompileOptions) -> Result<Kernel> {
        Kernel::compile(&self.context, wgsl, options, true)
    }

    /// Compiles a WGSL source without bounds checks and loop bounds.
    ///
    /// # Errors
    /// As [`Device::compile`].
    ///
    /// # Safety
    /// Whatever it is given, no invocation of the kernel may access a buffer, array, vector or
    /// matrix out of its bounds, and each of its loops must end.
    pub unsafe fn compile_unchecked(&self, wgsl: &str, options: &CompileOptions) -> Result<Kernel> {
        Kernel::compile(&self.context, wgsl, options, false)
    }

    /// Compiles a WGSL source, or finds it compiled, and runs it.
    ///
    /// # Errors
    /// As [`Device::compile`] and [`Device::run`].
    pub fn dispatch(
        &self,
        wgsl: &str,
        bindings: &[&dyn Binding],
        invocations: impl Into<Invocations>,
    ) -> Result<()> {
        self.run(&self.compile(wgsl)?, bindings, invocations)
    }

    /// Runs a kernel for at least as many invocations as asked for: on each axis the next multiple
    /// of the workgroup size. Returns once the work is handed over; what reads its results waits.
    ///
    /// # Errors
    /// [`GpuError::Argument`](crate::GpuError::Argument) if the bindings do not fit the kernel,
    /// [`GpuError::TooLarge`](crate::GpuError::TooLarge) if there are too many invocations. Nothing
    /// has run then.
    pub fn run(
        &self,
        kernel: &Kernel,
        bindings: &[&dyn Binding],
        invocations: impl Into<Invocations>,
    ) -> Result<()> {
        self.run_configured(kernel, bindings, Launch::invocations(invocations))
    }

    /// Runs a kernel that declares `var<immediate>`, with its value.
    ///
    /// # Errors
    /// As [`Device::run`].
    pub fn run_with_immediates<P: Element>(
        &self,
        kernel: &Kernel,
        bindings: &[&dyn Binding],
        invocations: impl Into<Invocations>,
        params: &P,
    ) -> Result<()> {
        let launch = Launch::invocations(invocations).immediates(params);
        self.run_configured(kernel, bindings, launch)
    }

    /// Runs a kernel with everything spelled out: invocations or workgroups, and immediates.
    ///
    /// # Errors
    /// As [`Device::run`].
    pub fn run_configured(
        &self,
        kernel: &Kernel,
        bindings: &[&dyn Binding],
        launch: Launch,
    ) -> Result<()> {
        let mut list = CommandList::default();
        let operation = "Device::run";
        encode::dispatch(&self.context, &mut list, operation, kernel, bindings, &launch)?;
        self.context.submit_unless_empty(list)
    }

    /// Starts a batch: several steps, one submission.
    pub fn batch(&self) -> Batch {
        Batch::new(&self.context)
    }

    /// Copies one buffer, or a slice of one, to another of the same length.
    ///
    /// ```
    /// # fn main() -> scry_gpu::Result<()> {
    /// let device = scry_gpu::Device::open("cpu")?;
    /// let (a, b) = (device.upload(&[1u32, 2])?, device.alloc::<u32>(4)?);
    /// device.copy_buffer(&a, b.slice(2..)?)?;
    /// assert_eq!(b.download()?, [0, 0, 1, 2]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Buffer::copy_to`].
    pub fn copy_buffer<'s, 'd, T: Element>(
        &self,
        src: impl Into<Slice<'s, T>>,
        dst: impl Into<Slice<'d, T>>,
    ) -> Result<()> {
        let (src, dst) = (src.into(), dst.into());
        encode::copy_now(&self.context, "Device::copy_buffer", src.view(), dst.view())
    }

    /// Waits until everything submitted so far is done.
    ///
    /// # Errors
    /// [`GpuError::DeviceLost`](crate::GpuError::DeviceLost),
    /// [`GpuError::Timeout`](crate::GpuError::Timeout),
    /// [`GpuError::Kernel`](crate::GpuError::Kernel) for a launch that did not run to its end,
    /// unless an earlier call has said so,
    /// [`GpuError::Interrupted`](crate::GpuError::Interrupted).
    pub fn wait(&self) -> Result<()> {
        self.context.check_alive()?;
        self.context.wait_idle()
    }

    /// The longest time that a wait may take; `None`, the default, means no limit.
    #[must_use]
    pub fn time_limit(&self) -> Option<Duration> {
        self.context.time_limit()
    }

    /// Sets the longest time that a wait may take, counted from its start. When it passes the wait
    /// fails with [`GpuError::Timeout`](crate::GpuError::Timeout).
    ///
    /// On the CPU everything that was waited for is ended: kernels stop where they are, so that
    /// what they write is incomplete, and those that follow are not begun. All waits in progress
    /// for it, or for what comes after it, fail alike, and the device goes on. So it is on CUDA
    /// with kernels that run long in loops which are not proven to end: these notice; others run
    /// to their end, for which half a second is waited. Vulkan cannot stop a running kernel; there,
    /// and where CUDA's does not end, the device is given up, and later calls fail at once.
    pub fn set_time_limit(&self, limit: Option<Duration>) {
        self.context.set_time_limit(limit);
    }

    /// Makes every wait in progress, on any thread, fail soon with
    /// [`GpuError::Interrupted`](crate::GpuError::Interrupted). The work goes on.
    pub fn interrupt(&self) {
        self.context.interrupt();
    }

    /// How much memory the device's buffers hold, staging included.
    #[must_use]
    pub fn memory_usage(&self) -> MemoryUsage {
        self.context.account.usage()
    }

    /// Bytes of the device's memory that nobody holds at present, this process or another; of
    /// [`DeviceInfo::memory`] in all. None where the backend cannot tell: CUDA can.
    ///
    /// # Errors
    /// [`GpuError::DeviceLost`](crate::GpuError::DeviceLost).
    pub fn free_memory(&self) -> Result<Option<u64>> {
        self.context.check_alive()?;
        self.context.note_loss(self.context.driver.free_memory())
    }

    /// How many launches the device was handed since it was opened, each replay's included.
    #[must_use]
    pub fn launch_count(&self) -> u64 {
        self.context.launches.load(Ordering::Relaxed)
    }
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Device({})", self.info().title())
    }
}

/// What to do about features that a device lacks: which devices present have them.
pub(crate) fn who_has(features: Features) -> String {
    let found = Found::everywhere();
    let infos = found.adapters.iter().map(|adapter| adapter.info());
    let able: Vec<String> =
        infos.filter(|info| info.features.contains(features)).map(|info| info.title()).collect();
    match able.as_slice() {
        [] => "no device present has it; write the kernel without it".to_owned(),
        able => format!("open a device that has it: {}", able.join(", ")),
    }
}
