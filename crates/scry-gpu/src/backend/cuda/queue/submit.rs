//! The queue: executes submissions in order, each with the next number of the timeline.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::encode::{Encoder, Scratch, Tables};
use super::graph::{self, Graph};
use super::overlap::{self, Distribution, MAX_STREAMS};
use super::stream::SideStreams;
use super::timeline::Timeline;
use super::timing::{EventPool, Timer};
use crate::api::error::{GpuError, Result};
use crate::backend::cuda::device::{Current, Gpu};
use crate::backend::cuda::ffi::types::attribute;
use crate::backend::cuda::lock;
use crate::backend::no_times;
use crate::backend::shared::command_checks::no_recording;
use crate::backend::shared::timers::Timers;
use crate::core::command::{Command, Dispatch, Step};
use crate::core::driver::{RecordingMark, Work};
use crate::core::id::Slots;

/// Timeout for the issued part of a submission that failed halfway.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// Executes submissions in order.
pub(crate) struct Queue {
    state: Mutex<State>,
    distribution: Distribution,
    timeline: Timeline,
    gpu: Arc<Gpu>,
}

#[derive(Default)]
struct State {
    /// The number of the last submission.
    last: u64,
    /// Created on first use.
    side_streams: Option<SideStreams>,
    timers: Timers<Timer>,
    /// Free events for timers.
    pool: EventPool,
    scratch: Scratch,
}

impl Queue {
    /// Creates an empty queue.
    pub(crate) fn new(gpu: &Arc<Gpu>) -> Result<Self> {
        Ok(Self {
            state: Mutex::default(),
            distribution: Distribution { resident_threads: resident_threads(gpu)? },
            timeline: Timeline::new(gpu)?,
            gpu: Arc::clone(gpu),
        })
    }

    /// Returns the number of the last submission.
    pub(crate) fn last(&self) -> u64 {
        lock(&self.state).last
    }

    /// Submits steps and returns the submission's number.
    pub(crate) fn submit(&self, tables: Tables<'_>, steps: &[Step], timed: bool) -> Result<u64> {
        let current = self.gpu.current()?;
        let state = &mut *lock(&self.state);
        let timer = timed.then(Timer::default);
        let (has_issued, announced, last) = (false, false, None);
        let mut run = Run { queue: self, tables, state, timer, has_issued, announced, last };
        let issued = run.segments(steps);
        let Run { has_issued, timer, .. } = run;
        let number = self.close(current, state, has_issued, issued)?;
        if let Some(timer) = timer {
            state.timers.insert(number, timer);
        }
        Ok(number)
    }

