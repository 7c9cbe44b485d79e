//! [`Device`]: opening devices, creating buffers, compiling and running kernels.

mod ir;
mod owner;
mod untyped;
mod waiting;

use std::sync::Arc;

use crate::api::batch::Batch;
use crate::api::binding::{Binding, Sealed as _};
use crate::api::buffer::Buffer;
use crate::api::device_selection::{self, FoundDevices, SearchMode, now};
use crate::api::element::Element;
use crate::api::error::{Attempt, InFunction, Result};
use crate::api::info::{BackendKind, DeviceInfo};
use crate::api::kernel::{CompileOptions, Kernel};
use crate::api::launch::Launch;
use crate::api::slice::Slice;
use crate::backend;
use crate::cache::{DeviceIdentity, DiskCache};
use crate::core::clock::Instant;
use crate::core::command_list::CommandList;
use crate::core::context::Context;
use crate::core::driver::Driver;
use crate::core::encode;
use crate::core::logging;

/// A compute device: a GPU, a software Vulkan driver, or the CPU of the host.
///
/// Cheap to clone; clones are the same device. May be used from any number of threads at once.
#[derive(Clone)]
pub struct Device {
    pub(crate) context: Arc<Context>,
}

impl Device {
    /// Opens the first working device in order of preference (see [`Device::list`]), or the one
    /// that the environment variable `SCRY_DEVICE` selects (see [`Device::open`]). Without a GPU
    /// this is the CPU device, unless the feature `cpu` is off, and one warning is logged. Browsers
    /// list GPUs asynchronously only: there this call finds the CPU device, and
    /// [`Device::auto_async`] a GPU.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// let gpu = Device::auto()?;
    /// println!("computing on {}", gpu.info());
    /// assert_eq!(gpu.upload(&[1u32, 2])?.download()?, [1, 2]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::NoDevice`](crate::GpuError::NoDevice), which lists each backend with the reason
    /// why it has no device, and help; or if `SCRY_DEVICE` matches no device.
    pub fn auto() -> Result<Self> {
        now(Self::from_search(device_selection::open_auto(SearchMode::Blocking)))
    }

    /// Opens the best device of one backend.
    ///
    /// ```
    /// use scry_gpu::{BackendKind, Device};
    ///
    /// let cpu = Device::with_backend(BackendKind::Cpu)?;
    /// assert_eq!(cpu.backend_kind(), BackendKind::Cpu);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::NoDevice`](crate::GpuError::NoDevice).
    pub fn with_backend(kind: BackendKind) -> Result<Self> {
        now(Self::from_search(async {
            let found = FoundDevices::search(&|wanted| wanted == kind, SearchMode::Blocking).await;
            found.open_first(Some(kind.name()), SearchMode::Blocking).await
        }))
    }

