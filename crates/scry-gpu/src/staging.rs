//! Transfers between host slices and device memory, through a ring of mapped memory.
//!
//! A transfer goes chunk by chunk: the host copies one chunk while the device copies others. Large
//! transfers use several host threads, because one alone cannot keep up with the bus. The ring's
//! memory is allocated when first needed and kept.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::command::Span;
use crate::context::Context;
use crate::driver::{MemoryKind, Point};
use crate::error::Result;
use crate::info::DeviceKind;
use crate::list::CommandList;
use crate::memory::Memory;

/// Bytes of one slot of a ring, and the most bytes of one chunk.
const SLOT: usize = 4 << 20;

/// Slots of a ring.
const SLOTS: usize = 16;

/// Transfers below this size stay on the caller's thread.
const PARALLEL: usize = 4 * SLOT;

/// The two rings of a device.
pub(crate) struct Staging {
    up: Ring,
    down: Ring,
}

impl Default for Staging {
    fn default() -> Self {
        Self {
            up: Ring::new(MemoryKind::Upload),
            down: Ring::new(MemoryKind::Readback),
        }
    }
}

/// Slots of mapped memory of one kind.
struct Ring {
    kind: MemoryKind,
    slots: Mutex<Slots>,
    /// Told whenever a lease ends.
    returned: Condvar,
}

#[derive(Default)]
struct Slots {
    slots: Vec<Slot>,
    /// The slot that small transfers fill up.
    current: usize,
}

struct Slot {
    memory: Arc<Memory>,
    used: usize,
    leases: usize,
    /// Once this is reached the device is done with the slot.
    busy: Option<Point>,
}

/// A part of a slot, for one chunk.
struct Lease<'a> {
    ring: &'a Ring,
    slot: usize,
    memory: Arc<Memory>,
    span: Span,
    /// The submission that uses the chunk.
    point: Option<Point>,
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let mut slots = self.ring.lock();
        let slot = &mut slots.slots[self.slot];
        slot.leases -= 1;
        slot.busy = slot.busy.max(self.point);
        self.ring.returned.notify_all();
    }
}

/// What a search for room in a ring found.
enum Room {
    Found(usize),
    /// The device is still using the slot that comes next.
    Busy(Point),
    /// Every slot is leased.
    Leased,
}

impl Ring {
    fn new(kind: MemoryKind) -> Self {
        Self {
            kind,
            slots: Mutex::default(),
            returned: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leases room for `size` ≤ [`SLOT`] bytes, waiting for the device where all slots are in use.
    fn lease(&self, context: &Context, size: usize) -> Result<Lease<'_>> {
        loop {
            let mut slots = self.lock();
            match slots.find(context, self.kind, size)? {
                Room::Found(index) => return Ok(self.take(&mut slots, index, size)),
                Room::Busy(point) => {
                    drop(slots);
                    context.wait(point)?;
                    self.lock().release(point);
                }
                Room::Leased => {
                    // A lease ends within one chunk's time; the re-check bounds a lost wake-up.
                    let patience = Duration::from_millis(10);
                    drop(self.returned.wait_timeout(slots, patience));
                    context.check_alive()?;
                }
            }
        }
    }

    fn take(&self, slots: &mut Slots, index: usize, size: usize) -> Lease<'_> {
        slots.current = index;
        let slot = &mut slots.slots[index];
        let offset = slot.used as u64;
        // Chunks start at multiples of 16 bytes: the host copies fastest that way.
        slot.used = (slot.used + size).next_multiple_of(16).min(SLOT);
        slot.leases += 1;
        let span = Span {
            memory: slot.memory.id(),
            offset,
            size: size as u64,
        };
        Lease {
            ring: self,
            slot: index,
            memory: slot.memory.clone(),
            span,
            point: None,
        }
    }
}

impl Slots {
    fn find(&mut self, context: &Context, kind: MemoryKind, size: usize) -> Result<Room> {
        if let Some(slot) = self.slots.get(self.current) {
            if slot.used + size <= SLOT {
                return Ok(Room::Found(self.current));
            }
        }
        if let Some(oldest) = self.oldest() {
            if context.note_loss(context.driver.wait(oldest, Duration::ZERO))? {
                self.release(oldest);
            }
        }
        let idle = self
            .slots
            .iter()
            .position(|slot| slot.leases == 0 && slot.busy.is_none());
        if let Some(index) = idle {
            self.slots[index].used = 0;
            return Ok(Room::Found(index));
        }
        if self.slots.len() < SLOTS {
            let memory = context.allocate(kind, SLOT as u64, "staging")?;
            self.slots.push(Slot {
                memory,
                used: 0,
                leases: 0,
                busy: None,
            });
            return Ok(Room::Found(self.slots.len() - 1));
        }
        Ok(self.oldest().map_or(Room::Leased, Room::Busy))
    }

