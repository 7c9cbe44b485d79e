//! Asynchronous transfers between host slices and device memory.
//!
//! An upload leases slots of the staging ring only while it is polled: it copies a group of chunks,
//! submits them, and awaits room for the next group. A download uses separate memory, because a
//! future that is never polled again must not hold a slot that threads wait for. It reads what the
//! memory contains at one point in the order of submissions.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::api::error::{GpuError, Result};
use crate::api::info::DeviceKind;
use crate::core::command::Command;
use crate::core::command_list::CommandList;
use crate::core::completion::Completion;
use crate::core::context::Context;
use crate::core::handles::{MemoryId, MemoryKind, SubmissionIndex};
use crate::core::memory::Memory;
use crate::core::readback_blocks::BLOCK_SIZE;
use crate::core::staging::SLOT_SIZE;
use crate::core::transfer::{self, MemoryRange, part};

/// Maximum number of chunks in flight of a download that is copied on the device first.
const MAX_CHUNKS_IN_FLIGHT: usize = 3;

/// Maximum number of chunks that an upload copies without yielding to other tasks. Enough for
/// several host threads.
const MAX_GROUP: usize = 8;

/// Chunks of more than this many bytes use a cached block, which may be larger than the chunk.
const MAX_UNPOOLED: usize = 64 << 10;

/// Allocates memory. If the device is out of memory, retries once after all submitted work is done.
pub(crate) async fn allocate(
    context: &Arc<Context>,
    kind: MemoryKind,
    size: u64,
    label: &str,
) -> Result<Arc<Memory>> {
    match context.try_allocate(kind, size, label) {
        Err(GpuError::OutOfMemory(error)) => match context.last_submission() {
            Some(last) => {
                Completion::for_memory(context, last).await?;
                context.try_allocate(kind, size, label)
            }
            None => Err(GpuError::OutOfMemory(error)),
        },
        other => other,
    }
}

/// Waits until fewer submissions than the limit are in flight.
pub(crate) async fn wait_for_room_in_flight(context: &Arc<Context>) -> Result<()> {
    context.check_alive()?;
    while let Some(submission) = context.excess_in_flight() {
        Completion::for_memory(context, submission).await?;
    }
    Ok(())
}

/// Copies `data` into device memory. Completes once all of it is captured and submitted.
pub(crate) async fn upload(
    context: &Arc<Context>,
    dst: MemoryRange<'_>,
    data: &[u8],
) -> Result<()> {
    let chunks: Vec<_> = data.chunks(SLOT_SIZE).zip(0u64..).collect();
    let mut rest = &chunks[..];
    while let [chunk, ..] = rest {
        wait_for_room_in_flight(context).await?;
        let group = &rest[..rest.len().min(MAX_GROUP)];
        let submitted = match transfer::upload_now(context, dst, group)? {
            0 => match context.staging.up.oldest() {
                Some(submission) => {
                    Completion::for_memory(context, submission).await?;
                    0
                }
                None => upload_without_ring(context, dst, *chunk).await?,
            },
            submitted => submitted,
        };
        rest = &rest[submitted..];
    }
    Ok(())
}

/// Uploads one chunk through new memory, if all slots of the ring are leased; returns 1.
async fn upload_without_ring(
    context: &Arc<Context>,
    dst: MemoryRange<'_>,
    (chunk, index): (&[u8], u64),
) -> Result<usize> {
    let memory = allocate(context, MemoryKind::Upload, chunk.len() as u64, "upload").await?;
    context.note_loss(context.driver.write(memory.id(), 0, chunk))?;
    let (to, dst) = part(dst, index * SLOT_SIZE as u64, chunk.len());
    let mut list = CommandList::default();
    list.push(Command::Copy { src: memory.whole(), dst }, [&memory, to]);
    wait_for_room_in_flight(context).await?;
    context.submit_now(list, false)?;
    Ok(1)
}

/// A chunk of a download that the device copies into readback memory.
struct Chunk<'a> {
    submission: SubmissionIndex,
    memory: Arc<Memory>,
    out: &'a mut [u8],
}

