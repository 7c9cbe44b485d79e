//! What a submitted batch leaves in the caller's hands.

use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use crate::api::element::{self, Element};
use crate::api::error::{GpuError, InFunction, RangeError, Result};
use crate::api::recording::ReplayInputs;
use crate::core::command_list::CommandList;
use crate::core::context::Context;
use crate::core::handles::{MemoryId, Point};
use crate::core::memory::Memory;
use crate::core::submission_queue::Recorded;

/// A submitted batch, perhaps not finished. Dropping a ticket does not stop the batch.
#[must_use = "wait for the ticket, or drop it knowingly: the batch goes on"]
pub struct Ticket {
    context: Arc<Context>,
    /// Absent if the batch was empty.
    point: Option<Point>,
}

impl Ticket {
    pub(crate) fn new(context: &Arc<Context>, point: Option<Point>) -> Self {
        Self { context: context.clone(), point }
    }

    /// Waits until the batch is done.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = gpu.alloc::<u32>(2)?;
    /// let ticket = gpu.batch().fill(&x, 1)?.submit_async()?;
    /// // … work for the host …
    /// ticket.wait()?;
    /// assert!(ticket.is_ready()?);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::DeviceLost`], [`GpuError::Timeout`] after the device's time limit,
    /// [`GpuError::Kernel`] if a launch of the batch did not run to its end,
    /// [`GpuError::Interrupted`] after which it may be waited for again.
    pub fn wait(&self) -> Result<()> {
        let wait = |point| self.context.wait(point).in_function("Ticket::wait");
        self.point.map_or(Ok(()), wait)
    }

    /// Waits at most `timeout`; true if the batch is done. May be called again.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use scry_gpu::Device;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = gpu.alloc::<u32>(2)?;
    /// let ticket = gpu.batch().fill(&x, 1)?.submit_async()?;
    /// while !ticket.wait_timeout(Duration::from_millis(100))? {
    ///     println!("still running");
    /// }
    /// assert_eq!(x.download()?, [1, 1]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Ticket::wait`]; a `timeout` that passes is no error.
    pub fn wait_timeout(&self, timeout: Duration) -> Result<bool> {
        let wait = |point| self.context.wait_until(point, Some(timeout));
        self.point.map_or(Ok(true), wait).in_function("Ticket::wait_timeout")
    }

    /// True if the batch is done. Does not wait.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let ticket = gpu.batch().submit_async()?; // nothing to do
    /// assert!(ticket.is_ready()?);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::DeviceLost`].
    pub fn is_ready(&self) -> Result<bool> {
        self.wait_timeout(Duration::ZERO).in_function("Ticket::is_ready")
    }
}

/// The latest submission of a batch, once there is one; shared by the batch and its downloads.
///
/// A replay overwrites what an earlier one read back. So nothing is submitted while a download
/// reads, and downloads wait for the latest submission.
#[derive(Clone, Default)]
pub(crate) struct Latest(Arc<RwLock<Option<Point>>>);

impl Latest {
    /// Submits, and notes the point; an empty batch has none.
    pub(crate) fn submit(
        &self,
        submit: impl FnOnce() -> Result<Option<Point>>,
    ) -> Result<Option<Point>> {
        let mut latest = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let point = submit()?;
        *latest = point;
        Ok(point)
    }

