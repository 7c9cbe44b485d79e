//! The queue: submissions are numbered in order.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::Waker;
use std::time::Duration;

use super::encode::Operation;
use super::execute::{self, Encoded};
use super::readback::Pool;
use super::timeline::Timeline;
use super::timing::Timer;
use super::word_kernels::WordKernels;
use crate::api::error::Result;
use crate::api::info::DeviceKind;
use crate::backend::no_times;
use crate::backend::shared::locks::lock;
use crate::backend::shared::poll::Wait;
use crate::backend::shared::timers::Timers;
use crate::backend::wgpu::device::Gpu;

/// Maximum duration of a blocking call of wgpu, for which other threads may be unable to free
/// memory.
const MAX_BLOCK: Duration = Duration::from_millis(2);

/// The queue of a device.
pub(in crate::backend::wgpu) struct Queue {
    timeline: Timeline,
    state: Mutex<State>,
    pool: Arc<Pool>,
    word_kernels: OnceLock<WordKernels>,
    /// Whether a submission starts only once those before it are done: wgpu's submissions wait for
    /// each other by semaphores, and a software driver of Vulkan blocks the thread that submits
    /// until they are signalled, which is never if a kernel does not end.
    defers: bool,
    gpu: Arc<Gpu>,
}

#[derive(Default)]
struct State {
    /// The number of the last submission.
    last: u64,
    /// Timers of timed submissions; `None` if there was nothing to time.
    timers: Timers<Option<Timer>>,
    /// Submissions that start once those before them are done, in order.
    deferred: VecDeque<(u64, Encoded)>,
}

impl Queue {
    pub(in crate::backend::wgpu) fn new(gpu: &Arc<Gpu>) -> Self {
        Self {
            timeline: Timeline::new(gpu),
            state: Mutex::default(),
            pool: Arc::default(),
            word_kernels: OnceLock::new(),
            defers: gpu.info.kind == DeviceKind::Software && !cfg!(target_arch = "wasm32"),
            gpu: Arc::clone(gpu),
        }
    }

    /// Returns the number of the last submission.
    pub(in crate::backend::wgpu) fn last(&self) -> u64 {
        lock(&self.state).last
    }

    /// Returns the kernels for fills and copies, compiled at the first submission.
    pub(in crate::backend::wgpu) fn word_kernels(&self) -> Result<&WordKernels> {
        if let Some(kernels) = self.word_kernels.get() {
            return Ok(kernels);
        }
        let kernels = WordKernels::new(&self.gpu)?;
        Ok(self.word_kernels.get_or_init(|| kernels))
    }

    /// Executes lists of operations, in order; returns the number of the submission.
    pub(in crate::backend::wgpu) fn submit(
        &self,
        lists: &[&[Operation]],
        timed: bool,
    ) -> Result<u64> {
        let gpu = &self.gpu;
        let is_dispatch = |it: &&Operation| matches!(it, Operation::Launch(it) if it.is_dispatch);
        let operations = || lists.iter().copied().flatten();
        let timer = match timed {
            true => Timer::new(gpu, operations().filter(is_dispatch).count())?,
            false => None,
        };
        let mut state = lock(&self.state);
        let encoded = gpu.call("CommandEncoder::finish", || {
            execute::encode(gpu, &self.pool, operations(), timer.as_ref())
        })??;
        let number = state.last + 1;
        self.timeline.shared.begin(number, 1 + encoded.mappings.len());
        if self.defers && self.has_unfinished(&mut state)? {
            state.deferred.push_back((number, encoded));
        } else if let Err(error) = self.execute(number, encoded) {
            self.timeline.shared.retract(number);
            return Err(error);
        }
        state.last = number;
        if timed {
            state.timers.insert(number, timer);
        }
        Ok(number)
    }

    /// Submits a command buffer to wgpu, and observes its completion.
    fn execute(&self, number: u64, encoded: Encoded) -> Result<()> {
        let (gpu, shared) = (&self.gpu, &self.timeline.shared);
        self.timeline.submit(encoded.commands, || {
            for mapping in encoded.mappings {
                mapping.start(gpu, &self.pool, shared, number);
            }
            let done = shared.clone();
            gpu.queue.on_submitted_work_done(move || done.finish_part(number));
        })
    }

    /// Returns whether earlier submissions are unfinished, after executing what was deferred.
    fn has_unfinished(&self, state: &mut State) -> Result<bool> {
        if self.timeline.last_seen() < state.last {
            self.timeline.poll()?;
            self.execute_deferred(state)?;
        }
        Ok(self.timeline.last_seen() < state.last)
    }

    /// Executes the next deferred submission if all before it are done.
    fn execute_deferred(&self, state: &mut State) -> Result<()> {
        let reached = self.timeline.last_seen();
        let is_next = |(number, _): &(u64, Encoded)| reached + 1 >= *number;
        if state.deferred.front().is_some_and(is_next)
            && let Some((number, encoded)) = state.deferred.pop_front()
        {
            let submitted = self.execute(number, encoded);
            // The caller of that submission got no error.
            submitted.map_err(|error| self.gpu.mark_lost(error.to_string()))?;
        }
        Ok(())
    }

    /// Returns the last finished submission.
    fn poll(&self) -> Result<u64> {
        let reached = self.timeline.poll()?;
        if self.defers {
            self.execute_deferred(&mut lock(&self.state))?;
        }
        Ok(reached)
    }

    /// Waits until a submission is done; false after `timeout`. Polls GPUs: on Metal, a blocking
    /// call of wgpu polls less often. Software devices need the processor that polls would use:
    /// one thread blocks in wgpu, and others sleep until its call has processed their work.
    pub(in crate::backend::wgpu) fn wait(&self, number: u64, timeout: Duration) -> Result<bool> {
        if self.timeline.last_seen() >= number {
            return Ok(true);
        }
        let mut wait = None;
        loop {
            if self.poll()? >= number {
                return Ok(true);
            }
            let wait = wait.get_or_insert_with(|| Wait::new(timeout));
            let Some(remaining) = wait.remaining() else { return Ok(false) };
            if self.defers && self.timeline.block(remaining.min(MAX_BLOCK))? {
                self.execute_deferred(&mut lock(&self.state))?;
                if self.timeline.last_seen() >= number {
                    return Ok(true);
                }
            } else if !wait.pause() {
                return Ok(false);
            }
        }
    }

    /// Wakes `waker` once a submission is done.
    pub(in crate::backend::wgpu) fn notify(&self, number: u64, waker: &Waker) {
        self.timeline.shared.notify(number, waker);
    }

    /// Returns the device time of each dispatch of a finished timed submission.
    pub(in crate::backend::wgpu) fn timings(&self, number: u64) -> Result<Vec<Duration>> {
        if self.timeline.last_seen() < number && self.poll()? < number {
            let why = format!("submission {number} has not finished");
            return Err(self.gpu.defect_error("timings", why));
        }
        let Some(timer) = lock(&self.state).timers.take(number) else {
            return Err(self.gpu.defect_error("timings", no_times(number)));
        };
        timer.map_or(Ok(Vec::new()), |timer| timer.durations(&self.gpu))
    }

    /// Frees the timer of a submission, done or not, whose times nothing will read.
    pub(in crate::backend::wgpu) fn discard_timings(&self, number: u64) {
        let done = lock(&self.state).timers.discard(number, self.timeline.last_seen());
        // Dropped without the lock.
        drop(done);
    }
}
