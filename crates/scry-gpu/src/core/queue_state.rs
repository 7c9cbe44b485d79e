//! The state of a device's submissions: hazards, and what unfinished ones keep alive.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::core::command::{Command, Step};
use crate::core::command_list::{Replay, Retained};
use crate::core::driver_recording::{DriverRecording, Part};
use crate::core::failures::ReportReadback;
use crate::core::handles::SubmissionIndex;
use crate::core::hazard::Hazards;
use crate::core::memory::Memory;

/// Number of unfinished submissions from which a call waits for the oldest ones before it submits.
/// This bounds the memory of a loop of launches, and avoids blocking inside the driver, where no
/// time limit applies: NVIDIA's queue holds about 1000 operations, of which a submission needs 3.
pub(crate) const MAX_IN_FLIGHT: usize = 256;

/// The mutable state of the queue.
#[derive(Default)]
pub(super) struct QueueState {
    pub(super) hazards: Hazards,
    /// Hazard tracking assumed barriers of a submission that did not succeed: the next one orders
    /// everything.
    pub(super) order_all_next: bool,
    pub(super) in_flight: VecDeque<InFlight>,
    pub(super) last: Option<SubmissionIndex>,
}

/// A submission that may be unfinished.
pub(super) struct InFlight {
    pub(super) submission: SubmissionIndex,
    /// Kept alive until dropped; never read.
    pub(super) _retained: Vec<Retained>,
    pub(super) _memories: Vec<Arc<Memory>>,
    /// The failure reports of its launches.
    pub(super) readback: Option<ReportReadback>,
}

impl InFlight {
    /// Creates the entry of a replay, or of the commands that precede or follow it.
    pub(super) fn for_replay(submission: SubmissionIndex, recorded: &Arc<DriverRecording>) -> Self {
        let _retained: Vec<Retained> = vec![recorded.clone()];
        Self { submission, _retained, _memories: Vec::new(), readback: None }
    }

    pub(super) fn readback(&self) -> Option<(SubmissionIndex, &ReportReadback)> {
        self.readback.as_ref().map(|readback| (self.submission, readback))
    }
}

impl QueueState {
    /// Returns the commands as steps with barriers, on the assumption that they will be submitted.
    pub(super) fn schedule(&mut self, commands: impl IntoIterator<Item = Command>) -> Vec<Step> {
        // Until the driver has accepted them.
        if !std::mem::replace(&mut self.order_all_next, true) {
            return self.hazards.schedule(commands);
        }
        let mut steps = vec![Step::Barrier(self.hazards.order_all())];
        steps.extend(self.hazards.schedule(commands));
        steps
    }

    /// Returns commands and replays as parts of one submission, as [`Self::schedule`] does. The
    /// positions of the replays count the commands after the first `fill_count`.
    pub(super) fn schedule_with_replays(
        &mut self,
        commands: impl IntoIterator<Item = Command>,
        fill_count: usize,
        replays: &[Replay],
    ) -> Vec<Part> {
        let mut commands = commands.into_iter();
        let (mut parts, mut done) = (Vec::with_capacity(2 * replays.len() + 1), 0);
        let mut schedule = |state: &mut Self, count: usize, parts: &mut Vec<Part>| {
            let steps = state.schedule(commands.by_ref().take(count));
            if !steps.is_empty() {
                parts.push(Part::Steps(steps));
            }
        };
        for Replay { position, recorded } in replays {
            schedule(self, fill_count + position - done, &mut parts);
            done = fill_count + position;
            parts.push(Part::Replay(recorded.id()));
            // A recording begins with a barrier after all earlier work.
            self.hazards.copy_from(recorded.hazards());
            self.order_all_next = false;
        }
        schedule(self, usize::MAX, &mut parts);
        parts
    }

    pub(super) fn excess_in_flight(&self) -> Option<SubmissionIndex> {
        let last = self.in_flight.len().checked_sub(MAX_IN_FLIGHT)?;
        self.in_flight.get(last).map(|entry| entry.submission)
    }

    pub(super) fn push(&mut self, entry: InFlight) {
        self.last = Some(entry.submission);
        self.in_flight.push_back(entry);
    }
}
