//! Staging rings: host-visible memory for transfers between host and device.
//!
//! A ring allocates its memory on first use and keeps it. A chunk leases a part of a slot; a slot
//! is reused once it has no leases and the device has finished with it.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::api::error::{GpuError, Result};
use crate::core::command::BufferRange;
use crate::core::handles::{MemoryKind, SubmissionIndex};
use crate::core::memory::Memory;
use crate::core::readback_blocks::ReadbackBlocks;
use crate::core::submission_queue::SubmissionQueue;

/// Bytes of one slot of a ring, and the maximum bytes of one chunk.
pub(crate) const SLOT_SIZE: usize = 2 << 20;

/// Maximum number of slots of a ring: 48 MiB, which fit in the last-level cache of a server.
const MAX_SLOTS: usize = 24;

/// The two rings of a device, and the readback memory of async downloads.
pub(crate) struct Staging {
    pub up: Ring,
    pub down: Ring,
    pub blocks: ReadbackBlocks,
}

impl Default for Staging {
    fn default() -> Self {
        Self {
            up: Ring::new(MemoryKind::Upload),
            down: Ring::new(MemoryKind::Readback),
            blocks: ReadbackBlocks::default(),
        }
    }
}

/// Slots of mapped memory of one kind.
pub(crate) struct Ring {
    kind: MemoryKind,
    slots: Mutex<Slots>,
    /// Notified when a lease ends and a thread waits for it.
    returned: Condvar,
}

#[derive(Default)]
struct Slots {
    slots: Vec<Slot>,
    /// The slot of the latest lease.
    current: usize,
    /// Threads that wait for a lease to end; if zero, the end of a lease needs no system call.
    waiting: usize,
}

struct Slot {
    memory: Arc<Memory>,
    /// Bytes leased since the slot was last idle.
    used: usize,
    /// Number of leases that have not ended.
    leases: usize,
    /// The last submission that uses the slot.
    busy: Option<SubmissionIndex>,
}

/// A part of a slot, for one chunk.
pub(crate) struct Lease<'a> {
    ring: &'a Ring,
    slot: usize,
    pub memory: Arc<Memory>,
    pub range: BufferRange,
    /// The submission that uses the chunk, until it is done.
    pub submission: Option<SubmissionIndex>,
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let mut slots = self.ring.lock();
        let slot = &mut slots.slots[self.slot];
        slot.leases -= 1;
        slot.busy = slot.busy.max(self.submission);
        if slots.waiting > 0 {
            self.ring.returned.notify_all();
        }
    }
}

/// The result of a search for room in a ring.
enum Room {
    Found(usize),
    /// The device is still using every slot that is not leased; this submission is the first to
    /// free one.
    Busy(SubmissionIndex),
    /// Every slot is leased.
    Leased,
}

