//! Blocking transfers between host slices and device memory.
//!
//! Chunks of a transfer pass through a staging ring: the host copies some chunks while the
//! device copies others. One host thread cannot saturate the bus, so large transfers use several.
//! The device idles briefly between submissions, so several chunks share one.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Builder};

use crate::api::error::Result;
use crate::api::info::DeviceKind;
use crate::core::command::{BufferRange, Command};
use crate::core::command_list::CommandList;
use crate::core::context::Context;
use crate::core::handles::SubmissionIndex;
use crate::core::memory::Memory;
use crate::core::staging::{Lease, SLOT_SIZE};

/// Bytes of a transfer per additional host thread.
const BYTES_PER_THREAD: usize = 4 << 20;

/// Number of chunks that share a submission.
const CHUNKS_PER_GROUP: usize = 4;

/// Maximum number of submissions of a download in flight.
const MAX_GROUPS_IN_FLIGHT: usize = 3;

/// An allocation, and a range of it.
pub(crate) type MemoryRange<'a> = (&'a Arc<Memory>, BufferRange);

/// Copies `data` into device memory. Returns once all of it is captured and submitted.
pub(crate) fn upload(context: &Context, dst: MemoryRange<'_>, data: &[u8]) -> Result<()> {
    let threads = host_threads(context, data.len(), Pages::Present);
    let upload = Upload { context, dst, captured: Mutex::default() };
    for_each(threads, data.chunks(SLOT_SIZE).zip(0u64..), |(chunk, index)| {
        upload.capture(chunk, index)
    })?;
    upload.submit(1)
}

/// An upload in progress.
struct Upload<'a> {
    context: &'a Context,
    dst: MemoryRange<'a>,
    /// Chunks that are in the ring and not yet submitted, with their destinations.
    captured: Mutex<Vec<(Lease<'a>, BufferRange)>>,
}

impl Upload<'_> {
    /// Copies a chunk into the ring, and submits a group once it is full.
    fn capture(&self, chunk: &[u8], index: u64) -> Result<()> {
        let context = self.context;
        let lease = context.staging.up.lease(context, chunk.len(), &mut || self.submit(1))?;
        let (memory, range) = (lease.memory.id(), lease.range);
        context.note_loss(context.driver.write(memory, range.offset, chunk))?;
        let to = part(self.dst, index * SLOT_SIZE as u64, chunk.len()).1;
        self.captured.lock().unwrap_or_else(PoisonError::into_inner).push((lease, to));
        self.submit(CHUNKS_PER_GROUP)
    }

    /// Submits the captured chunks, if there are at least `min_chunks`.
    fn submit(&self, min_chunks: usize) -> Result<()> {
        let mut captured = self.captured.lock().unwrap_or_else(PoisonError::into_inner);
        if captured.len() < min_chunks {
            return Ok(());
        }
        let mut group = std::mem::take(&mut *captured);
        drop(captured);
        let submission = self.context.submit(copies_to(self.dst.0, &group), false)?;
        group.iter_mut().for_each(|(lease, _)| lease.submission = Some(submission));
        Ok(())
    }
}

/// Returns the copies from the ring to ranges of `dst`.
fn copies_to(dst: &Arc<Memory>, group: &[(Lease<'_>, BufferRange)]) -> CommandList {
    let mut list = CommandList::default();
    for (lease, to) in group {
        list.push(Command::Copy { src: lease.range, dst: *to }, [&lease.memory, dst]);
    }
    list
}

/// Copies chunks into the ring, as many as it has room for, and submits them. Each chunk has its
/// index in the upload. Returns the number of chunks; waits only for the host's copies.
pub(super) fn upload_now(
    context: &Context,
    dst: MemoryRange<'_>,
    chunks: &[(&[u8], u64)],
) -> Result<usize> {
    let mut group = Vec::with_capacity(chunks.len());
    for (chunk, index) in chunks {
        let Some(lease) = context.staging.up.try_lease(context, chunk.len())? else { break };
        group.push((lease, part(dst, index * SLOT_SIZE as u64, chunk.len()).1));
    }
    if group.is_empty() {
        return Ok(0);
    }
    let write = |(lease, chunk): (&Lease<'_>, &[u8])| {
        context.note_loss(context.driver.write(lease.memory.id(), lease.range.offset, chunk))
    };
    let leases = group.iter().map(|(lease, _)| lease);
    let size = group.iter().map(|(_, to)| to.size as usize).sum();
    let threads = host_threads(context, size, Pages::Present);
    for_each(threads, leases.zip(chunks.iter().map(|(chunk, _)| *chunk)), write)?;
    let submission = context.submit_now(copies_to(dst.0, &group), false)?;
    group.iter_mut().for_each(|(lease, _)| lease.submission = Some(submission));
    Ok(group.len())
}

/// Copies the first bytes of `memory`, which the device has finished writing, into `out`.
pub(super) fn read(context: &Context, memory: &Memory, out: &mut [u8]) -> Result<()> {
    let threads = host_threads(context, out.len(), Pages::Fresh);
    for_each(threads, aligned_chunks(out), |(chunk, offset)| {
        context.note_loss(context.driver.read(memory.id(), offset, chunk))
    })
}

/// A chunk that the device copies into the ring, and its destination.
struct Arrival<'a> {
    lease: Lease<'a>,
    out: &'a mut [u8],
}

/// Whether the pages of host memory are mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pages {
    /// Mapped, or possibly so.
    Present,
    /// The first access to each page is a fault, in which the system provides a zeroed page.
    Fresh,
}