    /// Where the device is done with the slot that it took first.
    fn oldest(&self) -> Option<Point> {
        self.slots
            .iter()
            .filter(|slot| slot.leases == 0)
            .filter_map(|slot| slot.busy)
            .min()
    }

    /// The device reached `point`: slots that it was using until then are idle.
    fn release(&mut self, point: Point) {
        for slot in &mut self.slots {
            slot.busy = slot.busy.filter(|busy| *busy > point);
        }
    }
}

impl Staging {
    /// Copies `data` into device memory; returns once it is captured, maybe before it arrived.
    pub(crate) fn upload(
        &self,
        context: &Context,
        dst: (&Arc<Memory>, Span),
        data: &[u8],
    ) -> Result<()> {
        let (memory, span) = dst;
        let chunks: Vec<&[u8]> = data.chunks(SLOT).collect();
        in_parallel(context, data.len(), chunks, |index, chunk| {
            let mut lease = self.up.lease(context, chunk.len())?;
            context.note_loss(
                context
                    .driver
                    .write(lease.memory.id(), lease.span.offset, chunk),
            )?;
            let to = chunk_span(span, index, chunk.len());
            let list = CommandList::copy((&lease.memory, lease.span), (memory, to));
            lease.point = Some(context.submit(list, false)?);
            Ok(())
        })
    }

    /// Copies device memory into `out`, waiting for what was submitted before.
    pub(crate) fn download(
        &self,
        context: &Context,
        src: (&Arc<Memory>, Span),
        out: &mut [u8],
    ) -> Result<()> {
        let (memory, span) = src;
        let size = out.len();
        let chunks: Vec<&mut [u8]> = out.chunks_mut(SLOT).collect();
        in_parallel(context, size, chunks, |index, chunk| {
            let mut lease = self.down.lease(context, chunk.len())?;
            let from = chunk_span(span, index, chunk.len());
            let mut list = CommandList::copy((memory, from), (&lease.memory, lease.span));
            list.read_by_host = true;
            let point = context.submit(list, false)?;
            lease.point = Some(point);
            context.wait(point)?;
            // The device is done with it: nobody has to wait for the slot once the lease ends.
            lease.point = None;
            context.note_loss(
                context
                    .driver
                    .read(lease.memory.id(), lease.span.offset, chunk),
            )
        })
    }
}

/// The part of `whole` that chunk number `index` is copied to or from.
fn chunk_span(whole: Span, index: usize, size: usize) -> Span {
    Span {
        memory: whole.memory,
        offset: whole.offset + (index * SLOT) as u64,
        size: size as u64,
    }
}

/// Calls `transfer` for every chunk, on several threads if the whole is large. The first error
/// ends it.
fn in_parallel<C: Send>(
    context: &Context,
    size: usize,
    chunks: Vec<C>,
    transfer: impl Fn(usize, C) -> Result<()> + Sync,
) -> Result<()> {
    let threads = if size < PARALLEL {
        1
    } else {
        host_threads(context)
    };
    if threads == 1 {
        return chunks
            .into_iter()
            .enumerate()
            .try_for_each(|(i, chunk)| transfer(i, chunk));
    }
    let chunks: Vec<Mutex<Option<C>>> = chunks.into_iter().map(|c| Mutex::new(Some(c))).collect();
    let next = AtomicUsize::new(0);
    let work = || -> Result<()> {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(chunk) = chunks.get(index) else {
                return Ok(());
            };
            let chunk = chunk.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(chunk) = chunk {
                transfer(index, chunk).inspect_err(|_| {
                    next.store(chunks.len(), Ordering::Relaxed);
                })?;
            }
        }
    };
    std::thread::scope(|scope| {
        // A thread that the system refuses is one less: the caller's always works.
        let others: Vec<_> = (1..threads)
            .filter_map(|_| std::thread::Builder::new().spawn_scoped(scope, work).ok())
            .collect();
        let mut result = work();
        for other in others {
            let theirs = other
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            result = result.and(theirs);
        }
        result
    })
}

/// Host threads worth using for a large transfer: half the cores, at most 8. A software device
/// needs the cores itself.
fn host_threads(context: &Context) -> usize {
    if context.info.kind == DeviceKind::Software {
        return 1;
    }
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    (cores / 2).clamp(1, 8)
}
