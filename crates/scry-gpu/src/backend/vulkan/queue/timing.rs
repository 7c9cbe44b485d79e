//! Device time of each dispatch of a submission, from timestamp queries.

use std::sync::Arc;
use std::time::Duration;

use ash::vk;

use crate::api::error::Result;
use crate::backend::vulkan::device::Gpu;
use crate::backend::vulkan::probe::Timestamps;

/// Two timestamp queries for each dispatch of a submission.
pub(crate) struct Timer {
    pool: vk::QueryPool,
    dispatches: u32,
    gpu: Arc<Gpu>,
}

impl Timer {
    /// Creates a timer for `dispatches` dispatches; `None` if the device has no timestamps, or
    /// there are no dispatches.
    pub(crate) fn new(gpu: &Arc<Gpu>, dispatches: usize) -> Result<Option<Self>> {
        if gpu.timestamps.valid_bits == 0 || dispatches == 0 {
            return Ok(None);
        }
        let refused = || gpu.refused("vkCreateQueryPool", format!("{dispatches} dispatches"));
        let dispatches = u32::try_from(dispatches).map_err(|_| refused())?;
        let info = vk::QueryPoolCreateInfo::default()
            .query_type(vk::QueryType::TIMESTAMP)
            .query_count(dispatches.checked_mul(2).ok_or_else(refused)?);
        // SAFETY: the queue family has timestamps.
        let pool = unsafe { gpu.raw.create_query_pool(&info, None) }
            .map_err(|code| gpu.failed("vkCreateQueryPool", code))?;
        Ok(Some(Self { pool, dispatches, gpu: Arc::clone(gpu) }))
    }

    /// Encodes the reset, which must be the first command.
    pub(crate) fn reset(&self, commands: vk::CommandBuffer) {
        // SAFETY: the command buffer is being recorded, and the pool is new.
        unsafe {
            let count = self.dispatches * 2;
            self.gpu.raw.cmd_reset_query_pool(commands, self.pool, 0, count);
        }
    }

    /// Encodes timestamp number `index`: twice the dispatch's number, plus one at its end. It is
    /// written when all earlier commands have finished.
    pub(crate) fn stamp(&self, commands: vk::CommandBuffer, index: u32) {
        debug_assert!(index < self.dispatches * 2);
        let stage = vk::PipelineStageFlags::BOTTOM_OF_PIPE;
        // SAFETY: the command buffer is being recorded; the encoder counts dispatches in the same
        // way as the creator of the timer.
        unsafe {
            self.gpu.raw.cmd_write_timestamp(commands, stage, self.pool, index);
        }
    }

    /// Returns the duration of each dispatch of a finished submission.
    pub(crate) fn durations(&self) -> Result<Vec<Duration>> {
        let mut stamps = vec![0u64; self.dispatches as usize * 2];
        // SAFETY: the pool has as many queries as the array has elements.
        let got = unsafe {
            let flags = vk::QueryResultFlags::TYPE_64;
            self.gpu.raw.get_query_pool_results(self.pool, 0, &mut stamps, flags)
        };
        got.map_err(|code| self.gpu.failed("vkGetQueryPoolResults", code))?;
        let pairs = stamps.chunks_exact(2);
        Ok(pairs.map(|pair| self.gpu.timestamps.between(pair[0], pair[1])).collect())
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        if self.gpu.is_abandoned() {
            return;
        }
        // SAFETY: timers are dropped after their submission has finished.
        unsafe { self.gpu.raw.destroy_query_pool(self.pool, None) };
    }
}

impl Timestamps {
    /// Returns the time between two timestamps; the counter may have wrapped once.
    fn between(self, start: u64, end: u64) -> Duration {
        let mask = u64::MAX.checked_shr(64 - self.valid_bits.clamp(1, 64)).unwrap_or(0);
        let ticks = end.wrapping_sub(start) & mask;
        Duration::from_nanos((ticks as f64 * f64::from(self.period)).round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_become_nanoseconds() {
        let stamps = Timestamps { valid_bits: 64, period: 2.5 };
        assert_eq!(stamps.between(100, 140), Duration::from_nanos(100));
    }

    #[test]
    fn a_wrapped_counter_still_counts_forward() {
        let stamps = Timestamps { valid_bits: 36, period: 1.0 };
        let before = (1 << 36) - 10;
        assert_eq!(stamps.between(before, 5), Duration::from_nanos(15));
        let full = Timestamps { valid_bits: 64, period: 1.0 };
        assert_eq!(full.between(u64::MAX, 4), Duration::from_nanos(5));
    }
}
