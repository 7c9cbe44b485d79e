//! Transfers between host slices and device memory.
//!
//! A transfer goes chunk by chunk through a ring of mapped memory: the host copies some chunks
//! while the device copies others. One host thread cannot keep up with the bus, so large transfers
//! use several. For an upload each of them copies and submits; for a download one thread alone
//! submits and waits, well ahead of the others, which copy what has arrived.

use std::collections::VecDeque;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Builder};

use crate::command::Span;
use crate::context::Context;
use crate::error::Result;
use crate::info::DeviceKind;
use crate::list::CommandList;
use crate::memory::Memory;
use crate::staging::{Lease, SLOT};

/// Host bytes for which one more thread is worth its start.
const BYTES_PER_THREAD: usize = 4 << 20;

/// Chunks of a download that the device may be working on at once.
const AHEAD: usize = 8;

/// A part of an allocation, and the allocation.
pub(crate) type Place<'a> = (&'a Arc<Memory>, Span);

/// Copies `data` into device memory; returns once it is captured, maybe before it arrived.
pub(crate) fn upload(context: &Context, dst: Place<'_>, data: &[u8]) -> Result<()> {
    let threads = host_threads(context, data.len());
    let chunks = Mutex::new(data.chunks(SLOT).zip(0u64..));
    let next = || chunks.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || -> Result<()> {
        while let Some((chunk, index)) = next() {
            upload_chunk(context, part(dst, index, chunk.len()), chunk)?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        // A thread that the system refuses is one less: the caller's own always works.
        let others: Vec<_> = (1..threads)
            .filter_map(|_| Builder::new().spawn_scoped(scope, work).ok())
            .collect();
        let mine = work();
        let panic = |panic| std::panic::resume_unwind(panic);
        let theirs = others
            .into_iter()
            .map(|other| other.join().unwrap_or_else(panic));
        theirs.fold(mine, |all, one| all.and(one))
    })
}

fn upload_chunk(context: &Context, dst: Place<'_>, chunk: &[u8]) -> Result<()> {
    let mut lease = context.staging.up.lease(context, chunk.len())?;
    let (memory, span) = (lease.memory.id(), lease.span);
    context.note_loss(context.driver.write(memory, span.offset, chunk))?;
    let list = CommandList::copy((&lease.memory, span), dst);
    lease.point = Some(context.submit(list, false)?);
    Ok(())
}

/// A chunk that the device has copied into the ring, and where it belongs.
struct Arrival<'a> {
    lease: Lease<'a>,
    out: &'a mut [u8],
}

/// Copies device memory into `out`, after what was submitted before.
pub(crate) fn download<'a>(context: &'a Context, src: Place<'_>, out: &'a mut [u8]) -> Result<()> {
    let others = host_threads(context, out.len()) - 1;
    let (send, arrived) = mpsc::channel();
    let arrived = Mutex::new(arrived);
    thread::scope(|scope| {
        let copy = || copy_arrivals(context, &arrived);
        let others: Vec<_> = (0..others)
            .filter_map(|_| Builder::new().spawn_scoped(scope, copy).ok())
            .collect();
        let fetched = fetch(context, src, out, |arrival| match others.is_empty() {
            true => arrival.copy(context),
            // The receiver outlives the scope.
            false => send.send(arrival).map_err(|_| unreachable!()),
        });
        // Ends the others' work.
        drop(send);
        let panic = |panic| std::panic::resume_unwind(panic);
        let theirs = others
            .into_iter()
            .map(|other| other.join().unwrap_or_else(panic));
        theirs.fold(fetched, |all, one| all.and(one))
    })
}

/// Has the device copy chunk after chunk into the ring, and hands each on once it is there.
fn fetch<'a>(
    context: &'a Context,
    src: Place<'_>,
    out: &'a mut [u8],
    mut hand_on: impl FnMut(Arrival<'a>) -> Result<()>,
) -> Result<()> {
    let ring = &context.staging.down;
    let mut ahead: VecDeque<Arrival<'a>> = VecDeque::with_capacity(AHEAD);
    let mut settle = |mut oldest: Arrival<'a>| -> Result<()> {
        if let Some(point) = oldest.lease.point {
            context.wait(point)?;
        }
        oldest.lease.point = None;
        hand_on(oldest)
    };
    for (out, index) in out.chunks_mut(SLOT).zip(0u64..) {
        if ahead.len() == AHEAD {
            ahead.pop_front().map_or(Ok(()), &mut settle)?;
        }
        let mut lease = loop {
            if let Some(lease) = ring.try_lease(context, out.len())? {
                break lease;
            }
            match ahead.pop_front() {
                Some(oldest) => settle(oldest)?,
                None => break ring.lease(context, out.len())?,
            }
        };
        let from = part(src, index, out.len());
        let mut list = CommandList::copy(from, (&lease.memory, lease.span));
        list.read_by_host = true;
        lease.point = Some(context.submit(list, false)?);
        ahead.push_back(Arrival { lease, out });
    }
    ahead.into_iter().try_for_each(settle)
}

impl Arrival<'_> {
    fn copy(self, context: &Context) -> Result<()> {
        let Self { lease, out } = self;
        context.note_loss(
            context
                .driver
                .read(lease.memory.id(), lease.span.offset, out),
        )
    }
}

/// Copies what arrives until there is no more. After a failure the rest is only taken off the
/// ring, so that nobody waits for it.
fn copy_arrivals(context: &Context, arrived: &Mutex<Receiver<Arrival<'_>>>) -> Result<()> {
    let next = || {
        arrived
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .recv()
            .ok()
    };
    let mut result = Ok(());
    while let Some(arrival) = next() {
        if result.is_ok() {
            result = arrival.copy(context);
        }
    }
    result
}

/// The part of a place that chunk number `index` of a transfer is copied to or from.
fn part(whole: Place<'_>, index: u64, size: usize) -> Place<'_> {
    let (memory, span) = whole;
    let offset = span.offset + index * SLOT as u64;
    (
        memory,
        Span {
            memory: span.memory,
            offset,
            size: size as u64,
        },
    )
}

/// Host threads worth using for a transfer: half the cores, at most 8. A software device needs the
/// cores itself.
fn host_threads(context: &Context, size: usize) -> usize {
    if context.info.kind == DeviceKind::Software {
        return 1;
    }
    let cores = thread::available_parallelism().map_or(1, |cores| cores.get());
    (cores / 2).clamp(1, 8).min(size / BYTES_PER_THREAD + 1)
}
