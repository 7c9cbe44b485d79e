//! Batches: several commands in one submission.

use std::sync::Arc;
use std::time::Duration;

use crate::api::binding::Binding;
use crate::api::bound_kernel::BoundKernel;
use crate::api::download::{Download, HostCopy};
use crate::api::element::{self, Element};
use crate::api::elements::Elements;
use crate::api::error::{InFunction, Result};
use crate::api::kernel::Kernel;
use crate::api::latest_submission::LatestSubmission;
use crate::api::launch::Launch;
use crate::api::recording::Recording;
use crate::api::ticket::Ticket;
use crate::api::timed_submission::TimedSubmission;
use crate::api::untyped_buffer;
use crate::core::command::{BufferRange, Command};
use crate::core::command_list::CommandList;
use crate::core::context::Context;
use crate::core::encode;
use crate::core::handles::MemoryKind;
use crate::core::same_device::same_device;

/// Commands that are submitted together, in one call to the driver.
///
/// The commands behave as if they ran one after the other; those that access different bytes may
/// overlap. No barriers are needed. A command that cannot be added leaves the batch unchanged.
///
/// The methods that add a command return the batch, and those that submit it leave it empty: calls
/// can be chained, and a submitted batch can be reused.
#[doc(alias("CommandEncoder", "CommandBuffer", "stream"))]
#[must_use = "a batch does nothing until it is submitted"]
pub struct Batch {
    pub(crate) context: Arc<Context>,
    list: CommandList,
    latest: LatestSubmission,
}

impl Batch {
    pub(crate) fn new(context: &Arc<Context>) -> Self {
        let list = CommandList::default();
        Self { context: context.clone(), list, latest: LatestSubmission::default() }
    }

    /// Adds a launch of a kernel: for a number of invocations in one, two or three dimensions, or
    /// as a [`Launch`] describes.
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
    /// let x = gpu.alloc::<u32>(3)?;
    /// let workgroup = Launch::workgroups([1, 1, 1]);
    /// gpu.batch().run(&add, &[&x], 3)?.run(&add, &[&x], workgroup)?.submit()?;
    /// assert_eq!(x.download()?, [2; 3]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Device::run`](crate::Device::run).
    pub fn run(
        &mut self,
        kernel: &Kernel,
        bindings: &[&dyn Binding],
        launch: impl Into<Launch>,
    ) -> Result<&mut Self> {
        self.launch("Batch::run", kernel, bindings, &launch.into())
    }

    /// Adds a launch of a kernel that declares `var<immediate>`, with its value.
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
    /// let x = gpu.upload(&[1u32, 2])?;
    /// let mut batch = gpu.batch();
    /// for factor in [2u32, 5] {
    ///     batch.run_with_immediates(&scale, &[&x], 2, &factor)?;
    /// }
    /// batch.submit()?;
    /// assert_eq!(x.download()?, [10, 20]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Device::run`](crate::Device::run).
    pub fn run_with_immediates<P: Element>(
        &mut self,
        kernel: &Kernel,
        bindings: &[&dyn Binding],
        launch: impl Into<Launch>,
        immediates: &P,
    ) -> Result<&mut Self> {
        let launch = launch.into().immediates(immediates);
        self.launch("Batch::run_with_immediates", kernel, bindings, &launch)
    }

    /// Adds a launch of a kernel with arguments set by name.
    ///
    /// ```
    /// # fn main() -> scry_gpu::Result<()> {
    /// let device = scry_gpu::Device::open("cpu")?;
    /// let scale = device.compile(
    ///     "var<immediate> factor: u32;
    ///      @group(0) @binding(0) var<storage, read_write> x: array<u32>;
    ///      @compute @workgroup_size(4) fn scale(@builtin(global_invocation_id) id: vec3u) {
    ///          x[id.x] *= factor;
    ///      }",
    /// )?;
    /// let x = device.upload(&[1u32, 2, 3, 4])?;
    /// let bound = scale.bind().set("x", &x).set("factor", 3u32);
    /// device.batch().run_bound(&bound, 4)?.run_bound(&bound, 4)?.submit()?;
    /// assert_eq!(x.download()?, [9, 18, 27, 36]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`BoundKernel::run`].
    pub fn run_bound(
        &mut self,
        bound: &BoundKernel<'_>,
        launch: impl Into<Launch>,
    ) -> Result<&mut Self> {
        bound.with_arguments(launch.into(), |bindings, launch| {
            self.launch("Batch::run_bound", bound.kernel(), bindings, launch)
        })
    }

