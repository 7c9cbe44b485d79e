//! The timeline: orders submissions by the main stream, tracks their progress, and cancels them.
//!
//! Submissions are numbered. When one is done, the device writes its number to mapped host memory,
//! so that progress is read without a driver call. Kernels with loops that may not terminate, or
//! not soon, poll two numbers: that of the submission being executed, and that of the last
//! cancelled one.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::params::Polled;
use super::stream::{Event, Stream};
use crate::api::error::Result;
use crate::backend::cuda::device::Gpu;
use crate::backend::cuda::ffi::types::{self, DevicePtr};
use crate::backend::cuda::lock;
use crate::backend::shared::cancellation::{
    CANCEL_TIMEOUT, first_cancelled, wait_while_progressing,
};
use crate::backend::shared::poll::Wait;
use crate::lifecycle::exit_guard;

/// Interval at which a wait queries the driver for errors. After an error the device writes no more
/// numbers.
const QUERY_INTERVAL: Duration = Duration::from_millis(1);

/// One of this many waits with a timeout of zero queries the driver for errors.
const POLLS_PER_QUERY: u32 = 64;

/// Bytes in device memory of [`scry_ptx::Param::Epoch`].
const EPOCH_BYTES: usize = 3 * size_of::<u64>();

/// Numbers shared between host and device, in pinned host memory, each in a cache line of its own.
#[repr(C, align(64))]
struct Shared {
    /// The last completed submission.
    done: CacheLine,
    /// The last cancelled submission. It only grows.
    stop: CacheLine,
}

#[repr(C, align(64))]
struct CacheLine(AtomicU64);

/// All work of a device, in order.
pub(crate) struct Timeline {
    /// The stream that orders all work.
    pub(crate) main: Stream,
    /// The addresses that kernels poll.
    pub(crate) polled: Polled,
    shared: NonNull<Shared>,
    /// Device address of [`Shared::done`].
    done: DevicePtr,
    /// The highest completed number that the host has read.
    reached: AtomicU64,
    /// Number of waits with a timeout of zero.
    polls: AtomicU32,
    /// Events at the ends of submissions; used only if streams cannot write values.
    events: Mutex<VecDeque<(u64, Event)>>,
    gpu: Arc<Gpu>,
}

// SAFETY: memory shared with the device is accessed atomically only, and lives as long as the
// timeline.
unsafe impl Send for Timeline {}
// SAFETY: as above.
unsafe impl Sync for Timeline {}

impl Timeline {
    /// Creates a timeline at 0.
    pub(crate) fn new(gpu: &Arc<Gpu>) -> Result<Self> {
        let _current = gpu.current()?;
        let main = Stream::new(gpu)?;
        let (shared, address) = allocate_shared(gpu)?;
        let mut timeline = Self {
            main,
            polled: Polled { epoch: 0, stop: address + std::mem::offset_of!(Shared, stop) as u64 },
            shared,
            done: address + std::mem::offset_of!(Shared, done) as u64,
            reached: AtomicU64::new(0),
            polls: AtomicU32::new(0),
            events: Mutex::default(),
            gpu: Arc::clone(gpu),
        };
        // SAFETY: the driver writes an address. If this fails, the drop frees the rest.
        let code = unsafe { (gpu.api.mem_alloc)(&raw mut timeline.polled.epoch, EPOCH_BYTES) };
        gpu.check("cuMemAlloc", code)?;
        timeline.main.fill(timeline.polled.epoch, 0, EPOCH_BYTES / size_of::<u32>())?;
        Ok(timeline)
    }

    /// Writes the number of the submission that the following kernels belong to.
    pub(crate) fn announce(&self, number: u64) -> Result<()> {
        let epoch = self.polled.epoch;
        if self.gpu.writes_values {
            // SAFETY: the word lives as long as the timeline.
            return unsafe { self.main.write(epoch, number) };
        }
        // The low word first: the device is little-endian. No kernel runs between both writes.
        self.main.fill(epoch, number as u32, 1)?;
        self.main.fill(epoch + 4, (number >> 32) as u32, 1)
    }

    /// Ends a submission: once all earlier work is done, its number is written, or its event
    /// completes.
    pub(crate) fn finish(&self, number: u64) -> Result<()> {
        if self.gpu.writes_values {
            // SAFETY: the word lives as long as the timeline.
            return unsafe { self.main.write(self.done, number) };
        }
        let event = Event::new(&self.gpu)?;
        self.main.record(&event)?;
        lock(&self.events).push_back((number, event));
        Ok(())
    }

    /// Returns the highest completed number that the host has read, without reading it again.
    pub(crate) fn last_seen(&self) -> u64 {
        self.reached.load(Ordering::Acquire)
    }

    /// Reads and returns the number of the last completed submission. The device must not be
    /// abandoned: a forked child does not have the shared memory.
    pub(crate) fn poll(&self) -> Result<u64> {
        let number = match self.gpu.writes_values {
            true => self.shared().done.0.load(Ordering::Acquire),
            false => self.poll_events()?,
        };
        Ok(self.reached.fetch_max(number, Ordering::AcqRel).max(number))
    }