/// Copies device memory into `out`, after all work submitted before.
pub(crate) fn download<'a>(
    context: &'a Context,
    src: MemoryRange<'_>,
    out: &'a mut [u8],
    pages: Pages,
) -> Result<()> {
    let helper_count = host_threads(context, out.len(), pages) - 1;
    let arrivals = Arrivals::default();
    with_helpers(helper_count, &|| copy_arrivals(context, &arrivals), |helpers| {
        // Lets the helper threads end on every exit from this scope.
        let _end = EndGuard(&arrivals);
        fetch(context, src, out, &mut |arrival| match helpers {
            0 => arrival.copy(context),
            _ => {
                arrivals.lock().0.push_back(arrival);
                arrivals.changed.notify_one();
                Ok(())
            }
        })
    })
}

/// Chunks that are ready to be copied out of the ring.
#[derive(Default)]
struct Arrivals<'a> {
    /// The chunks, and whether no more follow.
    waiting: Mutex<(VecDeque<Arrival<'a>>, bool)>,
    changed: Condvar,
}

/// Marks the end of the chunks when dropped.
struct EndGuard<'e, 'a>(&'e Arrivals<'a>);

impl Drop for EndGuard<'_, '_> {
    fn drop(&mut self) {
        self.0.lock().1 = true;
        self.0.changed.notify_all();
    }
}

impl<'a> Arrivals<'a> {
    fn lock(&self) -> MutexGuard<'_, (VecDeque<Arrival<'a>>, bool)> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next chunk; `None` if there are no more.
    fn next(&self) -> Option<Arrival<'a>> {
        let mut waiting = self.lock();
        loop {
            if let Some(arrival) = waiting.0.pop_front() {
                return Some(arrival);
            }
            if waiting.1 {
                return None;
            }
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Chunks that one submission copies into the ring.
struct Group<'a> {
    submission: SubmissionIndex,
    chunks: Vec<Arrival<'a>>,
}

/// Copies groups of chunks into the ring on the device, and passes each chunk to `deliver` once it
/// is there.
fn fetch<'a>(
    context: &'a Context,
    src: MemoryRange<'_>,
    out: &'a mut [u8],
    deliver: &mut dyn FnMut(Arrival<'a>) -> Result<()>,
) -> Result<()> {
    let mut in_flight: Vec<Group<'a>> = Vec::with_capacity(MAX_GROUPS_IN_FLIGHT);
    let mut receive = |group: Group<'a>| -> Result<()> {
        context.wait_for_reading(group.submission, src.1.memory)?;
        group.chunks.into_iter().try_for_each(|mut arrival| {
            arrival.lease.submission = None;
            deliver(arrival)
        })
    };
    let mut chunks = aligned_chunks(out).peekable();
    while chunks.peek().is_some() {
        if in_flight.len() == MAX_GROUPS_IN_FLIGHT {
            receive(in_flight.remove(0))?;
        }
        let mut group = Vec::with_capacity(CHUNKS_PER_GROUP);
        while let Some((out, _)) = chunks.peek().filter(|_| group.len() < CHUNKS_PER_GROUP) {
            let lease = match context.staging.down.try_lease(context, out.len())? {
                Some(lease) => lease,
                None if !in_flight.is_empty() => {
                    receive(in_flight.remove(0))?;
                    continue;
                }
                None if !group.is_empty() => break,
                None => context.staging.down.lease(context, out.len(), &mut || Ok(()))?,
            };
            group.extend(chunks.next().map(|(out, offset)| (Arrival { lease, out }, offset)));
        }
        in_flight.push(submit_fetch(context, src, group)?);
    }
    in_flight.into_iter().try_for_each(receive)
}

fn submit_fetch<'a>(
    context: &Context,
    src: MemoryRange<'_>,
    group: Vec<(Arrival<'a>, u64)>,
) -> Result<Group<'a>> {
    let mut list = CommandList { read_by_host: true, ..Default::default() };
    for (Arrival { lease, out }, offset) in &group {
        let command = Command::Copy { src: part(src, *offset, out.len()).1, dst: lease.range };
        list.push(command, [src.0, &lease.memory]);
    }
    let submission = context.submit(list, false)?;
    let mut chunks: Vec<_> = group.into_iter().map(|(arrival, _)| arrival).collect();
    chunks.iter_mut().for_each(|arrival| arrival.lease.submission = Some(submission));
    Ok(Group { submission, chunks })
}

