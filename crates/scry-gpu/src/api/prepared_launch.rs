//! Launches that are checked once and run many times.

use std::fmt;
use std::sync::Arc;

use crate::api::batch::Batch;
use crate::api::binding::Binding;
use crate::api::bound_kernel::BoundKernel;
use crate::api::error::{GpuError, InFunction, Result, WrongDeviceError};
use crate::api::kernel::Kernel;
use crate::api::launch::Launch;
use crate::core::command_list::CommandList;
use crate::core::context::Context;
use crate::core::encode;
use crate::core::launch_template::LaunchTemplate;

/// A launch of a kernel with its arguments and size, checked once: run it, or add it to any
/// [`Batch`] of its device, as often as you like.
///
/// It owns what it uses: kernel, buffers and slices may be dropped. It is cheap to clone, usable
/// from any thread, and cheaper to add to a batch than a launch that is checked each time.
/// Immediates are stored with it; the elements of buffers, and the counts of
/// [`Launch::indirect`], are read when it runs. [`Kernel::prepare`] and [`BoundKernel::prepare`]
/// create one.
#[derive(Clone)]
#[must_use = "nothing runs until `run` is called, or Batch::run_prepared"]
pub struct PreparedLaunch {
    kernel: Kernel,
    template: Arc<LaunchTemplate>,
}

impl Kernel {
    /// Checks a launch of the kernel with these buffers, and keeps it for repeated use.
    ///
    /// ```
    /// use scry_gpu::{Device, PreparedLaunch};
    ///
    /// # fn main() -> scry_gpu::Result<()> {
    /// let gpu = Device::open("cpu")?;
    /// let x = gpu.upload(&[1u32, 2, 3])?;
    /// // Owns the kernel and the buffer.
    /// let add: PreparedLaunch = {
    ///     let kernel = gpu.compile(
    ///         "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
    ///          @compute @workgroup_size(64) fn add(@builtin(global_invocation_id) id: vec3u) {
    ///              if id.x < arrayLength(&x) { x[id.x] += 1u; }
    ///          }",
    ///     )?;
    ///     kernel.prepare(&[&x.clone()], 3)?
    /// };
    /// add.run()?;
    /// gpu.batch().run_prepared(&add)?.run_prepared(&add)?.submit()?;
    /// assert_eq!(x.download()?, [4, 5, 6]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Device::run`](crate::Device::run).
    pub fn prepare(
        &self,
        bindings: &[&dyn Binding],
        launch: impl Into<Launch>,
    ) -> Result<PreparedLaunch> {
        PreparedLaunch::new("Kernel::prepare", self, bindings, &launch.into())
    }
}

impl BoundKernel<'_> {
    /// Checks a launch with the arguments set so far, and keeps it for repeated use.
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
    /// let triple = scale.bind().set("x", &x).set("factor", 3u32).prepare(3)?;
    /// triple.run()?;
    /// triple.run()?;
    /// assert_eq!(x.download()?, [9, 18, 27]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`BoundKernel::run`].
    pub fn prepare(&self, launch: impl Into<Launch>) -> Result<PreparedLaunch> {
        self.with_arguments(launch.into(), |bindings, launch| {
            PreparedLaunch::new("BoundKernel::prepare", self.kernel(), bindings, launch)
        })
    }
}

impl Batch {
    /// Adds a launch that was prepared before.
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
    /// let x = gpu.alloc::<u32>(3)?;
    /// let add = add.prepare(&[&x], 3)?;
    /// let recording = gpu.batch().run_prepared(&add)?.run_prepared(&add)?.record()?;
    /// recording.replay()?.wait()?;
    /// recording.replay()?.wait()?;
    /// assert_eq!(x.download()?, [4; 3]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::WrongDevice`] if it was prepared for another device;
    /// [`GpuError::OutOfMemory`].
    pub fn run_prepared(&mut self, prepared: &PreparedLaunch) -> Result<&mut Self> {
        const NAME: &str = "Batch::run_prepared";
        self.add(|context, list| {
            prepared.check_device(context, NAME)?;
            prepared.template.append_to(context, list).in_function(NAME)
        })
    }
}

impl PreparedLaunch {
    /// Checks and encodes a launch; errors name `function`, the public function.
    fn new(
        function: &'static str,
        kernel: &Kernel,
        bindings: &[&dyn Binding],
        launch: &Launch,
    ) -> Result<Self> {
        let mut list = CommandList::default();
        encode::dispatch(&kernel.context, &mut list, function, kernel, bindings, launch)
            .in_function(function)?;
        Ok(Self::from_list(kernel.clone(), list))
    }

    /// Keeps the only launch of a list, one of the kernel.
    pub(crate) fn from_list(kernel: Kernel, list: CommandList) -> Self {
        Self { kernel, template: Arc::new(LaunchTemplate::new(list)) }
    }

    /// Runs it on its device. Returns once the work is submitted.
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
    /// let x = gpu.alloc::<u32>(3)?;
    /// let add = add.prepare(&[&x], 3)?;
    /// for _ in 0..10 {
    ///     add.run()?;
    /// }
    /// assert_eq!(x.download()?, [10; 3]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::DeviceLost`], [`GpuError::OutOfMemory`] and other failures of the device.
    pub fn run(&self) -> Result<()> {
        let context = &self.kernel.context;
        let mut list = CommandList::default();
        let appended = self.template.append_to(context, &mut list);
        appended.and_then(|()| context.submit_unless_empty(list)).in_function("PreparedLaunch::run")
    }

    /// Returns the kernel.
    ///
    /// ```
    /// let gpu = scry_gpu::Device::open("cpu")?;
    /// let kernel = gpu.compile("@compute @workgroup_size(1) fn nothing() {}")?;
    /// assert_eq!(kernel.prepare(&[], 1)?.kernel().entry_point(), "nothing");
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    #[must_use]
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Rejects a batch of another device.
    fn check_device(&self, context: &Arc<Context>, operation: &str) -> Result<()> {
        let owner = &self.kernel.context;
        if Arc::ptr_eq(owner, context) {
            return Ok(());
        }
        Err(GpuError::WrongDevice(WrongDeviceError {
            operation: operation.to_owned(),
            what: format!("the prepared launch of kernel `{}`", self.kernel.entry_point()),
            owner: owner.info.name.clone(),
            user: context.info.name.clone(),
            help: "add it to a batch of the Device that its kernel was compiled with".to_owned(),
        }))
    }
}

impl fmt::Debug for PreparedLaunch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedLaunch").field("kernel", &self.kernel).finish_non_exhaustive()
    }
}
