//! Commands that a driver has prepared for repeated execution.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::core::command::{BufferRange, Step};
use crate::core::command_list::CommandList;
use crate::core::driver::{Driver, Work};
use crate::core::handles::{MemoryId, RecordingId};
use crate::core::hazard::Hazards;

/// Maximum number of input ranges that a recording remembers.
const MAX_INPUTS: usize = 64;

/// Steps prepared by a driver for repeated execution.
pub(crate) struct DriverRecording {
    driver: Arc<dyn Driver>,
    id: RecordingId,
    list: CommandList,
    /// The allocations that the commands use, sorted.
    used: Vec<MemoryId>,
    /// Launches of a replay that the caller requested.
    launches: u64,
    /// The accesses of a replay that later commands may have to wait for.
    hazards: Hazards,
    /// Whether the host reads what a replay copies into `Readback` memory.
    read_by_host: bool,
    /// Set once the memory of the recording is initialised.
    initialised: OnceLock<()>,
    /// Some of the ranges that the commands read before they overwrite them, for writes that
    /// precede a replay.
    inputs: Mutex<Vec<BufferRange>>,
}

impl DriverRecording {
    /// Wraps a recording of the driver, of the commands of a list, which leaves these `hazards`
    /// unordered.
    pub(super) fn new(
        driver: &Arc<dyn Driver>,
        id: RecordingId,
        list: CommandList,
        hazards: Hazards,
        read_by_host: bool,
    ) -> Self {
        let (driver, launches) = (driver.clone(), list.launch_count());
        let (initialised, inputs) = (OnceLock::new(), Mutex::default());
        let mut used: Vec<MemoryId> = list.memories.iter().map(|memory| memory.id()).collect();
        used.sort_unstable();
        used.dedup();
        Self { driver, id, list, used, launches, hazards, read_by_host, initialised, inputs }
    }

    pub(crate) fn id(&self) -> RecordingId {
        self.id
    }

    pub(crate) fn list(&self) -> &CommandList {
        &self.list
    }

    /// Returns whether the commands use an allocation.
    pub(super) fn uses(&self, memory: MemoryId) -> bool {
        self.used.binary_search(&memory).is_ok()
    }

    /// Returns the number of launches of a replay that the caller requested.
    pub(crate) fn launches(&self) -> u64 {
        self.launches
    }

    /// Returns the accesses of a replay that later commands may have to wait for.
    pub(crate) fn hazards(&self) -> &Hazards {
        &self.hazards
    }

    /// Returns whether the host reads what a replay copies into `Readback` memory.
    pub(crate) fn read_by_host(&self) -> bool {
        self.read_by_host
    }

    /// Returns the number of commands in the recorded batch.
    pub(crate) fn command_count(&self) -> usize {
        self.list.commands.len()
    }

    /// Returns whether the memory of the recording is initialised.
    pub(crate) fn is_initialised(&self) -> bool {
        self.initialised.get().is_some()
    }

    /// Marks the memory of the recording as initialised.
    pub(crate) fn mark_initialised(&self) {
        if self.initialised.set(()).is_ok() {
            self.list.mark_initialised();
        }
    }

    /// Returns whether the range is one of those remembered.
    pub(crate) fn is_remembered_input(&self, range: BufferRange) -> bool {
        self.inputs.lock().unwrap_or_else(PoisonError::into_inner).contains(&range)
    }

    /// Remembers a range that the commands read.
    pub(crate) fn remember_input(&self, range: BufferRange) {
        let mut inputs = self.inputs.lock().unwrap_or_else(PoisonError::into_inner);
        if inputs.len() < MAX_INPUTS && !inputs.contains(&range) {
            inputs.push(range);
        }
    }
}

impl Drop for DriverRecording {
    fn drop(&mut self) {
        self.driver.free_recording(self.id);
    }
}

/// A part of a submission with replays.
pub(super) enum Part {
    Steps(Vec<Step>),
    Replay(RecordingId),
}

impl Part {
    pub(super) fn work(&self) -> Work<'_> {
        match self {
            Self::Steps(steps) => Work::Once(steps),
            Self::Replay(id) => Work::Replay(*id),
        }
    }
}