/// Copies device memory into `out`, after all work submitted before.
///
/// Work that is submitted before it completes does not change what it reads: one submission copies
/// all bytes, either to the host or to other memory of the device, from which chunks follow.
pub(crate) async fn download(
    context: &Arc<Context>,
    src: MemoryRange<'_>,
    out: &mut [u8],
) -> Result<()> {
    // A software device and the host have the same memory: a copy of a copy is wasted.
    let is_chunked = out.len() > BLOCK_SIZE && context.info.kind != DeviceKind::Software;
    let size = out.len() as u64;
    let copy = match is_chunked {
        true => context.try_allocate(MemoryKind::Device, size, "copy to download").map(Some),
        false => Ok(None),
    };
    match copy {
        Ok(Some(copy)) => download_copy(context, src, &copy, out).await,
        Ok(None) | Err(GpuError::OutOfMemory(_)) => download_at_once(context, src, out).await,
        Err(error) => Err(error),
    }
}

/// Downloads all bytes by one submission.
async fn download_at_once(
    context: &Arc<Context>,
    src: MemoryRange<'_>,
    out: &mut [u8],
) -> Result<()> {
    let mut list = CommandList { read_by_host: true, ..Default::default() };
    let mut chunks = Vec::with_capacity(out.len().div_ceil(BLOCK_SIZE));
    for (out, offset) in out.chunks_mut(BLOCK_SIZE).zip((0..).step_by(BLOCK_SIZE)) {
        let memory = readback_memory(context, out.len()).await?;
        push_copy(&mut list, part(src, offset, out.len()), &memory);
        chunks.push((memory, out));
    }
    wait_for_room_in_flight(context).await?;
    let submission = context.submit_now(list, false)?;
    for (memory, out) in chunks {
        receive(context, src.1.memory, Chunk { submission, memory, out }).await?;
    }
    Ok(())
}

/// Copies all bytes to `copy`, and downloads that in chunks, some of which are in flight at once.
async fn download_copy(
    context: &Arc<Context>,
    src: MemoryRange<'_>,
    copy: &Arc<Memory>,
    out: &mut [u8],
) -> Result<()> {
    wait_for_room_in_flight(context).await?;
    let mut list = CommandList::default();
    push_copy(&mut list, src, copy);
    context.submit_now(list, false)?;
    let mut in_flight: VecDeque<Chunk<'_>> = VecDeque::with_capacity(MAX_CHUNKS_IN_FLIGHT);
    for (out, offset) in out.chunks_mut(BLOCK_SIZE).zip((0..).step_by(BLOCK_SIZE)) {
        if in_flight.len() == MAX_CHUNKS_IN_FLIGHT
            && let Some(chunk) = in_flight.pop_front()
        {
            receive(context, src.1.memory, chunk).await?;
        }
        let memory = readback_memory(context, out.len()).await?;
        let mut list = CommandList { read_by_host: true, ..Default::default() };
        push_copy(&mut list, part((copy, copy.whole()), offset, out.len()), &memory);
        wait_for_room_in_flight(context).await?;
        let submission = context.submit_now(list, false)?;
        in_flight.push_back(Chunk { submission, memory, out });
    }
    for chunk in in_flight {
        receive(context, src.1.memory, chunk).await?;
    }
    Ok(())
}

/// Appends a copy of a range to the start of other memory.
fn push_copy(list: &mut CommandList, (from, src): MemoryRange<'_>, to: &Arc<Memory>) {
    let dst = part((to, to.whole()), 0, src.size as usize).1;
    list.push(Command::Copy { src, dst }, [from, to]);
}

/// Returns readback memory of at least `size` ≤ [`BLOCK_SIZE`] bytes.
async fn readback_memory(context: &Arc<Context>, size: usize) -> Result<Arc<Memory>> {
    if size > MAX_UNPOOLED
        && let Some(block) = context.staging.blocks.take()
    {
        return Ok(block);
    }
    let size = if size > MAX_UNPOOLED { BLOCK_SIZE } else { size };
    allocate(context, MemoryKind::Readback, size as u64, "download").await
}

/// Waits for a chunk of an allocation and copies it into its part of the output.
async fn receive(context: &Arc<Context>, read: MemoryId, chunk: Chunk<'_>) -> Result<()> {
    let Chunk { submission, memory, out } = chunk;
    Completion::for_reading(context, submission, read).await?;
    transfer::read(context, &memory, out)?;
    context.staging.blocks.put(memory);
    Ok(())
}
