//! Stream capture: work issued to a stream is recorded instead of executed.

use std::sync::Arc;

use super::stream::Stream;
use crate::api::error::Result;
use crate::backend::cuda::device::Gpu;
use crate::backend::cuda::ffi::types;

/// A graph captured from a stream.
pub(crate) struct CapturedGraph<'a> {
    pub(super) raw: types::Graph,
    gpu: &'a Gpu,
}

/// Captures the work that `issue` issues to a new stream. The context must be current.
pub(crate) fn capture<'a>(
    gpu: &'a Arc<Gpu>,
    issue: impl FnOnce(types::Stream) -> Result<()>,
) -> Result<CapturedGraph<'a>> {
    /// `CU_STREAM_CAPTURE_MODE_RELAXED`: a library may load code at its first call, even during
    /// capture.
    const RELAXED: u32 = 2;
    let stream = Stream::new(gpu)?;
    // SAFETY: the stream is alive, and nothing else uses it.
    let code = unsafe { (gpu.api.stream_begin_capture)(stream.raw, RELAXED) };
    gpu.check("cuStreamBeginCapture", code)?;
    let issued = issue(stream.raw);
    let mut captured = CapturedGraph { raw: types::Graph::NULL, gpu };
    // SAFETY: as above; the driver writes a handle, or null if the capture failed.
    let code = unsafe { (gpu.api.stream_end_capture)(stream.raw, &raw mut captured.raw) };
    issued.and_then(|()| gpu.check("cuStreamEndCapture", code))?;
    Ok(captured)
}

impl Drop for CapturedGraph<'_> {
    fn drop(&mut self) {
        if self.raw.is_null() || self.gpu.is_abandoned() {
            return;
        }
        // SAFETY: nothing else uses the graph: a graph that it was added to has a copy.
        let code = unsafe { (self.gpu.api.graph_destroy)(self.raw) };
        self.gpu.log_failed_free("cuGraphDestroy", code);
    }
}
