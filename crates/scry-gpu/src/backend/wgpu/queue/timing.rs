//! Device time of each dispatch of a submission, from timestamp queries.

use std::sync::Arc;
use std::time::Duration;

use wgpu::{BufferUsages, ComputePassTimestampWrites, QuerySet, QuerySetDescriptor, QueryType};

use super::encode::Readback;
use crate::api::error::Result;
use crate::backend::wgpu::device::Gpu;
use crate::backend::wgpu::memory::{self, Block};
use crate::core::driver::MemoryKind;

/// Bytes of a timestamp.
const TIMESTAMP: u64 = 8;

/// Timestamps before and after each dispatch of a submission.
pub(super) struct Timer {
    /// Each for as many queries as WebGPU permits, except for the last.
    sets: Vec<QuerySet>,
    /// The timestamps, once the submission is done.
    results: Arc<Block>,
    queries: u64,
    /// Nanoseconds of a tick.
    period: f32,
}

impl Timer {
    /// Creates a timer for a number of dispatches; `None` if that is 0, or the device has no
    /// timestamps.
    pub(super) fn new(gpu: &Arc<Gpu>, dispatches: usize) -> Result<Option<Self>> {
        if !gpu.has_timestamps || dispatches == 0 {
            return Ok(None);
        }
        let queries = 2 * dispatches as u64;
        let most = u64::from(wgpu::QUERY_SET_MAX_QUERIES);
        let sets = (0..queries).step_by(most as usize).map(|first| {
            let count = (queries - first).min(most) as u32;
            let descriptor = QuerySetDescriptor { label: None, ty: QueryType::Timestamp, count };
            gpu.call("Device::create_query_set", || gpu.device.create_query_set(&descriptor))
        });
        Ok(Some(Self {
            sets: sets.collect::<Result<_>>()?,
            results: Arc::new(Block::new(gpu, MemoryKind::Readback, queries * TIMESTAMP, "times")?),
            queries,
            period: gpu.queue.get_timestamp_period(),
        }))
    }

    /// Returns the queries of the pass that contains only the dispatch with this index.
    pub(super) fn writes(&self, dispatch: u32) -> ComputePassTimestampWrites<'_> {
        let (set, query) = (
            2 * dispatch / wgpu::QUERY_SET_MAX_QUERIES,
            2 * dispatch % wgpu::QUERY_SET_MAX_QUERIES,
        );
        ComputePassTimestampWrites {
            query_set: &self.sets[set as usize],
            beginning_of_pass_write_index: Some(query),
            end_of_pass_write_index: Some(query + 1),
        }
    }

    /// Encodes the conversion of the queries to numbers in a buffer; returns the copy of them to
    /// the host.
    pub(super) fn resolve(
        &self,
        gpu: &Gpu,
        encoder: &mut wgpu::CommandEncoder,
    ) -> Result<Readback> {
        let size = self.queries * TIMESTAMP;
        let usage = BufferUsages::QUERY_RESOLVE | BufferUsages::COPY_SRC;
        let buffer = memory::buffer(gpu, usage, size, "timestamps")?;
        for (set, offset) in self.sets.iter().zip((0..).step_by(
            // A multiple of the alignment that WebGPU requires.
            (u64::from(wgpu::QUERY_SET_MAX_QUERIES) * TIMESTAMP) as usize,
        )) {
            encoder.resolve_query_set(set, 0..set.count(), &buffer, offset);
        }
        let (bytes, dst) = (0..size as usize, (self.results.clone(), 0));
        Ok(Readback { src: (buffer, 0), size, bytes, dst })
    }

    /// Returns the duration of each dispatch of a finished submission.
    pub(super) fn durations(&self, gpu: &Gpu) -> Result<Vec<Duration>> {
        let mut bytes = vec![0; (self.queries * TIMESTAMP) as usize];
        self.results.read(gpu, 0, &mut bytes)?;
        let (ticks, _) = bytes.as_chunks();
        let ticks: Vec<_> = ticks.iter().map(|tick| u64::from_le_bytes(*tick)).collect();
        let between = |pair: &[u64]| {
            let ticks = pair[1].saturating_sub(pair[0]);
            Duration::from_nanos((ticks as f64 * f64::from(self.period)).round() as u64)
        };
        Ok(ticks.chunks_exact(2).map(between).collect())
    }
}
