//! Streams and the events that order them.
//!
//! All functions except the drops require the context to be current.

use std::sync::Arc;
use std::time::Duration;

use crate::api::error::Result;
use crate::backend::cuda::device::Gpu;
use crate::backend::cuda::ffi::types::{self, Code, DevicePtr};

/// A non-blocking stream.
pub(crate) struct Stream {
    pub(crate) raw: types::Stream,
    pub(super) gpu: Arc<Gpu>,
}

impl Stream {
    /// Creates a stream.
    pub(crate) fn new(gpu: &Arc<Gpu>) -> Result<Self> {
        let mut raw = types::Stream::NULL;
        // SAFETY: the driver writes a handle.
        let code = unsafe { (gpu.api.stream_create)(&raw mut raw, types::STREAM_NON_BLOCKING) };
        gpu.check("cuStreamCreate", code)?;
        Ok(Self { raw, gpu: Arc::clone(gpu) })
    }

    /// Writes a 32-bit pattern `count` times.
    pub(crate) fn fill(&self, dst: DevicePtr, pattern: u32, count: usize) -> Result<()> {
        // SAFETY: the encoder checked that the range is within a live allocation.
        let code = unsafe { (self.gpu.api.memset_d32_async)(dst, pattern, count, self.raw) };
        self.gpu.check("cuMemsetD32Async", code)
    }

    pub(super) fn copy(&self, src: DevicePtr, dst: DevicePtr, size: usize) -> Result<()> {
        // SAFETY: the encoder checked that both ranges are within live allocations. Host memory
        // among them is pinned, so that the copy is asynchronous.
        let code = unsafe { (self.gpu.api.memcpy_async)(dst, src, size, self.raw) };
        self.gpu.check("cuMemcpyAsync", code)
    }

    /// Writes a 64-bit value once all earlier work is complete and visible.
    ///
    /// # Safety
    ///
    /// The address is that of 8 bytes that stay alive until the stream has written them.
    pub(crate) unsafe fn write(&self, address: DevicePtr, value: u64) -> Result<()> {
        // SAFETY: the caller guarantees it.
        let code = unsafe { (self.gpu.api.stream_write_value64)(self.raw, address, value, 0) };
        self.gpu.check("cuStreamWriteValue64", code)
    }

    /// Launches a graph.
    ///
    /// # Safety
    ///
    /// The graph and the memory that it uses stay alive until it is done.
    pub(crate) unsafe fn launch(&self, graph: types::GraphExec) -> Result<()> {
        // SAFETY: the caller guarantees it.
        let code = unsafe { (self.gpu.api.graph_launch)(graph, self.raw) };
        self.gpu.check("cuGraphLaunch", code)
    }

    /// Returns an error if the driver reports one for the stream: that work on the device has
    /// failed.
    pub(crate) fn check_health(&self) -> Result<()> {
        // SAFETY: the stream is alive.
        match unsafe { (self.gpu.api.stream_query)(self.raw) } {
            Code::NOT_READY => Ok(()),
            code => self.gpu.check("cuStreamQuery", code),
        }
    }

    /// Records the event: it completes when all work so far in the stream is done.
    pub(crate) fn record(&self, event: &Event) -> Result<()> {
        // SAFETY: stream and event are alive, and of one context.
        let code = unsafe { (self.gpu.api.event_record)(event.raw, self.raw) };
        self.gpu.check("cuEventRecord", code)
    }

    /// Makes later work wait for the event as it was last recorded.
    pub(crate) fn wait_for(&self, event: &Event) -> Result<()> {
        // SAFETY: as above.
        let code = unsafe { (self.gpu.api.stream_wait_event)(self.raw, event.raw, 0) };
        self.gpu.check("cuStreamWaitEvent", code)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let Some(_current) = self.gpu.current_to_free() else { return };
        // SAFETY: nothing uses the stream any more, and its work is done.
        let code = unsafe { (self.gpu.api.stream_destroy)(self.raw) };
        self.gpu.log_failed_free("cuStreamDestroy", code);
    }
}

/// A CUDA event.
pub(crate) struct Event {
    raw: types::Event,
    gpu: Arc<Gpu>,
}

impl Event {
    /// Creates an event for ordering streams.
    pub(crate) fn new(gpu: &Arc<Gpu>) -> Result<Self> {
        Self::with_flags(gpu, types::EVENT_WITHOUT_TIMING)
    }

    /// Creates an event that records the time of its completion.
    pub(crate) fn timed(gpu: &Arc<Gpu>) -> Result<Self> {
        Self::with_flags(gpu, 0)
    }

    fn with_flags(gpu: &Arc<Gpu>, flags: u32) -> Result<Self> {
        let mut raw = types::Event::NULL;
        // SAFETY: the driver writes a handle.
        let code = unsafe { (gpu.api.event_create)(&raw mut raw, flags) };
        gpu.check("cuEventCreate", code)?;
        Ok(Self { raw, gpu: Arc::clone(gpu) })
    }

    /// Returns whether the event is complete.
    pub(crate) fn is_complete(&self) -> Result<bool> {
        // SAFETY: the event is alive.
        match unsafe { (self.gpu.api.event_query)(self.raw) } {
            Code::SUCCESS => Ok(true),
            Code::NOT_READY => Ok(false),
            code => Err(self.gpu.failed("cuEventQuery", code)),
        }
    }

    /// Returns the time from this event to a later one; both are timed and complete.
    pub(crate) fn elapsed_until(&self, later: &Self) -> Result<Duration> {
        let mut milliseconds = 0f32;
        // SAFETY: the events are alive; the driver writes a float.
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
        // SAFETY: nothing uses the event any more; the driver keeps it until it has completed.
        let code = unsafe { (self.gpu.api.event_destroy)(self.raw) };
        self.gpu.log_failed_free("cuEventDestroy", code);
    }
}

/// Side streams, with the events that fork them off the main stream and join them to it.
pub(crate) struct SideStreams {
    /// The streams, each with the event that its join records.
    streams: Vec<(Stream, Event)>,
    /// The event in the main stream that a fork records.
    fork_event: Event,
}

impl SideStreams {
    /// Creates `count` side streams.
    pub(crate) fn new(gpu: &Arc<Gpu>, count: usize) -> Result<Self> {
        let create = |_| Ok((Stream::new(gpu)?, Event::new(gpu)?));
        let streams = (0..count).map(create).collect::<Result<_>>()?;
        Ok(Self { streams, fork_event: Event::new(gpu)? })
    }

    /// Makes the first `count` side streams wait for the work so far in the main stream.
    pub(crate) fn fork(&self, main: &Stream, count: usize) -> Result<()> {
        main.record(&self.fork_event)?;
        self.streams[..count].iter().try_for_each(|(side, _)| side.wait_for(&self.fork_event))
    }

    /// Makes the main stream wait for the work so far in the first `count` side streams.
    pub(crate) fn join(&self, main: &Stream, count: usize) -> Result<()> {
        self.streams[..count].iter().try_for_each(|(side, done)| {
            side.record(done)?;
            main.wait_for(done)
        })
    }

    /// Returns a stream by index; 0 is the main one.
    pub(crate) fn stream<'s>(&'s self, main: &'s Stream, index: usize) -> &'s Stream {
        match index.checked_sub(1) {
            None => main,
            Some(side) => &self.streams[side].0,
        }
    }
}
