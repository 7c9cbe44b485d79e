//! Inputs of a replay: data that is written before the commands of a recording.

use std::sync::Arc;

use crate::api::element;
use crate::api::elements::Elements;
use crate::api::error::{BufferAccessError, GpuError, InFunction, Result};
use crate::api::recording::Recording;
use crate::api::ticket::Ticket;
use crate::core::command::{BufferRange, Command};
use crate::core::command_list::{CommandList, FirstUse};
use crate::core::context::Context;
use crate::core::driver_recording::DriverRecording;
use crate::core::handles::MemoryKind;
use crate::core::memory::Memory;
use crate::core::same_device::{quoted, same_device};

/// Alignment in bytes of each write's data in the staging memory.
const ALIGNMENT: usize = 16;

/// Data for one replay of a recording: see [`Recording::replay_with`].
#[must_use = "nothing is written or replayed until `submit` is called"]
pub struct ReplayInputs<'r> {
    recording: &'r Recording,
    /// The data of all writes, each aligned.
    bytes: Vec<u8>,
    writes: Vec<Write>,
}

/// A write to part of an allocation.
struct Write {
    /// Offset of its data in [`ReplayInputs::bytes`].
    start: usize,
    memory: Arc<Memory>,
    range: BufferRange,
}

impl<'r> ReplayInputs<'r> {
    pub(crate) fn new(recording: &'r Recording) -> Self {
        Self { recording, bytes: Vec::new(), writes: Vec::new() }
    }

    /// Adds a write of all elements of a buffer, or of a slice of one, or of the bytes of an
    /// untyped buffer; `data` is copied before the call returns. The last of overlapping writes
    /// wins.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let (src, dst) = (gpu.alloc::<u32>(2)?, gpu.alloc::<u32>(2)?);
    /// let copy = gpu.batch().copy(&src, &dst)?.record()?;
    /// copy.replay_with().write(src.slice(1..)?, &[5])?.submit()?.wait()?;
    /// assert_eq!(dst.download()?, [0, 5]);
    /// assert!(copy.replay_with().write(&dst, &[1, 2]).is_err()); // the copy overwrites them
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::BufferAccess`] if `data` has a different length, or if the data would have no
    /// effect: no command of the recording uses the elements, or one overwrites some of them before
    /// they are read, as a recorded [`Batch::write`](crate::Batch::write) does.
    /// [`GpuError::WrongDevice`]. An error leaves the inputs unchanged.
    pub fn write<D: Elements>(&mut self, dst: D, data: &[D::Item]) -> Result<&mut Self> {
        const NAME: &str = "ReplayInputs::write";
        dst.check_len(NAME, data.len())?;
        let (view, role) = (dst.bytes(), || "the destination".to_owned());
        let owner = (view.context, view.label);
        same_device(self.recording.context(), owner, NAME, role)?;
        if let Some((memory, range)) = view.bytes() {
            let reject = |start: &str, end: &str, help: &str| {
                let count = view.size / view.element.size.max(1);
                let name = quoted(view.label);
                Err(GpuError::BufferAccess(BufferAccessError {
                    operation: NAME,
                    problem: format!("the recording {start} the {count} elements of {name}{end}"),
                    help: help.to_owned(),
                }))
            };
            let recorded = self.recording.recorded();
            match recorded.map_or(FirstUse::None, |recorded| recorded.first_use(range)) {
                FirstUse::Read => {}
                FirstUse::None => {
                    return reject("does not use", "", "write elements that it reads");
                }
                FirstUse::Overwrite => {
                    return reject(
                        "overwrites some of",
                        " before it reads them",
                        "leave the write, fill or copy of these elements out of the batch that \
                         is recorded, and write them for the first replay as well",
                    );
                }
            }
            let start = self.bytes.len().next_multiple_of(ALIGNMENT);
            self.bytes.resize(start, 0);
            self.bytes.extend_from_slice(element::bytes_of(data));
            self.writes.push(Write { start, memory: memory.clone(), range });
        }
        Ok(self)
    }

    /// Submits the writes and, after them, the recorded work, as [`Recording::replay`] does; does
    /// not wait. No other submission comes between the writes and the work. Leaves the inputs
    /// empty, even on failure.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let (src, dst) = (gpu.alloc::<u32>(1)?, gpu.alloc::<u32>(1)?);
    /// let copy = gpu.batch().copy(&src, &dst)?.record()?;
    /// let ticket = copy.replay_with().write(&src, &[3])?.submit()?;
    /// ticket.wait()?;
    /// assert_eq!(dst.download()?, [3]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Recording::replay`]; [`GpuError::OutOfMemory`] if staging memory for the data cannot be
    /// allocated. After an error the writes, or even the recorded work, may have been submitted.
    pub fn submit(&mut self) -> Result<Ticket> {
        let (bytes, writes) = (std::mem::take(&mut self.bytes), std::mem::take(&mut self.writes));
        capture(self.recording.context(), &bytes, &writes)
            .and_then(|list| self.recording.replay_after(list))
            .in_function("ReplayInputs::submit")
    }
}

/// Copies the data to staging memory; returns the copies from there to the buffers.
fn capture(context: &Arc<Context>, bytes: &[u8], writes: &[Write]) -> Result<CommandList> {
    let mut list = CommandList::default();
    if writes.is_empty() {
        return Ok(list);
    }
    let size = bytes.len() as u64;
    let source = context.allocate(MemoryKind::Upload, size, "inputs of a replay")?;
    context.note_loss(context.driver.write(source.id(), 0, bytes))?;
    for Write { start, memory, range } in writes {
        let (offset, size) = (source.whole().offset + *start as u64, range.size);
        let src = BufferRange { memory: source.id(), offset, size };
        list.push(Command::Copy { src, dst: *range }, [&source, memory]);
    }
    Ok(list)
}

impl DriverRecording {
    /// Returns how the recorded commands first use a range. Ranges that are read are cached: they
    /// are probably written before each replay.
    fn first_use(&self, range: BufferRange) -> FirstUse {
        if self.is_remembered_input(range) {
            return FirstUse::Read;
        }
        let first_use = self.list().first_use(range);
        if first_use == FirstUse::Read {
            self.remember_input(range);
        }
        first_use
    }
}
