//! Work that is captured from a stream instead of done.

use std::sync::Arc;

use super::stream::Stream;
use crate::api::error::Result;
use crate::backend::cuda::device::Gpu;
use crate::backend::cuda::ffi::types;

/// What was captured from a stream.
pub(crate) struct Captured<'a> {
    pub(super) raw: types::Graph,
    gpu: &'a Gpu,
}

/// Has `issue` put work into a stream of its own, and gives that work without doing it. The context
/// is current.
pub(crate) fn captured<'a>(
    gpu: &'a Arc<Gpu>,
    issue: impl FnOnce(types::Stream) -> Result<()>,
) -> Result<Captured<'a>> {
    /// `CU_STREAM_CAPTURE_MODE_RELAXED`: libraries load code at their first call, also now.
    const RELAXED: u32 = 2;
    let stream = Stream::new(gpu)?;
    // SAFETY: the stream is alive, and nobody else has it.
    let code = unsafe { (gpu.api.stream_begin_capture)(stream.raw, RELAXED) };
    gpu.check("cuStreamBeginCapture", code)?;
    let issued = issue(stream.raw);
    let mut captured = Captured { raw: types::Graph::NULL, gpu };
    // SAFETY: as above; the driver writes a handle, also a null one.
    let code = unsafe { (gpu.api.stream_end_capture)(stream.raw, &raw mut captured.raw) };
    issued.and_then(|()| gpu.check("cuStreamEndCapture", code))?;
    Ok(captured)
}

impl Drop for Captured<'_> {
    fn drop(&mut self) {
        if self.raw.is_null() || self.gpu.is_given_up() {
            return;
        }
        // SAFETY: whoever took it over made a copy.
        let code = unsafe { (self.gpu.api.graph_destroy)(self.raw) };
        self.gpu.note("cuGraphDestroy", code);
    }
}