    /// Calls `read` with the point of the latest submission; there is no other one meanwhile.
    fn read<R>(&self, read: impl FnOnce(Option<Point>) -> R) -> R {
        read(*self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A batch that can be submitted again and again without being recorded again. It keeps what it
/// uses alive.
#[must_use = "a recording does nothing until it is replayed"]
pub struct Recording {
    context: Arc<Context>,
    /// Absent if the batch was empty.
    recorded: Option<Arc<Recorded>>,
    latest: Latest,
}

impl Recording {
    pub(crate) fn new(
        context: &Arc<Context>,
        recorded: Option<Arc<Recorded>>,
        latest: Latest,
    ) -> Self {
        Self { context: context.clone(), recorded, latest }
    }

    /// Submits the recorded work once more, after all work submitted before. Its
    /// [`Download`](crate::Download)s give the bytes of the latest replay. Waits while another
    /// thread is in [`Download::get`](crate::Download::get) for the replay before.
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
    /// let recording = gpu.batch().run(&add, &[&x], 3)?.record()?;
    /// for _ in 0..10 {
    ///     drop(recording.replay()?); // does not wait
    /// }
    /// assert_eq!(x.download()?, [10; 3]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::DeviceLost`] and other failures of the device.
    pub fn replay(&self) -> Result<Ticket> {
        self.replay_after(CommandList::default()).in_function("Recording::replay")
    }

    /// Starts a replay before which the buffers that it reads get new elements: a step number, a
    /// learning rate, the next token. Buffers and slices may be of any type; what is not written
    /// keeps its elements.
    ///
    /// ```
    /// # fn main() -> scry_gpu::Result<()> {
    /// let device = scry_gpu::Device::open("cpu")?;
    /// let add = device.compile(
    ///     "@group(0) @binding(0) var<uniform> step: f32;
    ///      @group(0) @binding(1) var<storage, read_write> x: array<f32>;
    ///      @compute @workgroup_size(4) fn add(@builtin(global_invocation_id) id: vec3u) {
    ///          x[id.x] += step;
    ///      }",
    /// )?;
    /// let (step, x) = (device.alloc::<f32>(1)?, device.alloc::<f32>(4)?);
    /// let recording = device.batch().run(&add, &[&step, &x], 4)?.record()?;
    /// for value in [1.0, 10.0, 100.0] {
    ///     drop(recording.replay_with().write(&step, &[value])?.submit()?); // does not wait
    /// }
    /// drop(recording.replay()?); // adds 100 once more
    /// assert_eq!(x.download()?, [211.0; 4]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn replay_with(&self) -> ReplayInputs<'_> {
        ReplayInputs::new(self)
    }

    /// A replay after the commands of a list, with no other submission between them.
    pub(crate) fn replay_after(&self, inputs: CommandList) -> Result<Ticket> {
        let Some(recorded) = &self.recorded else {
            return Ok(Ticket::new(&self.context, None));
        };
        let replay = || self.context.replay(recorded, inputs).map(Some);
        let point = self.latest.submit(replay)?;
        Ok(Ticket::new(&self.context, point))
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    pub(crate) fn recorded(&self) -> Option<&Arc<Recorded>> {
        self.recorded.as_ref()
    }
}

/// Elements that a batch reads back.
#[must_use = "elements are read back only to be received with `get`"]
pub struct Download<T> {
    context: Arc<Context>,
    /// Absent if there are no elements.
    copy: Option<HostCopy>,
    len: usize,
    latest: Latest,
    element: PhantomData<T>,
}

/// Host memory that a batch copies elements to.
pub(crate) struct HostCopy {
    pub(crate) memory: Arc<Memory>,
    /// What they are copied from: whoever reads them is told of launches that failed to write that.
    pub(crate) source: MemoryId,
}

impl<T: Element> Download<T> {
    pub(crate) fn new(
        context: &Arc<Context>,
        copy: Option<HostCopy>,
        len: usize,
        latest: Latest,
    ) -> Self {
        let element = PhantomData;
        Self { context: context.clone(), copy, len, latest, element }
    }

    /// Waits for the batch, or the latest replay of its recording, and gives the elements as they
    /// were at that place in it.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = gpu.upload(&[1u32, 2])?;
    /// let mut batch = gpu.batch();
    /// let before = batch.download(&x)?;
    /// batch.fill(&x, 0)?;
    /// let after = batch.download(&x)?;
    /// assert!(before.get().is_err()); // not submitted
    /// let ticket = batch.submit_async()?;
    /// ticket.wait()?;
    /// assert_eq!((before.get()?, after.get()?), (vec![1, 2], vec![0, 0]));
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Range`] if the batch was never submitted; else as [`Ticket::wait`].
    pub fn get(&self) -> Result<Vec<T>> {
        match &self.copy {
            Some(copy) => {
                let read = self.latest.read(|point| self.read(copy, point));
                read.in_function("Download::get")
            }
            None => Ok(Vec::new()),
        }
    }

    fn read(&self, copy: &HostCopy, point: Option<Point>) -> Result<Vec<T>> {
        let Some(point) = point else {
            return Err(GpuError::Range(RangeError {
                operation: "Download::get",
                problem: "the batch that reads these elements was not submitted".to_owned(),
                help: "submit the batch, or replay the recording, first".to_owned(),
            }));
        };
        self.context.wait_for_reading(point, copy.source)?;
        let mut out = element::zeroed(self.len);
        let bytes = element::bytes_of_mut(&mut out);
        self.context.note_loss(self.context.driver.read(copy.memory.id(), 0, bytes))?;
        Ok(out)
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket")
            .field("device", &self.context.info.name)
            .field("submission", &self.point.map(|point| point.0))
            .finish()
    }
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording")
            .field("device", &self.context.info.name)
            .field("steps", &self.recorded.as_ref().map_or(0, |recorded| recorded.steps()))
            .finish()
    }
}

impl<T> fmt::Debug for Download<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Download")
            .field("len", &self.len)
            .field("element", &std::any::type_name::<T>())
            .field("device", &self.context.info.name)
            .finish()
    }
}
