//! Batches that are recorded once and submitted many times.

use std::fmt;
use std::sync::Arc;

use crate::api::batch::Batch;
use crate::api::error::{BufferAccessError, GpuError, InFunction, Result, WrongDeviceError};
use crate::api::latest_submission::LatestSubmission;
use crate::api::replay_inputs::ReplayInputs;
use crate::api::ticket::Ticket;
use crate::core::command_list::{CommandList, Replay};
use crate::core::context::Context;
use crate::core::driver_recording::DriverRecording;
use crate::core::launch_template::LaunchTemplate;

/// A batch that is recorded once and can be submitted repeatedly: a CUDA graph, or a command buffer
/// of Vulkan. It keeps its buffers and kernels alive.
#[doc(alias("cudaGraph", "CUDAGraph"))]
#[must_use = "a recording does nothing until it is replayed"]
pub struct Recording {
    context: Arc<Context>,
    /// `None` if the batch was empty.
    recorded: Option<Arc<DriverRecording>>,
    latest: LatestSubmission,
}

impl Recording {
    pub(crate) fn new(
        context: &Arc<Context>,
        recorded: Option<Arc<DriverRecording>>,
        latest: LatestSubmission,
    ) -> Self {
        Self { context: context.clone(), recorded, latest }
    }

    /// Submits the recorded work again, after all work submitted before. Its
    /// [`Download`](crate::Download)s return the elements of the latest replay. Waits while another
    /// thread reads those of the previous one ([`Download::get`](crate::Download::get)).
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
    /// [`GpuError::DeviceLost`](crate::GpuError::DeviceLost) and other failures of the device.
    pub fn replay(&self) -> Result<Ticket> {
        self.replay_after(CommandList::default()).in_function("Recording::replay")
    }

    /// Starts a replay that first writes new elements to some of its input buffers, such as a step
    /// number, a learning rate or the next token. Buffers and slices may be of any type; other
    /// elements are unchanged.
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

    /// Submits a replay after the commands of a list, with no other submission between them.
    pub(crate) fn replay_after(&self, inputs: CommandList) -> Result<Ticket> {
        let Some(recorded) = &self.recorded else {
            return Ok(Ticket::new(&self.context, None));
        };
        let replay = || self.context.replay(recorded, inputs).map(Some);
        let submission = self.latest.submit(replay)?;
        Ok(Ticket::new(&self.context, submission))
    }

    /// Rejects a batch of another device.
    fn check_context(&self, user: &Arc<Context>, operation: &str) -> Result<()> {
        if Arc::ptr_eq(&self.context, user) {
            return Ok(());
        }
        Err(GpuError::WrongDevice(WrongDeviceError {
            operation: operation.to_owned(),
            what: "the recording".to_owned(),
            owner: self.context.info.name.clone(),
            user: user.info.name.clone(),
            help: "add it to a batch of the Device whose batch was recorded".to_owned(),
        }))
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    pub(crate) fn recorded(&self) -> Option<&Arc<DriverRecording>> {
        self.recorded.as_ref()
    }
}

impl Batch {
    /// Adds the commands of a recording, as they were recorded: later, the batch is submitted at
    /// once, with what precedes and follows them. The recording can be dropped, and be replayed by
    /// several batches.
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
    /// let (x, y) = (gpu.alloc::<u32>(3)?, gpu.alloc::<u32>(3)?);
    /// let recording = gpu.batch().run(&add, &[&x], 3)?.run(&add, &[&x], 3)?.record()?;
    /// gpu.batch().fill(&x, 5)?.replay(&recording)?.copy(&x, &y)?.submit()?;
    /// assert_eq!(y.download()?, [7; 3]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::WrongDevice`] for a recording of another device; [`GpuError::BufferAccess`] if
    /// the recording has downloads, which only [`Recording::replay`] reads again;
    /// [`GpuError::OutOfMemory`].
    pub fn replay(&mut self, recording: &Recording) -> Result<&mut Self> {
        const NAME: &str = "Batch::replay";
        self.add(|context, list| {
            recording.check_context(context, NAME)?;
            let Some(recorded) = &recording.recorded else { return Ok(()) };
            if recorded.read_by_host() {
                return Err(GpuError::BufferAccess(BufferAccessError {
                    operation: NAME,
                    problem: "the recording has downloads".to_owned(),
                    help: "replay it by itself, with `Recording::replay`, or leave the downloads \
                           out of the batch that is recorded"
                        .to_owned(),
                }));
            }
            list.retain(recorded);
            list.observers.extend(recorded.list().observers.iter().cloned());
            if recorded.list().reports.len() == 0 {
                let (position, recorded) = (list.commands.len(), recorded.clone());
                list.replays.push(Replay { position, recorded });
                return Ok(());
            }
            // Each execution of launches with failure reports needs reports of its own.
            let template = LaunchTemplate::new(recorded.list().clone());
            template.append_to(context, list).in_function(NAME)
        })
    }
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording")
            .field("device", &self.context.info.name)
            .field(
                "commands",
                &self.recorded.as_ref().map_or(0, |recorded| recorded.command_count()),
            )
            .finish()
    }
}
