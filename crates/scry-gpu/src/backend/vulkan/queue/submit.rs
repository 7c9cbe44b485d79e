//! The queue: each submission signals the next timeline value.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ash::vk;

use super::command_buffers::Commands;
use super::encode::{Encoder, Tables};
use super::timeline::Timeline;
use super::timing::Timer;
use crate::api::error::{GpuError, Result};
use crate::api::info::DeviceKind;
use crate::backend::no_times;
use crate::backend::shared::cancellation::{
    CANCEL_TIMEOUT, first_cancelled, wait_while_progressing,
};
use crate::backend::shared::command_checks::no_recording;
use crate::backend::shared::timers::Timers;
use crate::backend::vulkan::device::Gpu;
use crate::backend::vulkan::lock;
use crate::backend::vulkan::memory::Block;
use crate::core::command::{Command, Step};
use crate::core::driver::{Cancelled, RecordingMark, SubmissionIndex, Work};
use crate::core::id::Slots;

/// Number of steps in the first chunk of a long list; on a GPU, in every chunk. Encoding 128 steps
/// takes about ten times as long as a submission.
const CHUNK: usize = 128;

/// Maximum number of steps in a chunk on a software device, where each chunk is twice as long as
/// the one before. The device's threads compete with the caller's, so that an early start is less
/// useful.
const MAX_SOFTWARE_CHUNK: usize = 512;

/// The compute queue.
pub(crate) struct Queue {
    raw: vk::Queue,
    state: Mutex<State>,
    gpu: Arc<Gpu>,
}

#[derive(Default)]
struct State {
    /// The timeline value that the last submission signals.
    last: u64,
    /// Command buffers ready for recording.
    free: Vec<Commands>,
    /// Command buffers in flight and their timeline values, in ascending order.
    busy: VecDeque<(u64, Commands)>,
    /// Timers of timed submissions; `None` if there was nothing to time.
    timers: Timers<Option<Timer>>,
    /// Scratch memory for the bindings of one dispatch.
    bindings: Vec<vk::DescriptorBufferInfo>,
}

impl Queue {
    /// Returns the queue of a device.
    pub(crate) fn new(gpu: &Arc<Gpu>) -> Self {
        Self {
            // SAFETY: the device was opened with one queue of this family.
            raw: unsafe { gpu.raw.get_device_queue(gpu.queue_family, 0) },
            state: Mutex::default(),
            gpu: Arc::clone(gpu),
        }
    }

    /// Returns the timeline value that the last submission signals.
    pub(crate) fn last(&self) -> u64 {
        lock(&self.state).last
    }

    /// Returns the number of command buffers created.
    #[cfg(test)]
    pub(crate) fn command_buffers(&self) -> usize {
        let state = lock(&self.state);
        state.free.len() + state.busy.len()
    }

    /// Encodes and submits steps; returns the timeline value that they signal.
    ///
    /// Long lists are submitted in chunks, so that the device executes the first while the host
    /// encodes the rest.
    pub(crate) fn submit(
        &self,
        timeline: &Timeline,
        tables: Tables<'_>,
        steps: &[Step],
        timed: bool,
    ) -> Result<u64> {
        let mut state = lock(&self.state);
        if steps.is_empty() || timed {
            return self.submit_chunk(&mut state, timeline, tables, steps, timed);
        }
        let before = state.last;
        let max_size = match self.gpu.info.kind {
            DeviceKind::Software => MAX_SOFTWARE_CHUNK,
            _ => CHUNK,
        };
        let (mut done, mut size) = (0, CHUNK);
        while done < steps.len() {
            let chunk = &steps[done..steps.len().min(done + size)];
            let submitted = self.submit_chunk(&mut state, timeline, tables, chunk, false);
            if let Err(error) = submitted {
                let value = state.last;
                drop(state);
                return Err(match value == before {
                    true => error,
                    false => self.partial_failure(timeline, value, (done, steps.len()), error),
                });
            }
            done += chunk.len();
            size = (size * 2).min(max_size);
        }
        Ok(state.last)
    }