    /// Opens the first device of the list that matches a selector: a backend (`vulkan`, `cpu`), a
    /// device of a backend (`vulkan:1`), a position in [`Device::list`] below 100, a UUID, a PCI
    /// address (`0000:65:00.0`), or part of a name.
    ///
    /// If the selector names a backend, the others are not loaded: opening `cpu` costs less than a
    /// millisecond.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// let gpu = Device::open("cpu")?; // or "cuda", "vulkan:1", "4090", …
    /// assert_eq!(gpu.backend_kind().name(), "cpu");
    /// let error = Device::open("cpu:99").unwrap_err();
    /// assert!(error.to_string().starts_with("no device matches `cpu:99`"));
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::NoDevice`](crate::GpuError::NoDevice), which lists the devices present.
    pub fn open(selector: &str) -> Result<Self> {
        now(Self::from_search(device_selection::open(selector, SearchMode::Blocking)))
    }

    /// Opens the device that a search finds.
    pub(super) async fn from_search(
        search: impl Future<Output = Result<Box<dyn Driver>>>,
    ) -> Result<Self> {
        let start = Instant::now();
        let device = search.await.map(Self::from_driver)?;
        logging::opened(device.info(), start.elapsed());
        Ok(device)
    }

    /// Returns every device present, in order of preference: [`Device::auto`] opens the first.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// let devices = Device::list();
    /// for info in &devices {
    ///     println!("{info}");
    /// }
    /// // Each can be opened by its index.
    /// let first = &devices[0];
    /// let gpu = Device::open(&format!("{}:{}", first.backend, first.index))?;
    /// assert_eq!(gpu.name(), first.name);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    #[doc(alias("cudaGetDeviceCount", "enumerate_adapters"))]
    #[must_use]
    pub fn list() -> Vec<DeviceInfo> {
        now(device_selection::list(SearchMode::Blocking))
    }

    /// Returns the reason and help for each backend without a device, including backends that are
    /// not part of this build.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// let present = Device::list();
    /// for absent in Device::absent_backends() {
    ///     println!("{}: {}; {}", absent.backend(), absent.reason(), absent.help());
    ///     assert!(present.iter().all(|info| info.backend != absent.backend()));
    /// }
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    #[must_use]
    pub fn absent_backends() -> Vec<Attempt> {
        now(FoundDevices::search_all(SearchMode::Blocking)).attempts
    }

    /// Returns the backends of this build.
    ///
    /// ```
    /// use scry_gpu::{BackendKind, Device};
    ///
    /// assert!(Device::backends().contains(&BackendKind::Cpu));
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    #[must_use]
    pub fn backends() -> Vec<BackendKind> {
        backend::BACKENDS.iter().map(|backend| backend.kind).collect()
    }

    /// Returns whether any device is present.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// if Device::is_available() {
    ///     assert!(Device::list().len() >= 1);
    /// }
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    #[must_use]
    pub fn is_available() -> bool {
        !now(FoundDevices::search_all(SearchMode::Blocking)).adapters.is_empty()
    }

    pub(crate) fn from_driver(driver: Box<dyn Driver>) -> Self {
        let driver: Arc<dyn Driver> = driver.into();
        let disk = DeviceIdentity::from_info(driver.info())
            .and_then(|identity| DiskCache::open(&identity));
        Self { context: Context::new(driver, disk) }
    }

    /// Returns the description of the device: name, backend, limits and features.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// let gpu = Device::open("cpu")?;
    /// assert!(gpu.info().limits.max_workgroup_invocations >= 256);
    /// assert_eq!(gpu.info().name, gpu.name());
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    #[doc(alias = "cudaGetDeviceProperties")]
    #[must_use]
    pub fn info(&self) -> &DeviceInfo {
        &self.context.info
    }

