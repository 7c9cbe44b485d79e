//! Streams, which do one thing after the other, and events, by which they wait for each other.
//!
//! All calls but the drops want the context to be current.

use std::sync::Arc;
use std::time::Duration;

use crate::api::error::Result;
use crate::backend::cuda::device::Gpu;
use crate::backend::cuda::ffi::types::{self, Code, DevicePtr};

/// A stream of its own: it waits for no other unless told to.
pub(crate) struct Stream {
    pub(crate) raw: types::Stream,
    pub(super) gpu: Arc<Gpu>,
}

impl Stream {
    /// An empty stream.
    pub(crate) fn new(gpu: &Arc<Gpu>) -> Result<Self> {
        let mut raw = types::Stream::NULL;
        // SAFETY: the driver writes a handle.
        let code = unsafe { (gpu.api.stream_create)(&raw mut raw, types::STREAM_NON_BLOCKING) };
        gpu.check("cuStreamCreate", code)?;
        Ok(Self { raw, gpu: Arc::clone(gpu) })
    }

    /// Writes a 32-bit pattern `count` times.
    pub(crate) fn fill(&self, dst: DevicePtr, pattern: u32, count: usize) -> Result<()> {
        // SAFETY: whoever made the command checked that the range lies in a live block.
        let code = unsafe { (self.gpu.api.memset_d32_async)(dst, pattern, count, self.raw) };
        self.gpu.check("cuMemsetD32Async", code)
    }

    pub(super) fn copy(&self, src: DevicePtr, dst: DevicePtr, size: usize) -> Result<()> {
        // SAFETY: whoever made the command checked that both ranges lie in live blocks. Host
        // memory among them is pinned, so that nothing is left of the call when it returns.
        let code = unsafe { (self.gpu.api.memcpy_async)(dst, src, size, self.raw) };
        self.gpu.check("cuMemcpyAsync", code)
    }

    /// Writes a number, after all that is before it is done and to be seen.
    ///
    /// # Safety
    /// The address is that of 8 bytes that stay alive until the stream has written them.
    pub(crate) unsafe fn write(&self, address: DevicePtr, value: u64) -> Result<()> {
        // SAFETY: the caller's.
        let code = unsafe { (self.gpu.api.stream_write_value64)(self.raw, address, value, 0) };
        self.gpu.check("cuStreamWriteValue64", code)
    }

    /// Starts a graph.
    ///
    /// # Safety
    /// The graph is alive, and so is what it uses, until it is done.
    pub(crate) unsafe fn launch(&self, graph: types::GraphExec) -> Result<()> {
        // SAFETY: the caller's.
        let code = unsafe { (self.gpu.api.graph_launch)(graph, self.raw) };
        self.gpu.check("cuGraphLaunch", code)
    }

    /// An error if something went wrong on the device.
    pub(crate) fn check_health(&self) -> Result<()> {
        // SAFETY: the stream is alive.
        match unsafe { (self.gpu.api.stream_query)(self.raw) } {
            Code::NOT_READY => Ok(()),
            code => self.gpu.check("cuStreamQuery", code),
        }
    }

    /// Has the event happen when all is done that is in the stream so far.
    pub(crate) fn record(&self, event: &Event) -> Result<()> {
        // SAFETY: stream and event are alive, and of one context.
        let code = unsafe { (self.gpu.api.event_record)(event.raw, self.raw) };
        self.gpu.check("cuEventRecord", code)
    }

    /// Goes on only after the event as it was recorded last.
    pub(crate) fn wait_for(&self, event: &Event) -> Result<()> {
        // SAFETY: as above.
        let code = unsafe { (self.gpu.api.stream_wait_event)(self.raw, event.raw, 0) };
        self.gpu.check("cuStreamWaitEvent", code)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let Some(_current) = self.gpu.current_to_free() else { return };
        // SAFETY: nobody uses it any more; what is in it is done.
        let code = unsafe { (self.gpu.api.stream_destroy)(self.raw) };
        self.gpu.note("cuStreamDestroy", code);
    }
}

/// Something that happens in a stream.
pub(crate) struct Event {
    raw: types::Event,
    gpu: Arc<Gpu>,
}

impl Event {
    /// An event that streams wait for.
    pub(crate) fn new(gpu: &Arc<Gpu>) -> Result<Self> {
        Self::with(gpu, types::EVENT_WITHOUT_TIMING)
    }

    /// An event that knows when it happened.
    pub(crate) fn timed(gpu: &Arc<Gpu>) -> Result<Self> {
        Self::with(gpu, 0)
    }

    fn with(gpu: &Arc<Gpu>, flags: u32) -> Result<Self> {
        let mut raw = types::Event::NULL;
        // SAFETY: the driver writes a handle.
        let code = unsafe { (gpu.api.event_create)(&raw mut raw, flags) };
        gpu.check("cuEventCreate", code)?;
        Ok(Self { raw, gpu: Arc::clone(gpu) })
    }

    /// Whether it has happened.
    pub(crate) fn has_happened(&self) -> Result<bool> {
        // SAFETY: the event is alive.
        match unsafe { (self.gpu.api.event_query)(self.raw) } {
            Code::SUCCESS => Ok(true),
            Code::NOT_READY => Ok(false),
            code => Err(self.gpu.failed("cuEventQuery", code)),
        }
    }

    /// The time from this event to a later one; both are timed and have happened.
    pub(crate) fn until(&self, later: &Self) -> Result<Duration> {
        let mut milliseconds = 0f32;
        // SAFETY: the events are alive; the driver writes a number.
        let code = unsafe {
            (self.gpu.api.event_elapsed_time)(&raw mut milliseconds, self.raw, later.raw)
        };
        self.gpu.check("cuEventElapsedTime", code)?;
        Ok(Duration::try_from_secs_f64(f64::from(milliseconds) / 1e3).unwrap_or_default())
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let Some(_current) = self.gpu.current_to_free() else { return };
        // SAFETY: nobody uses it any more.
        let code = unsafe { (self.gpu.api.event_destroy)(self.raw) };
        self.gpu.note("cuEventDestroy", code);
    }
}

/// Streams at the side of the main one, and what forks them off it and joins them to it.
pub(crate) struct Sides {
    /// With the event of each, recorded when it is done.
    streams: Vec<(Stream, Event)>,
    forked: Event,
}

impl Sides {
    /// So many.
    pub(crate) fn new(gpu: &Arc<Gpu>, count: usize) -> Result<Self> {
        let one = |_| Ok((Stream::new(gpu)?, Event::new(gpu)?));
        let streams = (0..count).map(one).collect::<Result<_>>()?;
        Ok(Self { streams, forked: Event::new(gpu)? })
    }

    /// Has the first `count` go on from where the main stream is.
    pub(crate) fn fork(&self, main: &Stream, count: usize) -> Result<()> {
        main.record(&self.forked)?;
        self.streams[..count].iter().try_for_each(|(side, _)| side.wait_for(&self.forked))
    }

    /// Has the main stream go on after the first `count`.
    pub(crate) fn join(&self, main: &Stream, count: usize) -> Result<()> {
        self.streams[..count].iter().try_for_each(|(side, done)| {
            side.record(done)?;
            main.wait_for(done)
        })
    }

    /// The stream of a lane; 0 is the main one.
    pub(crate) fn lane<'s>(&'s self, main: &'s Stream, lane: usize) -> &'s Stream {
        match lane.checked_sub(1) {
            None => main,
            Some(side) => &self.streams[side].0,
        }
    }
}
