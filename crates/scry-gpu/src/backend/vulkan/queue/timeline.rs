//! The timeline semaphore: polling and waiting.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ash::vk;

use crate::api::error::Result;
use crate::api::info::DeviceKind;
use crate::backend::shared::poll::Wait;
use crate::backend::vulkan::device::Gpu;
use crate::lifecycle::exit_guard;

/// Maximum duration of a wait in one driver call; between the calls the wait checks whether the
/// device was abandoned.
const MAX_WAIT: Duration = Duration::from_millis(100);

/// A timeline semaphore, whose value is the number of the last finished submission.
pub(crate) struct Timeline {
    pub(crate) semaphore: vk::Semaphore,
    /// The highest value that was queried so far.
    reached: AtomicU64,
    /// Whether the device is the CPU: polling would slow down the kernel that is waited for.
    is_software: bool,
    gpu: Arc<Gpu>,
}

impl Timeline {
    /// Creates a timeline semaphore with value 0.
    pub(crate) fn new(gpu: &Arc<Gpu>) -> Result<Self> {
        let mut kind = vk::SemaphoreTypeCreateInfo::default()
            .semaphore_type(vk::SemaphoreType::TIMELINE)
            .initial_value(0);
        let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
        // SAFETY: timeline semaphores are enabled.
        let semaphore = unsafe { gpu.raw.create_semaphore(&info, None) }
            .map_err(|code| gpu.failed("vkCreateSemaphore", code))?;
        Ok(Self {
            semaphore,
            reached: AtomicU64::new(0),
            is_software: gpu.info.kind == DeviceKind::Software,
            gpu: Arc::clone(gpu),
        })
    }

    /// Returns the highest value that was queried so far, without a query.
    pub(crate) fn last_seen(&self) -> u64 {
        self.reached.load(Ordering::Acquire)
    }

    /// Queries the current value.
    pub(crate) fn poll(&self) -> Result<u64> {
        // SAFETY: the semaphore is alive.
        let value = unsafe { self.gpu.raw.get_semaphore_counter_value(self.semaphore) }
            .map_err(|code| self.gpu.failed("vkGetSemaphoreCounterValue", code))?;
        // Drivers return this for a lost device; no submission has this number.
        if value == u64::MAX {
            let reason = "its timeline semaphore shows the value of a lost device";
            return Err(self.gpu.mark_lost(reason.to_owned()));
        }
        self.reached.fetch_max(value, Ordering::AcqRel);
        Ok(value)
    }

    /// Waits until `value` is reached; false after `timeout`, or if the process is exiting.
    pub(crate) fn wait(&self, value: u64, timeout: Duration) -> Result<bool> {
        if self.last_seen() >= value {
            return Ok(true);
        }
        let wait = Wait::new(timeout);
        loop {
            self.gpu.check_alive()?;
            if self.poll()? >= value {
                return Ok(true);
            }
            // The next iteration polls, whatever the waits below return.
            match wait.remaining() {
                None => return Ok(false),
                Some(_) if exit_guard::is_exiting() => return Ok(false),
                Some(remaining) if self.is_software => {
                    self.wait_blocking(value, remaining.min(MAX_WAIT))?
                }
                Some(_) => wait.pause(),
            };
        }
    }

    fn wait_blocking(&self, value: u64, timeout: Duration) -> Result<bool> {
        let (semaphores, values) = ([self.semaphore], [value]);
        let info = vk::SemaphoreWaitInfo::default().semaphores(&semaphores).values(&values);
        let timeout = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        // SAFETY: the semaphore is alive; several threads may wait for it.
        match unsafe { self.gpu.raw.wait_semaphores(&info, timeout) } {
            Ok(()) => Ok(true),
            Err(vk::Result::TIMEOUT) => Ok(false),
            Err(code) => Err(self.gpu.failed("vkWaitSemaphores", code)),
        }
    }
}

impl Drop for Timeline {
    fn drop(&mut self) {
        if self.gpu.is_abandoned() {
            return;
        }
        // SAFETY: `VulkanDriver` waits for all submissions before it drops the timeline.
        unsafe { self.gpu.raw.destroy_semaphore(self.semaphore, None) };
    }
}
