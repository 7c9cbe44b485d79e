//! The timeline: the stream that orders all work, how far it has come, and how work is ended.
//!
//! Submissions are numbered. When one is done the device writes its number where the host sees it,
//! so that to look takes no call. Kernels with loops that may not end read the number of the work
//! being executed, and from time to time that of the last work that has to end.

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
use crate::backend::shared::poll::Wait;

/// How long the first of the submissions that are to end may take to notice, and each one after it.
const PATIENCE: Duration = Duration::from_millis(500);

/// How often the driver is asked, during a wait, whether something went wrong on the device: then
/// no number will ever come.
const HEALTH: Duration = Duration::from_millis(1);

/// Looks without a wait from one such question to the next.
const LOOKS: u32 = 64;

/// Numbers that host and device share, in the host's memory, each in a line of the cache of its
/// own.
#[repr(C, align(64))]
struct Shared {
    /// The last submission that is done.
    done: Line,
    /// The last submission that has to end. It only grows.
    stop: Line,
}

#[repr(C, align(64))]
struct Line(AtomicU64);

/// All work of a device, in order.
pub(crate) struct Timeline {
    /// What orders it.
    pub(crate) main: Stream,
    /// What kernels poll.
    pub(crate) polled: Polled,
    shared: NonNull<Shared>,
    /// Where the device sees [`Shared::done`].
    done: DevicePtr,
    /// The highest number seen so far.
    reached: AtomicU64,
    looks: AtomicU32,
    /// What happens when submissions are done, where the device cannot write numbers.
    events: Mutex<VecDeque<(u64, Event)>>,
    gpu: Arc<Gpu>,
}

// SAFETY: what is shared with the device is accessed by atomic operations alone, and lives as long
// as the timeline.
unsafe impl Send for Timeline {}
// SAFETY: as above.
unsafe impl Sync for Timeline {}

impl Timeline {
    /// A timeline at 0.
    pub(crate) fn new(gpu: &Arc<Gpu>) -> Result<Self> {
        let _current = gpu.current()?;
        let main = Stream::new(gpu)?;
        let (shared, address) = share(gpu)?;
        let mut timeline = Self {
            main,
            polled: Polled { epoch: 0, stop: address + std::mem::offset_of!(Shared, stop) as u64 },
            shared,
            done: address + std::mem::offset_of!(Shared, done) as u64,
            reached: AtomicU64::new(0),
            looks: AtomicU32::new(0),
            events: Mutex::default(),
            gpu: Arc::clone(gpu),
        };
        // SAFETY: the driver writes an address. If this fails, the drop frees the rest.
        let code = unsafe { (gpu.api.mem_alloc)(&raw mut timeline.polled.epoch, size_of::<u64>()) };
        gpu.check("cuMemAlloc", code)?;
        // What is in it is nobody's to read before a submission is announced.
        Ok(timeline)
    }

    /// Has kernels from here on read that they are part of this submission.
    pub(crate) fn announce(&self, number: u64) -> Result<()> {
        let epoch = self.polled.epoch;
        if self.gpu.writes_values {
            // SAFETY: the word lives as long as the timeline.
            return unsafe { self.main.write(epoch, number) };
        }
        // The device is little-endian. Nobody reads between the halves: kernels come after both.
        self.main.fill(epoch, number as u32, 1)?;
        self.main.fill(epoch + 4, (number >> 32) as u32, 1)
    }

    /// Ends a submission: once all before it is done, its number is reached.
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

    /// The highest number known to be reached, without a look.
    pub(crate) fn known(&self) -> u64 {
        self.reached.load(Ordering::Acquire)
    }

    /// The number reached. The device must not be given up: in a forked child the memory is not
    /// there.
    pub(crate) fn look(&self) -> Result<u64> {
        let number = match self.gpu.writes_values {
            true => self.shared().done.0.load(Ordering::Acquire),
            false => self.look_at_events()?,
        };
        Ok(self.reached.fetch_max(number, Ordering::AcqRel).max(number))
    }

    fn look_at_events(&self) -> Result<u64> {
        // Destroyed when the question is answered: that is another call.
        let mut happened = Vec::new();
        let Some(_current) = self.gpu.current_for_question()? else { return Ok(self.known()) };
        let mut events = lock(&self.events);
        let mut reached = self.known();
        while let Some((number, event)) = events.front() {
            if !event.has_happened()? {
                break;
            }
            reached = *number;
            happened.extend(events.pop_front());
        }
        Ok(reached)
    }

    fn shared(&self) -> &Shared {
        // SAFETY: it was allocated for this, and is freed with the timeline.
        unsafe { self.shared.as_ref() }
    }

    /// Waits until a number is reached; false if that took longer than `timeout`.
    pub(crate) fn wait(&self, number: u64, timeout: Duration) -> Result<bool> {
        if self.known() >= number {
            return Ok(true);
        }
        self.gpu.check_alive()?;
        if self.look()? >= number {
            return Ok(true);
        }
        if timeout.is_zero() {
            return self.ask_at_times().map(|()| false);
        }
        let wait = Wait::new(timeout);
        let mut next_question = HEALTH;
        while wait.pause() {
            self.gpu.check_alive()?;
            if self.look()? >= number {
                return Ok(true);
            }
            let waited = wait.waited();
            if waited >= next_question {
                self.check_health()?;
                next_question = waited + HEALTH;
            }
        }
        self.check_health()?;
        Ok(false)
    }

