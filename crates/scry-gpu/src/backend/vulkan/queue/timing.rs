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
    dispatch_count: u32,
    gpu: Arc<Gpu>,
}

impl Timer {
    /// Creates a timer for `dispatch_count` dispatches; `None` if that is 0, or the queue does not
    /// support timestamps.
    pub(crate) fn new(gpu: &Arc<Gpu>, dispatch_count: usize) -> Result<Option<Self>> {
        if gpu.timestamps.valid_bits == 0 || dispatch_count == 0 {
            return Ok(None);
        }
        let too_many =
            || gpu.defect_error("vkCreateQueryPool", format!("{dispatch_count} dispatches"));
        let dispatch_count = u32::try_from(dispatch_count).map_err(|_| too_many())?;
        let info = vk::QueryPoolCreateInfo::default()
            .query_type(vk::QueryType::TIMESTAMP)
            .query_count(dispatch_count.checked_mul(2).ok_or_else(too_many)?);
        // SAFETY: the queue family supports timestamps.
        let pool = unsafe { gpu.raw.create_query_pool(&info, None) }
            .map_err(|code| gpu.failed("vkCreateQueryPool", code))?;
        Ok(Some(Self { pool, dispatch_count, gpu: Arc::clone(gpu) }))
    }

    /// Records the reset of all queries, which must be the first command.
    pub(crate) fn reset(&self, commands: vk::CommandBuffer) {
        // SAFETY: the command buffer is being recorded, and no query of the new pool is in use.
        unsafe {
            let count = self.dispatch_count * 2;
            self.gpu.raw.cmd_reset_query_pool(commands, self.pool, 0, count);
        }
    }

    /// Records a timestamp into query `index`: `2 * n` before dispatch `n`, and `2 * n + 1` after
    /// it. The device writes the time at which all earlier commands have finished.
    pub(crate) fn write_timestamp(&self, commands: vk::CommandBuffer, index: u32) {
        debug_assert!(index < self.dispatch_count * 2);
        let stage = vk::PipelineStageFlags::BOTTOM_OF_PIPE;
        // SAFETY: the command buffer is being recorded, and `index` is a query of the pool: the
        // timer was created for the number of dispatches that the encoder encodes.
        unsafe {
            self.gpu.raw.cmd_write_timestamp(commands, stage, self.pool, index);
        }
    }

    /// Returns the duration of each dispatch of a finished submission.
    pub(crate) fn durations(&self) -> Result<Vec<Duration>> {
        let mut ticks = vec![0u64; self.dispatch_count as usize * 2];
        // SAFETY: the pool has as many queries as the array has elements.
        let result = unsafe {
            let flags = vk::QueryResultFlags::TYPE_64;
            self.gpu.raw.get_query_pool_results(self.pool, 0, &mut ticks, flags)
        };
        result.map_err(|code| self.gpu.failed("vkGetQueryPoolResults", code))?;
        let pairs = ticks.chunks_exact(2);
        Ok(pairs.map(|pair| self.gpu.timestamps.between(pair[0], pair[1])).collect())
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // The objects of an abandoned device are leaked, because it may still use them.
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
        let timestamps = Timestamps { valid_bits: 64, period: 2.5 };
        assert_eq!(timestamps.between(100, 140), Duration::from_nanos(100));
    }

    #[test]
    fn counter_wraparound_is_handled() {
        let timestamps = Timestamps { valid_bits: 36, period: 1.0 };
        let before = (1 << 36) - 10;
        assert_eq!(timestamps.between(before, 5), Duration::from_nanos(15));
        let full = Timestamps { valid_bits: 64, period: 1.0 };
        assert_eq!(full.between(u64::MAX, 4), Duration::from_nanos(5));
    }
}