    /// Submits steps and graphs, in order, and returns the submission's number.
    pub(crate) fn submit_all(
        &self,
        tables: Tables<'_>,
        recordings: &Slots<RecordingMark, Graph>,
        works: &[Work<'_>],
    ) -> Result<u64> {
        let current = self.gpu.current()?;
        let state = &mut *lock(&self.state);
        let (has_issued, announced) = (false, false);
        let mut run =
            Run { queue: self, tables, state, timer: None, has_issued, announced, last: None };
        let issued = works.iter().try_for_each(|work| run.work(recordings, work));
        let Run { has_issued, .. } = run;
        self.close(current, state, has_issued, issued)
    }

    /// Submits a graph and returns the submission's number.
    pub(crate) fn replay(&self, graph: &Graph) -> Result<u64> {
        let current = self.gpu.current()?;
        let state = &mut *lock(&self.state);
        if graph.polls {
            self.timeline.announce(state.last + 1)?;
        }
        let issued = graph.launch(&self.timeline.main);
        let has_issued = issued.is_ok();
        self.close(current, state, has_issued, issued)
    }

    /// Records steps as a graph.
    pub(crate) fn record(&self, tables: Tables<'_>, steps: &[Step]) -> Result<Graph> {
        let _current = self.gpu.current()?;
        // Not the scratch buffers of the queue: a submission may hold their lock for a while.
        let mut scratch = Scratch::default();
        let (gpu, polled) = (&self.gpu, self.timeline.polled);
        let mut encoder = Encoder { gpu, tables, polled, scratch: &mut scratch };
        graph::record(gpu, &self.timeline.main, &mut encoder, steps)
    }

    /// Ends a submission and returns its number. `issued` is the result of issuing its commands;
    /// `has_issued` says whether some were issued even if that failed.
    fn close(
        &self,
        current: Current<'_>,
        state: &mut State,
        has_issued: bool,
        issued: Result<()>,
    ) -> Result<u64> {
        let number = state.last + 1;
        let error = match issued {
            Err(error) if !has_issued => return Err(error),
            Err(error) => error,
            Ok(()) => match self.timeline.finish(number) {
                Ok(()) => {
                    state.last = number;
                    return Ok(number);
                }
                Err(error) => error,
            },
        };
        Err(self.partial_failure(current, state, error))
    }

    /// Handles a submission of which only a part was issued: waits for the issued part, because
    /// the core keeps nothing alive for failed work.
    fn partial_failure(
        &self,
        current: Current<'_>,
        state: &mut State,
        error: GpuError,
    ) -> GpuError {
        if matches!(error, GpuError::DeviceLost(_)) {
            return error;
        }
        let number = state.last + 1;
        let ended = self.timeline.finish(number).and_then(|()| {
            state.last = number;
            // A wait does not query the driver while a call is in progress, and `current` counts as
            // one.
            drop(current);
            self.timeline.wait(number, DRAIN_TIMEOUT)
        });
        match ended {
            Ok(true) => error,
            Ok(false) => {
                self.gpu.mark_hung(format!("{error}; the part that was issued did not finish"))
            }
            Err(lost @ GpuError::DeviceLost(_)) => lost,
            Err(second) => self.gpu.mark_hung(format!(
                "{error}; the end of the part that was issued could not be recorded: {second}"
            )),
        }
    }

    /// Waits until a submission is done; returns false on timeout.
    pub(crate) fn wait(&self, number: u64, timeout: Duration) -> Result<bool> {
        self.timeline.wait(number, timeout)
    }

    /// Cancels the submissions up to `number`. Returns the first cancelled one, or `number + 1` if
    /// all had finished; `None` if they do not end.
    pub(crate) fn cancel(&self, number: u64) -> Result<Option<u64>> {
        self.timeline.cancel(number)
    }

    /// Cancels all work that polls, without a call to the driver.
    pub(crate) fn stop_all(&self) {
        self.timeline.stop(u64::MAX);
    }

    /// Returns the device time of each dispatch of a timed submission that is done.
    pub(crate) fn timings(&self, number: u64) -> Result<Vec<Duration>> {
        let _current = self.gpu.current()?;
        if self.timeline.poll()? < number {
            let why = format!("submission {number} is not done");
            return Err(self.gpu.defect_error("timings", why));
        }
        let mut state = lock(&self.state);
        let Some(timer) = state.timers.take(number) else {
            return Err(self.gpu.defect_error("timings", no_times(number)));
        };
        drop(state);
        let durations = timer.durations();
        timer.recycle(&mut lock(&self.state).pool);
        durations
    }

    /// Frees the timer of a submission, done or not, whose times nothing will read.
    pub(crate) fn discard_timings(&self, number: u64) {
        let state = &mut *lock(&self.state);
        let done = state.timers.discard(number, self.timeline.last_seen());
        done.into_iter().for_each(|timer| timer.recycle(&mut state.pool));
    }
}

/// A submission that is being issued.
struct Run<'a> {
    queue: &'a Queue,
    tables: Tables<'a>,
    state: &'a mut State,
    timer: Option<Timer>,
    /// Whether anything was issued to the device.
    has_issued: bool,
    /// Whether the submission's number was written for kernels that poll.
    announced: bool,
    /// The last command of the main stream, if it is a launch that a PDL launch may follow.
    last: Option<&'a Dispatch>,
}

impl<'a> Run<'a> {
    /// Issues one work of a sequence.
    fn work(&mut self, recordings: &Slots<RecordingMark, Graph>, work: &Work<'a>) -> Result<()> {
        match *work {
            Work::Once(steps) => self.segments(steps),
            Work::Replay(id) => {
                let Some(graph) = recordings.get(id) else {
                    return Err(self.queue.gpu.defect_error("cuGraphLaunch", no_recording(id)));
                };
                if graph.polls {
                    self.announce()?;
                }
                self.last = None;
                self.has_issued = true;
                graph.launch(&self.queue.timeline.main)
            }
            Work::Sequence(works) => works.iter().try_for_each(|work| self.work(recordings, work)),
        }
    }