    /// Adds a launch; errors name `function`, the public function.
    fn launch(
        &mut self,
        function: &'static str,
        kernel: &Kernel,
        bindings: &[&dyn Binding],
        launch: &Launch,
    ) -> Result<&mut Self> {
        self.add(|context, list| {
            encode::dispatch(context, list, function, kernel, bindings, launch)
                .in_function(function)
        })
    }

    /// Adds a copy from one buffer, or slice of one, to another of the same length: both typed, or
    /// both untyped.
    ///
    /// ```
    /// # fn main() -> scry_gpu::Result<()> {
    /// let device = scry_gpu::Device::open("cpu")?;
    /// let (a, b) = (device.upload(&[1u32, 2, 3, 4])?, device.alloc::<u32>(2)?);
    /// device.batch().copy(a.slice(2..)?, &b)?.fill(a.slice(..2)?, 7)?.submit()?;
    /// assert_eq!(a.download()?, [7, 7, 3, 4]);
    /// assert_eq!(b.download()?, [3, 4]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Slice::copy_to`](crate::Slice::copy_to);
    /// [`GpuError::BufferAccess`](crate::GpuError::BufferAccess) if the elements of two untyped
    /// buffers are of different types.
    pub fn copy<S: Elements, D: Elements<Kind = S::Kind>>(
        &mut self,
        src: S,
        dst: D,
    ) -> Result<&mut Self> {
        const NAME: &str = "Batch::copy";
        let (from, to) = (src.bytes(), dst.bytes());
        untyped_buffer::check_same_elements(
            NAME,
            (from.label, &src.element()),
            (to.label, &dst.element()),
        )?;
        self.add(|context, list| encode::copy(context, list, NAME, from, to).in_function(NAME))
    }

    /// Adds a fill of a buffer, or a slice of one, with one value; an untyped buffer is filled byte
    /// by byte.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// # fn main() -> scry_gpu::Result<()> {
    /// let device = Device::open("cpu")?;
    /// let x = device.alloc::<f32>(2)?;
    /// let sums = device.upload(&[1u16, 2])?.untyped();
    /// device.batch().fill(&x, 0.5)?.fill(&sums, 0)?.submit()?;
    /// assert_eq!(x.download()?, [0.5, 0.5]);
    /// assert_eq!(sums.download_bytes()?, [0; 4]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = gpu.alloc::<u32>(3)?;
    /// gpu.batch().fill(&x, 1)?.fill(x.slice(1..)?, 2)?.submit()?;
    /// assert_eq!(x.download()?, [1, 2, 2]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::WrongDevice`](crate::GpuError::WrongDevice),
    /// [`GpuError::OutOfMemory`](crate::GpuError::OutOfMemory).
    pub fn fill<D: Elements>(&mut self, dst: D, value: D::Item) -> Result<&mut Self> {
        let view = dst.bytes();
        let pattern = element::bytes_of(std::slice::from_ref(&value));
        self.add(|context, list| {
            let role = || "the destination".to_owned();
            same_device(context, (view.context, view.label), "Batch::fill", role)?;
            encode::fill(context, list, view, pattern).in_function("Batch::fill")
        })
    }

