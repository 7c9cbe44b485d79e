//! A recording of a driver, with what its replays need.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::core::command::BufferRange;
use crate::core::command_list::CommandList;
use crate::core::driver::Driver;
use crate::core::handles::{MemoryId, RecordingId};
use crate::core::hazard::Hazards;

/// Steps prepared by a driver for repeated execution.
pub(crate) struct DriverRecording {
    pub(super) driver: Arc<dyn Driver>,
    pub(super) id: RecordingId,
    pub(super) list: CommandList,
    /// Launches of a replay that the caller requested.
    pub(super) launches: u64,
    /// The allocations that a replay writes, if observers need them.
    pub(super) written: Option<Arc<[MemoryId]>>,
    /// The accesses of a replay that later commands may have to wait for.
    pub(super) hazards: Hazards,
    /// Set once the memory of the recording is initialised.
    pub(super) initialised: OnceLock<()>,
    /// Some of the ranges that the commands read before they overwrite them, for writes that
    /// precede a replay.
    pub(super) inputs: Mutex<Vec<BufferRange>>,
}

/// Maximum number of input ranges that a recording remembers.
const MAX_INPUTS: usize = 64;

impl DriverRecording {
    pub(crate) fn list(&self) -> &CommandList {
        &self.list
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

impl DriverRecording {
    /// Returns the number of commands in the recorded batch.
    pub(crate) fn command_count(&self) -> usize {
        self.list.commands.len()
    }
}

impl Drop for DriverRecording {
    fn drop(&mut self) {
        self.driver.free_recording(self.id);
    }
}
