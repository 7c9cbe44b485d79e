//! Asynchronous transfers between host slices and device memory.
//!
//! Each chunk has a staging allocation of its own instead of a slot of the staging rings: a future
//! that is never polled again must not hold a slot that threads wait for.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::api::error::{GpuError, Result};
use crate::core::command::{BufferRange, Command};
use crate::core::command_list::CommandList;
use crate::core::completion::Completion;
use crate::core::context::Context;
use crate::core::handles::{MemoryKind, SubmissionIndex};
use crate::core::memory::Memory;
use crate::core::transfer::MemoryRange;

/// Maximum bytes of one chunk: the host copies a chunk without yielding to other tasks.
const CHUNK: usize = 8 << 20;

/// Chunks of one transfer that may be in flight at once.
const MAX_CHUNKS_IN_FLIGHT: usize = 3;

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
pub(crate) async fn room_in_flight(context: &Arc<Context>) -> Result<()> {
    context.check_alive()?;
    while let Some(oldest) = context.oldest_if_full() {
        Completion::for_memory(context, oldest).await?;
    }
    Ok(())
}

async fn submit(context: &Arc<Context>, list: CommandList) -> Result<SubmissionIndex> {
    room_in_flight(context).await?;
    context.submit_now(list, false)
}

/// Returns the `size` bytes from `offset` on of a range.
fn part(range: BufferRange, offset: usize, size: usize) -> BufferRange {
    BufferRange { memory: range.memory, offset: range.offset + offset as u64, size: size as u64 }
}

/// Copies `data` into device memory. Completes once all of it is captured and submitted.
pub(crate) async fn upload(
    context: &Arc<Context>,
    dst: MemoryRange<'_>,
    data: &[u8],
) -> Result<()> {
    let mut in_flight = VecDeque::with_capacity(MAX_CHUNKS_IN_FLIGHT);
    for (chunk, offset) in data.chunks(CHUNK).zip((0..).step_by(CHUNK)) {
        if in_flight.len() == MAX_CHUNKS_IN_FLIGHT
            && let Some(submission) = in_flight.pop_front()
        {
            Completion::for_memory(context, submission).await?;
        }
        room_in_flight(context).await?;
        let memory = allocate(context, MemoryKind::Upload, chunk.len() as u64, "upload").await?;
        context.note_loss(context.driver.write(memory.id(), 0, chunk))?;
        let src = part(memory.whole(), 0, chunk.len());
        let mut list = CommandList::default();
        let dst_part = part(dst.1, offset, chunk.len());
        list.push(Command::Copy { src, dst: dst_part }, [&memory, dst.0]);
        in_flight.push_back(submit(context, list).await?);
    }
    Ok(())
}

/// Copies device memory into `out`, after all work submitted before.
pub(crate) async fn download(
    context: &Arc<Context>,
    src: MemoryRange<'_>,
    out: &mut [u8],
) -> Result<()> {
    let mut in_flight: VecDeque<(SubmissionIndex, Arc<Memory>, &mut [u8])> =
        VecDeque::with_capacity(MAX_CHUNKS_IN_FLIGHT);
    for (chunk, offset) in out.chunks_mut(CHUNK).zip((0..).step_by(CHUNK)) {
        if in_flight.len() == MAX_CHUNKS_IN_FLIGHT
            && let Some(fetched) = in_flight.pop_front()
        {
            receive(context, src, fetched).await?;
        }
        let size = chunk.len();
        let memory = allocate(context, MemoryKind::Readback, size as u64, "download").await?;
        let mut list = CommandList { read_by_host: true, ..Default::default() };
        let command =
            Command::Copy { src: part(src.1, offset, size), dst: part(memory.whole(), 0, size) };
        list.push(command, [src.0, &memory]);
        in_flight.push_back((submit(context, list).await?, memory, chunk));
    }
    for fetched in in_flight {
        receive(context, src, fetched).await?;
    }
    Ok(())
}

/// Waits for a chunk and copies it into its part of the output.
async fn receive(
    context: &Arc<Context>,
    src: MemoryRange<'_>,
    (submission, memory, out): (SubmissionIndex, Arc<Memory>, &mut [u8]),
) -> Result<()> {
    Completion::for_reading(context, submission, src.1.memory).await?;
    context.note_loss(context.driver.read(memory.id(), 0, out))
}