    /// Adds a write of all elements of a buffer, or of a slice of one; of an untyped buffer, of its
    /// bytes. `data` is copied before the call returns.
    ///
    /// ```
    /// # fn main() -> scry_gpu::Result<()> {
    /// let device = scry_gpu::Device::open("cpu")?;
    /// let x = device.alloc::<f32>(4)?;
    /// device.batch().write(&x, &[1.0; 4])?.write(x.slice(1..3)?, &[2.0, 3.0])?.submit()?;
    /// assert_eq!(x.download()?, [1.0, 2.0, 3.0, 1.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`GpuError::BufferAccess`](crate::GpuError::BufferAccess) if `data` has a different length,
    /// [`GpuError::WrongDevice`](crate::GpuError::WrongDevice),
    /// [`GpuError::OutOfMemory`](crate::GpuError::OutOfMemory).
    pub fn write<D: Elements>(&mut self, dst: D, data: &[D::Item]) -> Result<&mut Self> {
        const NAME: &str = "Batch::write";
        dst.check_len(NAME, data.len())?;
        self.add(|context, list| {
            let (view, role) = (dst.bytes(), || "the destination".to_owned());
            same_device(context, (view.context, view.label), NAME, role)?;
            match view.bytes() {
                Some(dst) => encode::write_bytes(context, list, dst, element::bytes_of(data))
                    .in_function(NAME),
                None => Ok(()),
            }
        })
    }

    /// Adds a read of all elements of a buffer, or of a slice of one, as they are at this point of
    /// the batch; of an untyped buffer, of its bytes.
    ///
    /// ```
    /// # fn main() -> scry_gpu::Result<()> {
    /// let device = scry_gpu::Device::open("cpu")?;
    /// let x = device.upload(&[1u32, 2, 3, 4])?;
    /// let mut batch = device.batch();
    /// let before = batch.download(x.slice(2..)?)?;
    /// batch.fill(&x, 0)?.submit()?;
    /// assert_eq!(before.get()?, [3, 4]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`GpuError::WrongDevice`](crate::GpuError::WrongDevice),
    /// [`GpuError::OutOfMemory`](crate::GpuError::OutOfMemory).
    pub fn download<S: Elements>(&mut self, src: S) -> Result<Download<S::Item>> {
        let (view, role) = (src.bytes(), || "the source".to_owned());
        let owner = (view.context, view.label);
        same_device(&self.context, owner, "Batch::download", role)?;
        let copy = match view.bytes() {
            None => None,
            Some((source, range)) => {
                let memory = self.context.allocate(MemoryKind::Readback, range.size, "read back");
                let memory = memory.in_function("Batch::download")?;
                let dst = BufferRange { size: range.size, ..memory.whole() };
                self.list.push(Command::Copy { src: range, dst }, [source, &memory]);
                self.list.read_by_host = true;
                Some(HostCopy { memory, source: range.memory })
            }
        };
        let latest = self.latest.clone();
        let len = view.size as usize / size_of::<S::Item>();
        Ok(Download::new(&self.context, copy, len, latest))
    }

    /// Submits the batch and waits until it is done. Leaves the batch empty, even on failure;
    /// it can be reused.
    ///
    /// ```
    /// # fn main() -> scry_gpu::Result<()> {
    /// let device = scry_gpu::Device::open("cpu")?;
    /// let (a, b) = (device.upload(&[1.0f32, 2.0])?, device.alloc::<f32>(2)?);
    /// device.batch().copy(&a, &b)?.fill(&a, 0.0)?.submit()?;
    /// assert_eq!(a.download()?, [0.0, 0.0]);
    /// assert_eq!(b.download()?, [1.0, 2.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Ticket::wait`].
    pub fn submit(&mut self) -> Result<()> {
        self.submit_async().and_then(|ticket| ticket.wait()).in_function("Batch::submit")
    }

    /// Submits the batch; does not wait. Leaves the batch empty, even on failure.
    ///
    /// ```
    /// # fn main() -> scry_gpu::Result<()> {
    /// let device = scry_gpu::Device::open("cpu")?;
    /// let a = device.alloc::<u32>(3)?;
    /// let mut batch = device.batch();
    /// let first = batch.fill(&a, 1)?.submit_async()?;
    /// let second = batch.fill(&a, 2)?.submit_async()?; // the same batch, filled again
    /// first.wait()?;
    /// second.wait()?;
    /// assert_eq!(a.download()?, [2, 2, 2]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`GpuError::DeviceLost`](crate::GpuError::DeviceLost),
    /// [`GpuError::OutOfMemory`](crate::GpuError::OutOfMemory). GPU drivers receive a batch in
    /// parts: after an error the first commands may have been executed.
    pub fn submit_async(&mut self) -> Result<Ticket> {
        let (list, latest) = self.take();
        let submission = latest.submit(|| self.context.submit_list(list, false));
        let submission = submission.in_function("Batch::submit_async")?;
        Ok(Ticket::new(&self.context, submission))
    }

