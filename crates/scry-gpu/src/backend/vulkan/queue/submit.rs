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
use crate::backend::shared::cancellation::{
    CANCEL_TIMEOUT, first_cancelled, wait_while_progressing,
};
use crate::backend::vulkan::device::Gpu;
use crate::backend::vulkan::lock;
use crate::backend::vulkan::memory::Block;
use crate::core::command::{Command, Step};
use crate::core::driver::{Cancelled, SubmissionIndex};

/// Steps of the first submission: encoding 128 takes about ten times as long as a submission.
const CHUNK: usize = 128;

/// Maximum steps per submission on a software device, where each submission has twice as many steps
/// as the one before: its threads compete with the caller's, which makes an early start less
/// useful.
const MAX_SOFTWARE_CHUNK: usize = 512;

/// Number of timed submissions whose times are kept for later queries.
const MAX_TIMERS: usize = 64;

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
    /// Timers of timed submissions by ascending timeline value; `None` if there was nothing to
    /// time.
    timers: Vec<(u64, Option<Timer>)>,
    /// Scratch memory for the bindings of one dispatch.
    bindings: Vec<vk::DescriptorBufferInfo>,
}

impl Queue {
    /// The device's queue.
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
        let largest = match self.gpu.info.kind {
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
                    false => self.partial_failure(timeline, value, (done, steps.len()), &error),
                });
            }
            done += chunk.len();
            size = (size * 2).min(largest);
        }
        Ok(state.last)
    }

    /// Handles a failure after a part of the steps was submitted: waits for that part, because the
    /// core frees the resources of failed work.
    fn partial_failure(
        &self,
        timeline: &Timeline,
        value: u64,
        (done, all): (usize, usize),
        error: &GpuError,
    ) -> GpuError {
        match timeline.wait(value, crate::backend::vulkan::DROP_TIMEOUT) {
            Ok(true) => {
                let why = format!("{error}; the first {done} of {all} steps were executed");
                self.gpu.refused("vkQueueSubmit", why)
            }
            Ok(false) => {
                let why = format!("{error}; the first {done} of {all} steps did not finish");
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
            true => Timer::new(&self.gpu, dispatches(steps))?,
            false => None,
        };
        let value = if steps.is_empty() {
            self.queue_submit(state, timeline, &[])?
        } else {
            let mut commands = state.take(&self.gpu, timeline)?;
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
            state.keep_timer(value, timer, timeline.last_seen());
        }
        Ok(value)
    }

    /// Submits recorded commands again.
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

    /// Cancels the submissions up to one, and all later ones: one stop word serves all kernels.
    /// Nothing is submitted until they have ended; `None` if they do not end.
    pub(crate) fn cancel(
        &self,
        timeline: &Timeline,
        submission: SubmissionIndex,
        stop: &Block,
    ) -> Result<Option<Cancelled>> {
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
            return Err(self.gpu.refused("timings", why));
        }
        let mut state = lock(&self.state);
        let at = state.timers.iter().position(|(of, _)| *of == value);
        let Some((_, timer)) = at.map(|at| state.timers.remove(at)) else {
            let why = format!("submission {value} was not timed, or its times were read already");
            return Err(self.gpu.refused("timings", why));
        };
        drop(state);
        timer.map_or(Ok(Vec::new()), |timer| timer.durations())
    }
}

impl State {
    /// Returns a command buffer whose execution has finished, or a new one.
    fn take(&mut self, gpu: &Arc<Gpu>, timeline: &Timeline) -> Result<Commands> {
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

    fn recycle(&mut self, reached: u64) {
        while self.busy.front().is_some_and(|(value, _)| *value <= reached) {
            let done = self.busy.pop_front();
            self.free.extend(done.map(|(_, commands)| commands));
        }
    }

    /// Keeps a timer until it is read; beyond the limit the oldest finished timers are dropped.
    fn keep_timer(&mut self, value: u64, timer: Option<Timer>, reached: u64) {
        self.timers.push((value, timer));
        while self.timers.len() > MAX_TIMERS && self.timers[0].0 <= reached {
            self.timers.remove(0);
        }
    }
}

/// Records steps for repeated submission; executions may overlap.
pub(crate) fn record(gpu: &Arc<Gpu>, tables: Tables<'_>, steps: &[Step]) -> Result<Commands> {
    let mut commands = Commands::new(gpu)?;
    commands.begin(vk::CommandBufferUsageFlags::SIMULTANEOUS_USE)?;
    let mut encoder =
        Encoder { gpu, tables, commands: &mut commands, timer: None, bindings: &mut Vec::new() };
    encoder.encode(steps)?;
    commands.end()?;
    Ok(commands)
}

fn dispatches(steps: &[Step]) -> usize {
    steps.iter().filter(|step| matches!(step, Step::Run(Command::Dispatch(_)))).count()
}