impl Ring {
    fn new(kind: MemoryKind) -> Self {
        Self { kind, slots: Mutex::default(), returned: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leases room for `size` ≤ [`SLOT_SIZE`] bytes, waiting while all slots are in use. Before it
    /// waits for leases (not for the device), it calls `release_held`, which must end the caller's
    /// own leases: threads that hold leases while they wait for others could deadlock.
    pub(crate) fn lease(
        &self,
        queue: &SubmissionQueue,
        size: usize,
        release_held: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Lease<'_>> {
        let mut has_released = false;
        let start = queue.start_wait();
        loop {
            let mut slots = self.lock();
            match slots.find_room(queue, self.kind, size, SubmissionQueue::allocate)? {
                Room::Found(index) => return Ok(self.take(&mut slots, index, size)),
                Room::Busy(submission) => {
                    drop(slots);
                    queue.wait_for_memory(submission)?;
                    self.lock().release(submission);
                }
                Room::Leased if !has_released => {
                    drop(slots);
                    release_held()?;
                    has_released = true;
                }
                Room::Leased if !queue.driver.can_block() => {
                    return Err(queue.would_block_error());
                }
                Room::Leased => {
                    // The timeout bounds the cost of a lost wake-up, and the delay after a loss or
                    // an interrupt.
                    let timeout = Duration::from_millis(10);
                    slots.waiting += 1;
                    let woken = self.returned.wait_timeout(slots, timeout);
                    woken.unwrap_or_else(PoisonError::into_inner).0.waiting -= 1;
                    has_released = false;
                    queue.check_alive()?;
                    start.check_interrupts(queue)?;
                }
            }
        }
    }

    /// Leases room without waiting; `None` if all slots are in use, or out of memory.
    pub(crate) fn try_lease(
        &self,
        queue: &SubmissionQueue,
        size: usize,
    ) -> Result<Option<Lease<'_>>> {
        let mut slots = self.lock();
        match slots.find_room(queue, self.kind, size, SubmissionQueue::try_allocate) {
            Ok(Room::Found(index)) => Ok(Some(self.take(&mut slots, index, size))),
            Ok(Room::Busy(_) | Room::Leased) | Err(GpuError::OutOfMemory(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the submission that frees room when it is done; `None` if there is none, because the
    /// host is still copying into or out of every slot, or because the allocation of a slot failed.
    pub(crate) fn oldest(&self) -> Option<SubmissionIndex> {
        self.lock().oldest()
    }

    fn take(&self, slots: &mut Slots, index: usize, size: usize) -> Lease<'_> {
        slots.current = index;
        let slot = &mut slots.slots[index];
        let offset = slot.used as u64;
        // Chunks start at multiples of 16 bytes, where host copies are fastest.
        slot.used = (slot.used + size).next_multiple_of(16).min(SLOT_SIZE);
        slot.leases += 1;
        let range = BufferRange { memory: slot.memory.id(), offset, size: size as u64 };
        Lease { ring: self, slot: index, memory: slot.memory.clone(), range, submission: None }
    }
}

impl Slots {
    /// Finds room, or adds a slot with memory from `allocate`.
    fn find_room(
        &mut self,
        queue: &SubmissionQueue,
        kind: MemoryKind,
        size: usize,
        allocate: impl FnOnce(&SubmissionQueue, MemoryKind, u64, &str) -> Result<Arc<Memory>>,
    ) -> Result<Room> {
        if self.is_current_idle(queue)? {
            // Reuses the slot from its start, because this memory is in the host's caches.
            self.slots[self.current].used = 0;
        }
        if let Some(slot) = self.slots.get(self.current)
            && slot.used + size <= SLOT_SIZE
        {
            return Ok(Room::Found(self.current));
        }
        if let Some(oldest) = self.oldest()
            && queue.note_loss(queue.driver.wait(oldest, Duration::ZERO))?
        {
            self.release(oldest);
        }
        let idle = self.slots.iter().position(|slot| slot.leases == 0 && slot.busy.is_none());
        if let Some(index) = idle {
            self.slots[index].used = 0;
            return Ok(Room::Found(index));
        }
        if self.slots.len() < MAX_SLOTS {
            let memory = allocate(queue, kind, SLOT_SIZE as u64, "staging")?;
            self.slots.push(Slot { memory, used: 0, leases: 0, busy: None });
            return Ok(Room::Found(self.slots.len() - 1));
        }
        Ok(self.oldest().map_or(Room::Leased, Room::Busy))
    }

    /// Returns whether neither the host nor the device uses the current slot.
    fn is_current_idle(&mut self, queue: &SubmissionQueue) -> Result<bool> {
        let Some(slot) = self.slots.get(self.current).filter(|slot| slot.leases == 0) else {
            return Ok(false);
        };
        let Some(busy) = slot.busy else {
            return Ok(true);
        };
        let is_done = queue.note_loss(queue.driver.wait(busy, Duration::ZERO))?;
        if is_done {
            self.release(busy);
        }
        Ok(is_done)
    }

    /// Returns the earliest submission that ends the device's use of an unleased slot.
    fn oldest(&self) -> Option<SubmissionIndex> {
        let mut oldest: Option<SubmissionIndex> = None;
        for slot in &self.slots {
            if slot.leases == 0
                && let Some(busy) = slot.busy
            {
                oldest = Some(oldest.map_or(busy, |oldest| oldest.min(busy)));
            }
        }
        oldest
    }

    /// Marks the slots as idle whose last submission is at most `submission`, which must be done.
    fn release(&mut self, submission: SubmissionIndex) {
        for slot in &mut self.slots {
            slot.busy = slot.busy.filter(|busy| *busy > submission);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Instant;

    use super::*;
    use crate::testing::{FaultPlan, null_info, observed, open_with_faults};

    #[test]
    fn interrupts_end_waits_for_leases() {
        let (device, _) = observed(null_info());
        let (context, ring) = (&device.context, &device.context.staging.up);
        let lease_all = || ring.try_lease(context, SLOT_SIZE).unwrap();
        let held: Vec<_> = std::iter::from_fn(lease_all).collect();
        assert_eq!(held.len(), MAX_SLOTS);
        thread::scope(|scope| {
            let waiter = scope.spawn(|| ring.lease(context, SLOT_SIZE, &mut || Ok(())).map(|_| ()));
            while ring.lock().waiting == 0 {
                thread::yield_now();
            }
            device.interrupt();
            let start = Instant::now();
            while !waiter.is_finished() && start.elapsed() < Duration::from_secs(5) {
                thread::sleep(Duration::from_millis(1));
            }
            drop(held);
            let waited = waiter.join().unwrap();
            assert!(matches!(waited, Err(GpuError::Interrupted(_))), "{waited:?}");
        });
    }

    #[test]
    fn leases_block_only_where_allowed() {
        let device = open_with_faults("null", &FaultPlan::cannot_block()).unwrap();
        let (context, ring) = (&device.context, &device.context.staging.up);
        let lease_all = || ring.try_lease(context, SLOT_SIZE).unwrap();
        let held: Vec<_> = std::iter::from_fn(lease_all).collect();
        thread::scope(|scope| {
            let leased = scope.spawn(|| ring.lease(context, SLOT_SIZE, &mut || Ok(())).map(|_| ()));
            thread::sleep(Duration::from_millis(50));
            drop(held);
            let leased = leased.join().unwrap();
            assert!(matches!(leased, Err(GpuError::WouldBlock(_))), "{leased:?}");
        });
    }

    #[test]
    fn idle_slots_restart() {
        let (device, _) = observed(null_info());
        let context = &device.context;
        let lease = || context.staging.up.try_lease(context, 100).unwrap().unwrap();
        for _ in 0..3 {
            let (first, second) = (lease(), lease());
            assert_eq!((first.range.offset, second.range.offset), (0, 112));
            drop(first);
            let third = lease();
            assert_eq!((third.slot, third.range.offset), (second.slot, 224));
        }
        let mut last = lease();
        assert_eq!(last.range.offset, 0);
        // Never completes: the device keeps using the slot.
        last.submission = Some(SubmissionIndex(u64::MAX));
        drop(last);
        assert_eq!(lease().range.offset, 112);
    }
}
