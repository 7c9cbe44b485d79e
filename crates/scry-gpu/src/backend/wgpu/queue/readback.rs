//! Results: buffers that the host maps once a submission is done, and that are reused.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use wgpu::{Buffer, BufferUsages, MapMode};

use super::timeline::Shared;
use crate::api::error::Result;
use crate::backend::shared::locks::lock;
use crate::backend::wgpu::device::Gpu;
use crate::backend::wgpu::memory::{self, Block};

/// Size of the smallest mapped buffer.
const MIN_SIZE: u64 = 4 << 10;

/// Bytes of unused buffers that are kept.
const MAX_KEPT: u64 = 64 << 20;

/// Unused mappable buffers.
#[derive(Default)]
pub(super) struct Pool(Mutex<Vec<Buffer>>);

impl Pool {
    /// Returns an unused buffer of at least `size` bytes, and at most four times as many.
    pub(super) fn take(&self, gpu: &Gpu, size: u64) -> Result<Buffer> {
        let mut unused = lock(&self.0);
        let fits = |buffer: &Buffer| (size..=4 * size.max(MIN_SIZE)).contains(&buffer.size());
        if let Some(index) = unused.iter().position(fits) {
            return Ok(unused.swap_remove(index));
        }
        drop(unused);
        let usage = BufferUsages::MAP_READ | BufferUsages::COPY_DST;
        memory::buffer(gpu, usage, size.max(MIN_SIZE), "results")
    }

    fn put(&self, buffer: Buffer) {
        let mut unused = lock(&self.0);
        let kept: u64 = unused.iter().map(Buffer::size).sum();
        if kept + buffer.size() <= MAX_KEPT {
            unused.push(buffer);
        }
    }
}

/// A mappable buffer that a submission copies results to.
pub(super) struct Mapping {
    pub(super) buffer: Buffer,
    /// Bytes that the submission copies.
    pub(super) size: u64,
    /// The results among them.
    pub(super) bytes: Range<usize>,
    /// Destination, and its first byte.
    pub(super) dst: (Arc<Block>, u64),
}

impl Mapping {
    /// Maps the buffer once the submission is done, and copies the results to their destination.
    pub(super) fn start(self, gpu: &Gpu, pool: &Arc<Pool>, timeline: &Arc<Shared>, number: u64) {
        let Self { buffer, size, bytes, dst } = self;
        let (pool, timeline, lost) = (pool.clone(), timeline.clone(), gpu.loss());
        let mapped = buffer.clone();
        buffer.map_async(MapMode::Read, ..size, move |result| {
            let view = match result {
                Ok(()) => mapped.get_mapped_range(..size).map_err(|error| error.to_string()),
                Err(error) => Err(error.to_string()),
            };
            match view {
                Ok(view) => {
                    if let Some(results) = view.get(bytes) {
                        dst.0.store(dst.1, results);
                    }
                    drop(view);
                    mapped.unmap();
                    pool.put(mapped);
                }
                Err(error) => {
                    // An earlier reason is kept.
                    let _ = lost.set(format!("the results of a submission are lost: {error}"));
                }
            }
            timeline.finish_part(number);
        });
    }
}