    /// Handles a failure after a part of the steps was submitted: waits for that part, because the
    /// core frees the resources of failed work. Returns the error unless the device is lost.
    fn partial_failure(
        &self,
        timeline: &Timeline,
        value: u64,
        (done, total): (usize, usize),
        error: GpuError,
    ) -> GpuError {
        match timeline.wait(value, crate::backend::vulkan::DROP_TIMEOUT) {
            Ok(true) => error,
            Ok(false) => {
                let why = format!("{error}; the first {done} of {total} steps did not finish");
                self.gpu.mark_lost(why)
            }
            Err(lost) => lost,
        }
    }

    fn submit_chunk(
        &self,
        state: &mut State,
        timeline: &Timeline,
        tables: Tables<'_>,
        steps: &[Step],
        timed: bool,
    ) -> Result<u64> {
        let timer = match timed {
            true => Timer::new(&self.gpu, dispatch_count(steps))?,
            false => None,
        };
        let value = if steps.is_empty() {
            self.queue_submit(state, timeline, &[])?
        } else {
            let mut commands = state.take_commands(&self.gpu, timeline)?;
            let encoded = self.encode(state, &mut commands, tables, steps, timer.as_ref());
            let submitted =
                encoded.and_then(|()| self.queue_submit(state, timeline, &[commands.buffer]));
            match submitted {
                Ok(value) => {
                    state.busy.push_back((value, commands));
                    value
                }
                Err(error) => {
                    state.free.push(commands);
                    return Err(error);
                }
            }
        };
        if timed {
            state.timers.insert(value, timer);
        }
        Ok(value)
    }

