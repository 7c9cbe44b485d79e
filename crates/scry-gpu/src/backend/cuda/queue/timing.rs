//! Device time of each dispatch of a submission, from events around it.

use std::sync::Arc;
use std::time::Duration;

use super::stream::{Event, Stream};
use crate::api::error::Result;
use crate::backend::cuda::device::Gpu;

/// Events that no timer uses.
pub(crate) type EventPool = Vec<Event>;

/// Maximum number of events in the pool.
const MAX_FREE_EVENTS: usize = 1024;

/// The start and end events of each dispatch of a submission, alternating.
#[derive(Default)]
pub(crate) struct Timer {
    events: Vec<Event>,
}

impl Timer {
    /// Records the next event: called before and after each dispatch.
    pub(crate) fn record_event(
        &mut self,
        gpu: &Arc<Gpu>,
        stream: &Stream,
        pool: &mut EventPool,
    ) -> Result<()> {
        let event = match pool.pop() {
            Some(event) => event,
            None => Event::timed(gpu)?,
        };
        stream.record(&event)?;
        self.events.push(event);
        Ok(())
    }

    /// Returns the time of each dispatch; the submission must be done.
    pub(crate) fn durations(&self) -> Result<Vec<Duration>> {
        self.events.chunks_exact(2).map(|pair| pair[0].elapsed_until(&pair[1])).collect()
    }

    /// Returns the events to the pool, up to its maximum size.
    pub(crate) fn recycle(mut self, pool: &mut EventPool) {
        self.events.truncate(MAX_FREE_EVENTS.saturating_sub(pool.len()));
        pool.append(&mut self.events);
    }
}