    fn poll_events(&self) -> Result<u64> {
        // Declared first, so that the events are destroyed after the exclusive call has ended:
        // destroying them is a call of its own.
        let mut completed = Vec::new();
        let Some(_current) = self.gpu.current_for_query()? else { return Ok(self.last_seen()) };
        let mut events = lock(&self.events);
        let mut reached = self.last_seen();
        while let Some((number, event)) = events.front() {
            if !event.is_complete()? {
                break;
            }
            reached = *number;
            completed.extend(events.pop_front());
        }
        Ok(reached)
    }

    fn shared(&self) -> &Shared {
        // SAFETY: the memory was allocated for this type, and is freed with the timeline.
        unsafe { self.shared.as_ref() }
    }

    /// Waits until a number is completed; returns false on timeout, or if the process is exiting.
    pub(crate) fn wait(&self, number: u64, timeout: Duration) -> Result<bool> {
        if self.last_seen() >= number {
            return Ok(true);
        }
        self.gpu.check_alive()?;
        if self.poll()? >= number {
            return Ok(true);
        }
        if timeout.is_zero() {
            return self.query_occasionally().map(|()| false);
        }
        let wait = Wait::new(timeout);
        let mut next_query = QUERY_INTERVAL;
        while wait.pause() && !exit_guard::is_exiting() {
            self.gpu.check_alive()?;
            if self.poll()? >= number {
                return Ok(true);
            }
            let elapsed = wait.elapsed();
            if elapsed >= next_query {
                self.check_health()?;
                next_query = elapsed + QUERY_INTERVAL;
            }
        }
        self.check_health()?;
        Ok(false)
    }

    /// Queries the driver for errors at some of the calls, for callers that poll.
    fn query_occasionally(&self) -> Result<()> {
        match self.polls.fetch_add(1, Ordering::Relaxed) % POLLS_PER_QUERY {
            0 => self.check_health(),
            _ => Ok(()),
        }
    }

    fn check_health(&self) -> Result<()> {
        match self.gpu.current_for_query()? {
            Some(_current) => self.main.check_health(),
            None => Ok(()),
        }
    }

    /// Cancels the submissions up to `number`, as far as their kernels poll. Returns the first
    /// cancelled one, or `number + 1` if all had finished; `None` if they do not end.
    pub(crate) fn cancel(&self, number: u64) -> Result<Option<u64>> {
        self.gpu.check_alive()?;
        let before = self.poll()?;
        self.stop(number);
        let have_ended =
            wait_while_progressing(before, || self.wait(number, CANCEL_TIMEOUT), || self.poll())?;
        Ok(have_ended.then(|| first_cancelled(before, number)))
    }

    /// Makes kernels of submissions up to a number exit at their next poll.
    pub(crate) fn stop(&self, number: u64) {
        if !self.gpu.is_abandoned() {
            self.shared().stop.0.fetch_max(number, Ordering::AcqRel);
        }
    }
}

/// Allocates and initialises the shared numbers in host memory that is mapped into the device.
/// Returns their address for the host and for the device.
fn allocate_shared(gpu: &Gpu) -> Result<(NonNull<Shared>, DevicePtr)> {
    let mut host: *mut c_void = std::ptr::null_mut();
    let size = size_of::<Shared>();
    // SAFETY: the driver writes an address.
    let code = unsafe { (gpu.api.mem_host_alloc)(&raw mut host, size, types::HOST_MEMORY) };
    gpu.check("cuMemHostAlloc", code)?;
    let mut address = 0;
    // SAFETY: the driver writes an address; `host` is its allocation.
    let code = unsafe { (gpu.api.mem_host_get_device_pointer)(&raw mut address, host, 0) };
    if let Err(error) = gpu.check("cuMemHostGetDevicePointer", code) {
        free_shared(gpu, host);
        return Err(error);
    }
    let Some(shared) = NonNull::new(host.cast::<Shared>()) else {
        return Err(gpu.defect_error("cuMemHostAlloc", "it returned a null pointer".to_owned()));
    };
    // SAFETY: the memory is page-aligned, large enough, and not yet shared.
    unsafe {
        let zero = || CacheLine(AtomicU64::new(0));
        shared.write(Shared { done: zero(), stop: zero() });
    }
    Ok((shared, address))
}

fn free_shared(gpu: &Gpu, host: *mut c_void) {
    // SAFETY: it was allocated by `cuMemHostAlloc`, and nothing uses it any more.
    let code = unsafe { (gpu.api.mem_free_host)(host) };
    gpu.log_failed_free("cuMemFreeHost", code);
}

impl Drop for Timeline {
    fn drop(&mut self) {
        let Some(_current) = self.gpu.current_to_free() else { return };
        free_shared(&self.gpu, self.shared.as_ptr().cast());
        if self.polled.epoch != 0 {
            // SAFETY: all work is done, so that no kernel reads it.
            let code = unsafe { (self.gpu.api.mem_free)(self.polled.epoch) };
            self.gpu.log_failed_free("cuMemFree", code);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_numbers_have_own_cache_lines() {
        assert_eq!(std::mem::offset_of!(Shared, done) % 64, 0);
        assert_eq!(std::mem::offset_of!(Shared, stop) % 64, 0);
        assert_eq!(size_of::<Shared>(), 128);
    }
}