    /// Writes the submission's number for kernels that poll, once.
    fn announce(&mut self) -> Result<()> {
        if !self.announced {
            self.queue.timeline.announce(self.state.last + 1)?;
            self.announced = true;
            // The number was written by the main stream.
            self.last = None;
        }
        Ok(())
    }

    fn segments(&mut self, steps: &'a [Step]) -> Result<()> {
        overlap::segments(steps).try_for_each(|segment| self.segment(segment))
    }

    fn segment(&mut self, segment: &'a [Step]) -> Result<()> {
        let tables = self.tables;
        let mut dispatches = overlap::dispatches(segment);
        if !self.announced && dispatches.any(|dispatch| tables.polls(dispatch)) {
            self.announce()?;
        }
        match self.stream_count(segment) {
            1 => overlap::commands(segment).try_for_each(|command| self.issue_in_order(command)),
            count => self.distribute(segment, count),
        }
    }

    /// Issues a command to the main stream.
    fn issue_in_order(&mut self, command: &'a Command) -> Result<()> {
        let tables = self.tables;
        let dispatch = match command {
            Command::Dispatch(dispatch) if self.timer.is_none() => Some(dispatch),
            _ => None,
        };
        let pdl = dispatch.is_some_and(|it| tables.uses_pdl(it, self.last));
        self.last = dispatch;
        self.issue(command, 0, pdl)
    }

    /// Returns over how many streams to distribute a segment; timed work is not distributed.
    fn stream_count(&self, segment: &[Step]) -> usize {
        let Queue { distribution, timeline, .. } = self.queue;
        let is_busy = || timeline.poll().is_ok_and(|reached| reached < self.state.last);
        match self.timer {
            Some(_) => 1,
            None => distribution.stream_count(
                segment,
                |dispatch| self.tables.block_threads(dispatch),
                is_busy,
            ),
        }
    }

    /// Issues a segment to several streams, round-robin. They are joined even on errors.
    fn distribute(&mut self, segment: &[Step], count: usize) -> Result<()> {
        let Queue { gpu, timeline, .. } = self.queue;
        if self.state.side_streams.is_none() {
            self.state.side_streams = Some(SideStreams::new(gpu, MAX_STREAMS - 1)?);
        }
        self.last = None;
        self.side_streams().fork(&timeline.main, count - 1)?;
        let mut commands = overlap::commands(segment).enumerate();
        let issued = commands.try_for_each(|(n, command)| self.issue(command, n % count, false));
        let joined = self.side_streams().join(&timeline.main, count - 1);
        joined.map_err(|error| gpu.mark_hung(format!("streams could not be joined: {error}")))?;
        issued
    }

    fn side_streams(&self) -> &SideStreams {
        self.state.side_streams.as_ref().expect("side streams are created before their use")
    }

    /// Encodes a command and issues it to the stream with an index, or to the main stream if it
    /// needs that one.
    fn issue(&mut self, command: &Command, stream: usize, pdl: bool) -> Result<()> {
        let index = if self.tables.needs_main_stream(command) { 0 } else { stream };
        let Queue { gpu, timeline, .. } = self.queue;
        let State { side_streams, scratch, pool, .. } = &mut *self.state;
        let main = &timeline.main;
        let stream = side_streams.as_ref().map_or(main, |sides| sides.stream(main, index));
        let mut encoder = Encoder { gpu, tables: self.tables, polled: timeline.polled, scratch };
        let op = encoder.encode(command)?;
        let timer = self.timer.as_mut().filter(|_| matches!(command, Command::Dispatch(_)));
        self.has_issued = true;
        let Some(timer) = timer else { return stream.issue(op, pdl) };
        timer.record_event(gpu, stream, pool)?;
        stream.issue(op, false)?;
        timer.record_event(gpu, stream, pool)
    }
}

/// Returns the maximum number of threads that are resident on the device at once.
fn resident_threads(gpu: &Gpu) -> Result<u64> {
    let multiprocessors = gpu.attribute(attribute::MULTIPROCESSORS)?;
    let threads = gpu.attribute(attribute::THREADS_PER_MULTIPROCESSOR)?;
    Ok(u64::from(multiprocessors) * u64::from(threads))
}