impl Arrival<'_> {
    fn copy(self, context: &Context) -> Result<()> {
        let Self { lease, out } = self;
        context.note_loss(context.driver.read(lease.memory.id(), lease.range.offset, out))
    }
}

/// Copies chunks to the host until there are no more. After a failure the remaining chunks are only
/// released: no thread must wait for them.
fn copy_arrivals(context: &Context, arrivals: &Arrivals<'_>) -> Result<()> {
    let mut result = Ok(());
    while let Some(arrival) = arrivals.next() {
        if result.is_ok() {
            result = arrival.copy(context);
        }
    }
    result
}

/// Calls `work` with each item, on several threads; returns the first error.
fn for_each<T: Send>(
    threads: usize,
    items: impl Iterator<Item = T> + Send,
    work: impl Fn(T) -> Result<()> + Sync,
) -> Result<()> {
    let items = Mutex::new(items);
    let next = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
    let run_all = || -> Result<()> {
        while let Some(item) = next() {
            work(item)?;
        }
        Ok(())
    };
    with_helpers(threads - 1, &run_all, |_| run_all())
}

/// Starts up to `threads` threads that call `helper`, calls `main` with their number, and joins
/// them; returns the first error.
fn with_helpers(
    threads: usize,
    helper: &(dyn Fn() -> Result<()> + Sync),
    main: impl FnOnce(usize) -> Result<()>,
) -> Result<()> {
    thread::scope(|scope| {
        let mut helpers = Vec::new();
        for _ in 0..threads {
            // If a thread cannot be started, the others do its work.
            helpers.extend(Builder::new().spawn_scoped(scope, helper).ok());
        }
        let mut result = main(helpers.len());
        for thread in helpers {
            let outcome = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            result = result.and(outcome);
        }
        result
    })
}

/// Returns chunks of at most [`SLOT_SIZE`] bytes with their offsets. The chunks of a large transfer
/// end at multiples of that size in memory: no two threads fault on the same huge page.
fn aligned_chunks(out: &mut [u8]) -> impl Iterator<Item = (&mut [u8], u64)> {
    let first = match out.len() {
        ..=SLOT_SIZE => 0,
        _ => out.as_ptr().align_offset(SLOT_SIZE).min(out.len()),
    };
    let (first, rest) = out.split_at_mut(first);
    let rest_at = first.len() as u64;
    let rest = rest.chunks_mut(SLOT_SIZE).zip((rest_at..).step_by(SLOT_SIZE));
    Some((first, 0)).into_iter().filter(|(first, _)| !first.is_empty()).chain(rest)
}

/// Returns the part of a range that a chunk is copied to or from.
pub(super) fn part(whole: MemoryRange<'_>, offset: u64, size: usize) -> MemoryRange<'_> {
    let (memory, range) = whole;
    let offset = range.offset + offset;
    (memory, BufferRange { memory: range.memory, offset, size: size as u64 })
}

/// Returns the number of host threads for a transfer: most of the cores, at most 12, if the pages
/// are mapped; all cores, at most 16, if the system has to provide the pages, which costs more than
/// the copy. One for a software device, which uses the cores itself, and for a driver whose threads
/// must not block.
fn host_threads(context: &Context, size: usize, pages: Pages) -> usize {
    if context.info.kind == DeviceKind::Software || !context.driver.can_block() {
        return 1;
    }
    let cores = thread::available_parallelism().map_or(1, |cores| cores.get());
    let threads = match pages {
        Pages::Present => (cores * 5 / 8).clamp(1, 12),
        Pages::Fresh => cores.clamp(1, 16),
    };
    threads.min(size / BYTES_PER_THREAD + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_end_at_page_boundaries() {
        let mut memory = vec![0u8; 5 * SLOT_SIZE + 999];
        for (start, end) in [
            (0, 5 * SLOT_SIZE + 999),
            (7, 3 * SLOT_SIZE),
            (1, SLOT_SIZE),
            (0, 0),
            (3, SLOT_SIZE + 4),
        ] {
            let out = &mut memory[start..end];
            let (base, length) = (out.as_ptr().addr(), out.len());
            let mut next = 0;
            for (chunk, offset) in aligned_chunks(out) {
                assert_eq!((offset as usize, chunk.as_ptr().addr()), (next, base + next));
                assert!((1..=SLOT_SIZE).contains(&chunk.len()));
                next += chunk.len();
                let is_last = next == length;
                assert!(is_last || length <= SLOT_SIZE || (base + next).is_multiple_of(SLOT_SIZE));
            }
            assert_eq!(next, length);
        }
    }
}