    /// Returns the name that its driver reports.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.context.info.name
    }

    /// Returns the size of its memory in bytes.
    #[must_use]
    pub fn memory(&self) -> u64 {
        self.context.info.memory
    }

    /// Returns the number of invocations of a subgroup.
    #[must_use]
    pub fn subgroup_size(&self) -> u32 {
        self.context.info.subgroup_size
    }

    /// Returns its backend.
    #[must_use]
    pub fn backend_kind(&self) -> BackendKind {
        self.context.info.backend
    }

    /// Copies a slice to a new buffer. Returns once `data` is copied.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = gpu.upload(&[1.0f32, 2.0, 3.0])?;
    /// assert_eq!((x.len(), x.byte_size()), (3, 12));
    /// assert_eq!(x.download()?, [1.0, 2.0, 3.0]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::OutOfMemory`](crate::GpuError::OutOfMemory),
    /// [`GpuError::TooLarge`](crate::GpuError::TooLarge).
    #[doc(alias("cudaMemcpy", "htod"))]
    pub fn upload<T: Element>(&self, data: &[T]) -> Result<Buffer<T>> {
        Buffer::from_slice(&self.context, data).in_function("Device::upload")
    }

    /// Allocates a buffer of `len` elements, all bytes zero.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = gpu.alloc::<[f32; 4]>(2)?;
    /// assert_eq!(x.download()?, [[0.0; 4]; 2]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Device::upload`].
    #[doc(alias("cudaMalloc", "zeros"))]
    pub fn alloc<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        Buffer::allocate(&self.context, len, "").in_function("Device::alloc")
    }

    /// Compiles the only entry point of a WGSL source.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let add = gpu.compile(
    ///     "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
    ///      @compute @workgroup_size(64) fn add(@builtin(global_invocation_id) id: vec3u) {
    ///          if id.x < arrayLength(&x) { x[id.x] += 1u; }
    ///      }",
    /// )?;
    /// assert_eq!((add.entry_point(), add.workgroup_size()), ("add", [64, 1, 1]));
    ///
    /// let error = gpu.compile("@compute @workgroup_size(1) fn f() { x = 1; }").unwrap_err();
    /// assert!(error.to_string().contains("wgsl:1:38"), "{error}");
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Shader`](crate::GpuError::Shader) with the annotated source line;
    /// [`GpuError::Unsupported`](crate::GpuError::Unsupported) and
    /// [`GpuError::TooLarge`](crate::GpuError::TooLarge) if the device lacks a feature that the
    /// kernel uses, or if the kernel exceeds a limit of the device.
    pub fn compile(&self, wgsl: &str) -> Result<Kernel> {
        let options = CompileOptions::default();
        Kernel::compile(&self.context, wgsl, &options, true).in_function("Device::compile")
    }

    /// Compiles one entry point of a WGSL source.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let source = "@compute @workgroup_size(8) fn small() {}
    ///               @compute @workgroup_size(64) fn large() {}";
    /// assert_eq!(gpu.compile_named(source, "large")?.workgroup_size(), [64, 1, 1]);
    /// assert!(gpu.compile(source).is_err()); // which one?
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Device::compile`].
    pub fn compile_named(&self, wgsl: &str, entry: &str) -> Result<Kernel> {
        let options = CompileOptions::new().entry(entry);
        Kernel::compile(&self.context, wgsl, &options, true).in_function("Device::compile_named")
    }

    /// Compiles a WGSL source with options: the entry point, values of overrides, and a label.
    ///
    /// ```
    /// use scry_gpu::{CompileOptions, Device};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let source = "override SIZE: u32; @compute @workgroup_size(SIZE) fn main() {}";
    /// let kernel = gpu.compile_with(source, &CompileOptions::new().set("SIZE", 128))?;
    /// assert_eq!(kernel.workgroup_size(), [128, 1, 1]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Device::compile`].
    pub fn compile_with(&self, wgsl: &str, options: &CompileOptions) -> Result<Kernel> {
        Kernel::compile(&self.context, wgsl, options, true).in_function("Device::compile_with")
    }

    /// Compiles a WGSL source without bounds checks and loop bounds.
    ///
    /// ```
    /// use scry_gpu::{CompileOptions, Device};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let source = "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
    ///     @compute @workgroup_size(4) fn add(@builtin(global_invocation_id) id: vec3u) {
    ///         x[id.x] += 1u;
    ///     }";
    /// // SAFETY: it has no loop, and is launched for the length of its buffer, a multiple of 4.
    /// let add = unsafe { gpu.compile_unchecked(source, &CompileOptions::new())? };
    /// let x = gpu.alloc::<u32>(8)?;
    /// gpu.run(&add, &[&x], x.len())?;
    /// assert_eq!(x.download()?, [1; 8]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Device::compile`].
    ///
    /// # Safety
    /// In every launch of the kernel, no invocation may access a buffer, array, vector or matrix
    /// out of its bounds, and each of its loops must end. Launches are safe calls: the caller of
    /// this function answers for their arguments and sizes.
    pub unsafe fn compile_unchecked(&self, wgsl: &str, options: &CompileOptions) -> Result<Kernel> {
        Kernel::compile(&self.context, wgsl, options, false)
            .in_function("Device::compile_unchecked")
    }

    /// Compiles a WGSL source, unless it is cached, and runs it.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = gpu.upload(&[1.0f32, 4.0, 9.0])?;
    /// let source = "@group(0) @binding(0) var<storage, read_write> x: array<f32>;
    ///     @compute @workgroup_size(64) fn root(@builtin(global_invocation_id) id: vec3u) {
    ///         if id.x < arrayLength(&x) { x[id.x] = sqrt(x[id.x]); }
    ///     }";
    /// gpu.dispatch(source, &[&x], 3)?;
    /// assert_eq!(x.download()?, [1.0, 2.0, 3.0]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Device::compile`] and [`Device::run`].
    pub fn dispatch(
        &self,
        wgsl: &str,
        bindings: &[&dyn Binding],
        launch: impl Into<Launch>,
    ) -> Result<()> {
        let kernel = self.compile(wgsl).in_function("Device::dispatch")?;
        self.launch("Device::dispatch", &kernel, bindings, &launch.into())
    }

    /// Runs a kernel. Returns once the work is submitted; calls that read its results wait for it.
    ///
    /// `launch` is a number of invocations in one, two or three dimensions, which is rounded up to
    /// whole workgroups on each axis, or a [`Launch`]: workgroups, an indirect launch, immediates.
    ///
    /// ```
    /// use scry_gpu::{Device, Launch};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let add = gpu.compile(
    ///     "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
    ///      @compute @workgroup_size(64) fn add(@builtin(global_invocation_id) id: vec3u) {
    ///          if id.x < arrayLength(&x) { x[id.x] += 1u; }
    ///      }",
    /// )?;
    /// let x = gpu.upload(&[1u32, 2, 3])?;
    /// gpu.run(&add, &[&x], 3)?; // 64 invocations: one workgroup
    /// gpu.run(&add, &[&x], Launch::workgroups([1, 1, 1]))?;
    /// assert_eq!(x.download()?, [3, 4, 5]);
    ///
    /// let error = gpu.run(&add, &[], 3).unwrap_err();
    /// assert!(error.to_string().contains("`x` at @group(0) @binding(0): array<u32>, read_write"));
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Argument`](crate::GpuError::Argument) if the bindings do not fit the kernel,
    /// [`GpuError::TooLarge`](crate::GpuError::TooLarge) if there are too many invocations. The
    /// kernel was not launched.
    #[doc(alias("launch", "dispatch_workgroups"))]
    pub fn run(
        &self,
        kernel: &Kernel,
        bindings: &[&dyn Binding],
        launch: impl Into<Launch>,
    ) -> Result<()> {
        self.launch("Device::run", kernel, bindings, &launch.into())
    }

    /// Runs a kernel that declares `var<immediate>`, with its value.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let scale = gpu.compile(
    ///     "var<immediate> factor: u32;
    ///      @group(0) @binding(0) var<storage, read_write> x: array<u32>;
    ///      @compute @workgroup_size(64) fn scale(@builtin(global_invocation_id) id: vec3u) {
    ///          if id.x < arrayLength(&x) { x[id.x] *= factor; }
    ///      }",
    /// )?;
    /// let x = gpu.upload(&[1u32, 2, 3])?;
    /// gpu.run_with_immediates(&scale, &[&x], 3, &10u32)?;
    /// assert_eq!(x.download()?, [10, 20, 30]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Device::run`].
    pub fn run_with_immediates<P: Element>(
        &self,
        kernel: &Kernel,
        bindings: &[&dyn Binding],
        launch: impl Into<Launch>,
        immediates: &P,
    ) -> Result<()> {
        let launch = launch.into().immediates(immediates);
        self.launch("Device::run_with_immediates", kernel, bindings, &launch)
    }

    /// Runs a kernel; errors name `function`, the public function.
    fn launch(
        &self,
        function: &'static str,
        kernel: &Kernel,
        bindings: &[&dyn Binding],
        launch: &Launch,
    ) -> Result<()> {
        let mut list = CommandList::default();
        encode::dispatch(&self.context, &mut list, function, kernel, bindings, launch)
            .and_then(|()| self.context.submit_unless_empty(list))
            .in_function(function)
    }

    /// Starts a batch: several commands in one submission.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let (a, b) = (gpu.alloc::<u32>(2)?, gpu.alloc::<u32>(2)?);
    /// gpu.batch().fill(&a, 7)?.copy(&a, &b)?.submit()?;
    /// assert_eq!(b.download()?, [7, 7]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
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
        const NAME: &str = "Device::copy_buffer";
        encode::copy_now(&self.context, NAME, src.view(), dst.view()).in_function(NAME)
    }
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Device({})", self.info().title())
    }
}
