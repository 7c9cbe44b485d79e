//! The queue: one submission a call, each with the next value of the timeline.

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
use crate::backend::vulkan::device::Gpu;
use crate::backend::vulkan::lock;
use crate::core::command::{Command, Step};

/// Steps of one submission, the first one at least: encoding so many takes the host about as long
/// as a submission costs it ten times over.
const PIECE: usize = 128;

/// Most steps of one submission to a software device, where each has twice as many as the one
/// before: its threads and the caller's take turns, so that less is won by an early start.
const SOFTWARE_PIECE: usize = 512;

/// Timed submissions that are kept for a caller who may yet ask for the times.
const TIMERS_KEPT: usize = 64;

/// The compute queue.
pub(crate) struct Queue {
    raw: vk::Queue,
    state: Mutex<State>,
    gpu: Arc<Gpu>,
}

#[derive(Default)]
struct State {
    /// The timeline's value once the last submission is done.
    last: u64,
    /// Command buffers ready to be recorded.
    free: Vec<Commands>,
    /// Command buffers in use until the timeline reaches a value, in the order of the values.
    busy: VecDeque<(u64, Commands)>,
    /// Timers of timed submissions, in the order of their values; `None` where there was nothing to
    /// time.
    timers: Vec<(u64, Option<Timer>)>,
    /// Room for the bindings of one dispatch.
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

    /// The timeline's value once all submissions are done.
    pub(crate) fn last(&self) -> u64 {
        lock(&self.state).last
    }

    /// Number of command buffers made so far.
    #[cfg(test)]
    pub(crate) fn command_buffers(&self) -> usize {
        let state = lock(&self.state);
        state.free.len() + state.busy.len()
    }

    /// Encodes and submits steps; returns the timeline's value once they are done.
    ///
    /// Long lists go piece by piece, so that the device works on the first while the host still
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
            return self.submit_piece(&mut state, timeline, tables, steps, timed);
        }
        let before = state.last;
        let largest = match self.gpu.info.kind {
            DeviceKind::Software => SOFTWARE_PIECE,
            _ => PIECE,
        };
        let (mut done, mut size) = (0, PIECE);
        while done < steps.len() {
            let piece = &steps[done..steps.len().min(done + size)];
            let submitted = self.submit_piece(&mut state, timeline, tables, piece, false);
            if let Err(error) = submitted {
                let value = state.last;
                drop(state);
                return Err(match value == before {
                    true => error,
                    false => self.broken_off(timeline, value, (done, steps.len()), &error),
                });
            }
            done += piece.len();
            size = (size * 2).min(largest);
        }
        Ok(state.last)
    }

    /// A list of steps could be submitted in part only. What was submitted is waited for, because
    /// the core keeps nothing alive for work that failed.
    fn broken_off(
        &self,
        timeline: &Timeline,
        value: u64,
        (done, all): (usize, usize),
        error: &GpuError,
    ) -> GpuError {
        match timeline.wait(value, crate::backend::vulkan::PATIENCE) {
            Ok(true) => {
                let why = format!("{error}; the first {done} of {all} steps have run");
                self.gpu.refused("vkQueueSubmit", why)
            }
            Ok(false) => {
                let why = format!("{error}; the first {done} of {all} steps do not finish");
                self.gpu.lose(why)
            }
            Err(lost) => lost,
        }
    }

    fn submit_piece(
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
            self.hand_over(state, timeline, &[])?
        } else {
            let mut commands = state.take(&self.gpu, timeline)?;
            let encoded = self.encode(state, &mut commands, tables, steps, timer.as_ref());
            let submitted =
                encoded.and_then(|()| self.hand_over(state, timeline, &[commands.buffer]));
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
            state.keep_timer(value, timer, timeline.known());
        }
        Ok(value)
    }

    /// Submits commands recorded earlier.
    pub(crate) fn replay(&self, timeline: &Timeline, commands: vk::CommandBuffer) -> Result<u64> {
        self.hand_over(&mut lock(&self.state), timeline, &[commands])
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

    fn hand_over(
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
        // driver's contract all that they use stays alive until the timeline reaches `value`.
        let submitted =
            unsafe { self.gpu.raw.queue_submit(self.raw, &submission, vk::Fence::null()) };
        submitted.map_err(|code| self.gpu.failed("vkQueueSubmit", code))?;
        state.last = value;
        Ok(value)
    }

    /// The device time of each dispatch of a timed submission that is done.
    pub(crate) fn timings(&self, timeline: &Timeline, value: u64) -> Result<Vec<Duration>> {
        if timeline.known() < value && timeline.poll()? < value {
            let why = format!("submission {value} is not done");
            return Err(self.gpu.refused("timings", why));
        }
        let mut state = lock(&self.state);
        let at = state.timers.iter().position(|(of, _)| *of == value);
        let Some((_, timer)) = at.map(|at| state.timers.remove(at)) else {
            let why = format!("submission {value} was not timed, or was asked for already");
            return Err(self.gpu.refused("timings", why));
        };
        drop(state);
        timer.map_or(Ok(Vec::new()), |timer| timer.durations())
    }
}

impl State {
    /// A command buffer that the device is done with, or a new one.
    fn take(&mut self, gpu: &Arc<Gpu>, timeline: &Timeline) -> Result<Commands> {
        self.recycle(timeline.known());
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

    /// Keeps a timer until it is asked for; timers that nobody asks for go, oldest first.
    fn keep_timer(&mut self, value: u64, timer: Option<Timer>, reached: u64) {
        self.timers.push((value, timer));
        while self.timers.len() > TIMERS_KEPT && self.timers[0].0 <= reached {
            self.timers.remove(0);
        }
    }
}

/// Records steps for repeated submission, also while an earlier one still runs.
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