    /// Submits the batch, waits, and returns the time that each launch took on the device, in
    /// order; launches without invocations are omitted. Empty if the device has no timestamps.
    /// Leaves the batch empty, even on failure.
    ///
    /// ```
    /// # fn main() -> scry_gpu::Result<()> {
    /// let device = scry_gpu::Device::open("cpu")?;
    /// let kernel = device.compile("@compute @workgroup_size(64) fn nothing() {}")?;
    /// let times = device.batch().run(&kernel, &[], 64)?.run(&kernel, &[], 64)?.submit_timed()?;
    /// assert_eq!(times.len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Ticket::wait`].
    #[doc(alias("cudaEvent", "timestamp", "profiler"))]
    pub fn submit_timed(&mut self) -> Result<Vec<Duration>> {
        let times = self.start_timed().and_then(|timed| match timed {
            Some(timed) => self.context.wait(timed.submission).and_then(|()| timed.times()),
            None => Ok(Vec::new()),
        });
        times.in_function("Batch::submit_timed")
    }

    /// Submits the batch with a timer for each launch; `None` if it is empty. Leaves it empty.
    pub(super) fn start_timed(&mut self) -> Result<Option<TimedSubmission>> {
        let (list, latest) = self.take();
        let mut timed = None;
        latest.submit(|| {
            timed = TimedSubmission::submit(&self.context, list)?;
            Ok(timed.as_ref().map(|timed| timed.submission))
        })?;
        Ok(timed)
    }

    /// Prepares the batch for repeated execution. Each replay writes the data passed to
    /// [`Batch::write`] again. Leaves the batch empty, even on failure.
    ///
    /// ```
    /// # fn main() -> scry_gpu::Result<()> {
    /// let device = scry_gpu::Device::open("cpu")?;
    /// let add = device.compile(
    ///     "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
    ///      @compute @workgroup_size(4) fn add(@builtin(global_invocation_id) id: vec3u) {
    ///          x[id.x] += 1u;
    ///      }",
    /// )?;
    /// let x = device.alloc::<u32>(4)?;
    /// let recording = device.batch().run(&add, &[&x], 4)?.record()?;
    /// recording.replay()?.wait()?;
    /// recording.replay()?.wait()?;
    /// assert_eq!(x.download()?, [2; 4]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`GpuError::DeviceLost`](crate::GpuError::DeviceLost),
    /// [`GpuError::OutOfMemory`](crate::GpuError::OutOfMemory).
    pub fn record(&mut self) -> Result<Recording> {
        let (list, latest) = self.take();
        let recorded = match list.is_empty() {
            true => None,
            false => Some(self.context.record(list).in_function("Batch::record")?),
        };
        Ok(Recording::new(&self.context, recorded, latest))
    }

    /// Removes and returns the commands. Existing downloads keep referring to their submission.
    fn take(&mut self) -> (CommandList, LatestSubmission) {
        (std::mem::take(&mut self.list), std::mem::take(&mut self.latest))
    }

    /// Adds commands to the list; a failure leaves the list unchanged.
    pub(crate) fn add(
        &mut self,
        encode: impl FnOnce(&Arc<Context>, &mut CommandList) -> Result<()>,
    ) -> Result<&mut Self> {
        let lengths = self.list.lengths();
        if let Err(error) = encode(&self.context, &mut self.list) {
            self.list.truncate(lengths);
            return Err(error);
        }
        Ok(self)
    }
}

impl std::fmt::Debug for Batch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batch")
            .field("device", &self.context.info.name)
            .field("commands", &self.list.commands.len())
            .finish()
    }
}