    /// For those who look again and again rather than wait.
    fn ask_at_times(&self) -> Result<()> {
        match self.looks.fetch_add(1, Ordering::Relaxed) % LOOKS {
            0 => self.check_health(),
            _ => Ok(()),
        }
    }

    fn check_health(&self) -> Result<()> {
        match self.gpu.current_for_question()? {
            Some(_current) => self.main.check_health(),
            None => Ok(()),
        }
    }

    /// Ends the submissions up to a number, as far as they notice; gives the first of them, or the
    /// number after them if all were done by themselves. `None` if they do not end.
    pub(crate) fn cancel(&self, number: u64) -> Result<Option<u64>> {
        self.gpu.check_alive()?;
        let before = self.look()?;
        self.stop(number);
        let have_ended = end_in_turn(before, || self.wait(number, PATIENCE), || self.look())?;
        Ok(have_ended.then(|| first_unreached(before, number)))
    }

    /// Has kernels of submissions up to a number end when they look.
    pub(crate) fn stop(&self, number: u64) {
        if !self.gpu.is_given_up() {
            self.shared().stop.0.fetch_max(number, Ordering::AcqRel);
        }
    }
}

/// Waits for one submission after the other to end, from `reached` on; false if none did in the
/// time of a wait. There may be many, and other processes may have their share of the device: as
/// long as one after the other ends, all will.
fn end_in_turn(
    mut reached: u64,
    wait: impl Fn() -> Result<bool>,
    look: impl Fn() -> Result<u64>,
) -> Result<bool> {
    while !wait()? {
        let now = look()?;
        if now == reached {
            return Ok(false);
        }
        reached = now;
    }
    Ok(true)
}

/// The first submission up to `number` that was not done when those up to `reached` were; the one
/// after it if all were.
fn first_unreached(reached: u64, number: u64) -> u64 {
    reached.min(number).saturating_add(1)
}

/// Memory of the host that the device sees, and where it sees it.
fn share(gpu: &Gpu) -> Result<(NonNull<Shared>, DevicePtr)> {
    let mut place: *mut c_void = std::ptr::null_mut();
    let size = size_of::<Shared>();
    // SAFETY: the driver writes an address.
    let code = unsafe { (gpu.api.mem_host_alloc)(&raw mut place, size, types::HOST_MEMORY) };
    gpu.check("cuMemHostAlloc", code)?;
    let mut address = 0;
    // SAFETY: the driver writes an address; the place is what it gave.
    let code = unsafe { (gpu.api.mem_host_get_device_pointer)(&raw mut address, place, 0) };
    if let Err(error) = gpu.check("cuMemHostGetDevicePointer", code) {
        free_shared(gpu, place);
        return Err(error);
    }
    let Some(shared) = NonNull::new(place.cast::<Shared>()) else {
        return Err(gpu.refused("cuMemHostAlloc", "it gave no memory".to_owned()));
    };
    // SAFETY: the memory begins a page, is large enough, and nobody else has it yet.
    unsafe {
        let zero = || Line(AtomicU64::new(0));
        shared.write(Shared { done: zero(), stop: zero() });
    }
    Ok((shared, address))
}

fn free_shared(gpu: &Gpu, place: *mut c_void) {
    // SAFETY: it was allocated so, and nobody uses it any more.
    let code = unsafe { (gpu.api.mem_free_host)(place) };
    gpu.note("cuMemFreeHost", code);
}

impl Drop for Timeline {
    fn drop(&mut self) {
        let Some(_current) = self.gpu.current_to_free() else { return };
        free_shared(&self.gpu, self.shared.as_ptr().cast());
        if self.polled.epoch != 0 {
            // SAFETY: all work is done, so that no kernel reads it.
            let code = unsafe { (self.gpu.api.mem_free)(self.polled.epoch) };
            self.gpu.note("cuMemFree", code);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_was_ended_is_the_one_after_the_last_that_was_done() {
        assert_eq!(first_unreached(0, 1), 1);
        assert_eq!(first_unreached(4, 9), 5);
        assert_eq!(first_unreached(8, 9), 9);
        // All were done, and more than were to end.
        assert_eq!(first_unreached(9, 9), 10);
        assert_eq!(first_unreached(12, 9), 10);
        assert_eq!(first_unreached(u64::MAX, u64::MAX), u64::MAX);
    }

    #[test]
    fn as_long_as_one_after_the_other_ends_all_are_waited_for() {
        // Each wait ends one submission, as far as some last one.
        let ended = |last: u64| {
            let done = std::cell::Cell::new(4);
            let wait = || {
                done.set(last.min(done.get() + 1));
                Ok(done.get() == 9)
            };
            (end_in_turn(4, wait, || Ok(done.get())), done.get())
        };
        assert_eq!(ended(9), (Ok(true), 9));
        assert_eq!(ended(7), (Ok(false), 7));
        assert_eq!(ended(4), (Ok(false), 4));
    }

    #[test]
    fn shared_numbers_do_not_share_lines_of_the_cache() {
        assert_eq!(std::mem::offset_of!(Shared, done) % 64, 0);
        assert_eq!(std::mem::offset_of!(Shared, stop) % 64, 0);
        assert_eq!(size_of::<Shared>(), 128);
    }
}
