//! Device time of each dispatch of a submission, from events around it.

use std::sync::Arc;
use std::time::Duration;

use super::stream::{Event, Stream};
use crate::api::error::Result;
use crate::backend::cuda::device::Gpu;

/// Events that are not in use.
pub(crate) type Pool = Vec<Event>;

/// Most events that wait to be used again.
const POOLED: usize = 1024;

/// The beginning and the end of each dispatch of a submission, in turn.
#[derive(Default)]
pub(crate) struct Timer {
    events: Vec<Event>,
}

impl Timer {
    /// Notes where the stream is: at the beginning of a dispatch, or at its end.
    pub(crate) fn stamp(&mut self, gpu: &Arc<Gpu>, stream: &Stream, pool: &mut Pool) -> Result<()> {
        let event = match pool.pop() {
            Some(event) => event,
            None => Event::timed(gpu)?,
        };
        stream.record(&event)?;
        self.events.push(event);
        Ok(())
    }

    /// The time of each dispatch, of a submission that is done.
    pub(crate) fn durations(&self) -> Result<Vec<Duration>> {
        self.events.chunks_exact(2).map(|pair| pair[0].until(&pair[1])).collect()
    }

    /// Gives the events back.
    pub(crate) fn recycle(mut self, pool: &mut Pool) {
        self.events.truncate(POOLED.saturating_sub(pool.len()));
        pool.append(&mut self.events);
    }
}