    /// Submits steps and recordings, in order, in one call of the driver; returns the timeline
    /// value that they signal.
    pub(crate) fn submit_all(
        &self,
        timeline: &Timeline,
        tables: Tables<'_>,
        recordings: &Slots<RecordingMark, Commands>,
        works: &[Work<'_>],
    ) -> Result<u64> {
        let mut state = lock(&self.state);
        let (mut used, mut buffers) = (Vec::new(), Vec::with_capacity(works.len()));
        let encoded = works.iter().try_for_each(|work| {
            let buffer = match *work {
                Work::Once(steps) => {
                    let mut commands = state.take_commands(&self.gpu, timeline)?;
                    let encoded = self.encode(&mut state, &mut commands, tables, steps, None);
                    let buffer = commands.buffer;
                    used.push(commands);
                    encoded.map(|()| buffer)?
                }
                Work::Replay(id) => match recordings.get(id) {
                    Some(recording) => recording.buffer,
                    None => return Err(self.gpu.defect_error("vkQueueSubmit", no_recording(id))),
                },
                Work::Sequence(_) => {
                    let why = "a sequence contains a sequence".to_owned();
                    return Err(self.gpu.defect_error("vkQueueSubmit", why));
                }
            };
            buffers.push(buffer);
            Ok(())
        });
        let submitted = encoded.and_then(|()| self.queue_submit(&mut state, timeline, &buffers));
        match submitted {
            Ok(value) => {
                state.busy.extend(used.into_iter().map(|commands| (value, commands)));
                Ok(value)
            }
            Err(error) => {
                state.free.append(&mut used);
                Err(error)
            }
        }
    }

    /// Submits the command buffer of a recording; returns the timeline value that it signals.
    pub(crate) fn replay(&self, timeline: &Timeline, commands: vk::CommandBuffer) -> Result<u64> {
        self.queue_submit(&mut lock(&self.state), timeline, &[commands])
    }

    fn encode(
        &self,
        state: &mut State,
        commands: &mut Commands,
        tables: Tables<'_>,
        steps: &[Step],
        timer: Option<&Timer>,
    ) -> Result<()> {
        commands.begin(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT)?;
        let mut encoder =
            Encoder { gpu: &self.gpu, tables, commands, timer, bindings: &mut state.bindings };
        encoder.encode(steps)?;
        commands.end()
    }

    fn queue_submit(
        &self,
        state: &mut State,
        timeline: &Timeline,
        commands: &[vk::CommandBuffer],
    ) -> Result<u64> {
        self.gpu.check_alive()?;
        let value = state.last + 1;
        let (values, semaphores) = ([value], [timeline.semaphore]);
        let mut signal =
            vk::TimelineSemaphoreSubmitInfo::default().signal_semaphore_values(&values);
        let submission = [vk::SubmitInfo::default()
            .command_buffers(commands)
            .signal_semaphores(&semaphores)
            .push_next(&mut signal)];
        // SAFETY: the state's mutex guards the queue; the commands are recorded, and by the
        // contract of `Driver` all resources that they use stay alive until the timeline reaches
        // `value`.
        let submitted =
            unsafe { self.gpu.raw.queue_submit(self.raw, &submission, vk::Fence::null()) };
        submitted.map_err(|code| self.gpu.failed("vkQueueSubmit", code))?;
        state.last = value;
        Ok(value)
    }

    /// Cancels the submissions up to `submission`, and all later ones: one stop word serves all
    /// kernels. Holds the lock of the queue until they have ended, so that nothing is submitted
    /// meanwhile. Returns those that were cancelled; `None` if they do not end.
    ///
    /// Without a stop word no kernel polls: launches are not skipped, but may end by themselves.
    pub(crate) fn cancel(
        &self,
        timeline: &Timeline,
        submission: SubmissionIndex,
        stop: Option<&Block>,
    ) -> Result<Option<Cancelled>> {
        let Some(stop) = stop else {
            let has_ended = timeline.wait(submission.0, CANCEL_TIMEOUT)?;
            let none = Cancelled { first: SubmissionIndex(submission.0 + 1), last: submission };
            return Ok(has_ended.then_some(none));
        };
        let state = lock(&self.state);
        let before = timeline.poll()?;
        let cancelled = |last| {
            let first = SubmissionIndex(first_cancelled(before, last));
            Some(Cancelled { first, last: SubmissionIndex(last) })
        };
        if before >= submission.0 {
            return Ok(cancelled(submission.0));
        }
        stop.signal(1)?;
        let wait = || timeline.wait(state.last, CANCEL_TIMEOUT);
        if !wait_while_progressing(before, wait, || timeline.poll())? {
            return Ok(None);
        }
        stop.signal(0)?;
        Ok(cancelled(state.last))
    }

    /// Returns the device time of each dispatch of a finished timed submission.
    pub(crate) fn timings(&self, timeline: &Timeline, value: u64) -> Result<Vec<Duration>> {
        if timeline.last_seen() < value && timeline.poll()? < value {
            let why = format!("submission {value} has not finished");
            return Err(self.gpu.defect_error("timings", why));
        }
        let mut state = lock(&self.state);
        let Some(timer) = state.timers.take(value) else {
            return Err(self.gpu.defect_error("timings", no_times(value)));
        };
        drop(state);
        timer.map_or(Ok(Vec::new()), |timer| timer.durations())
    }

    /// Frees the timer of a submission, done or not, whose times nothing will read.
    pub(crate) fn discard_timings(&self, timeline: &Timeline, value: u64) {
        let done = lock(&self.state).timers.discard(value, timeline.last_seen());
        // Destroyed without the lock.
        drop(done);
    }
}

impl State {
    /// Removes a command buffer whose execution has finished, or creates one.
    fn take_commands(&mut self, gpu: &Arc<Gpu>, timeline: &Timeline) -> Result<Commands> {
        self.recycle(timeline.last_seen());
        if self.free.is_empty() && !self.busy.is_empty() {
            let reached = timeline.poll()?;
            self.recycle(reached);
        }
        match self.free.pop() {
            Some(commands) => Ok(commands),
            None => Commands::new(gpu),
        }
    }

    /// Moves the command buffers up to a timeline value from `busy` to `free`.
    fn recycle(&mut self, reached: u64) {
        while self.busy.front().is_some_and(|(value, _)| *value <= reached) {
            let done = self.busy.pop_front();
            self.free.extend(done.map(|(_, commands)| commands));
        }
    }
}

/// Encodes steps into a command buffer for repeated submission; executions may overlap.
pub(crate) fn record(gpu: &Arc<Gpu>, tables: Tables<'_>, steps: &[Step]) -> Result<Commands> {
    let mut commands = Commands::new(gpu)?;
    commands.begin(vk::CommandBufferUsageFlags::SIMULTANEOUS_USE)?;
    let mut encoder =
        Encoder { gpu, tables, commands: &mut commands, timer: None, bindings: &mut Vec::new() };
    encoder.encode(steps)?;
    commands.end()?;
    Ok(commands)
}

/// Returns the number of dispatches among steps.
fn dispatch_count(steps: &[Step]) -> usize {
    steps.iter().filter(|step| matches!(step, Step::Run(Command::Dispatch(_)))).count()
}
