//! Faults of a group: what happened, in words that are true for every rank.

use std::time::Duration;

use crate::api::error::{GpuError, GroupError, GroupFault};
use crate::core::collective::Seat;

/// Why a group cannot be formed or used. Every rank gets the same one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    pub kind: GroupFault,
    /// The ranks at fault, sorted.
    pub ranks: Vec<usize>,
    pub problem: String,
    pub help: String,
}

impl Fault {
    pub(super) fn new(
        kind: GroupFault,
        ranks: impl Into<Vec<usize>>,
        problem: impl Into<String>,
        help: &str,
    ) -> Self {
        let (mut ranks, problem, help) = (ranks.into(), problem.into(), help.to_owned());
        ranks.sort_unstable();
        Self { kind, ranks, problem, help }
    }

    /// A rank is gone: `how` is the predicate of the sentence.
    pub(super) fn lost(rank: usize, how: &str) -> Self {
        Self::new(
            GroupFault::Lost,
            [rank],
            format!("rank {rank} {how}"),
            "see the output of that rank, and form a new group",
        )
    }

    /// A rank has left, and another one needs it.
    pub(super) fn left(rank: usize) -> Self {
        Self::new(
            GroupFault::Lost,
            [rank],
            format!("rank {rank} has left the group"),
            "make the same calls on every rank, and keep each DeviceGroup until its last call; if \
             that rank failed, see its output",
        )
    }

    /// The device of a rank failed in the middle of a call.
    pub(super) fn device_failed(rank: usize) -> Self {
        Self::lost(rank, "could not read or write its buffers")
    }

    /// A forked process uses the group of its parent.
    pub(super) fn forked(rank: usize) -> Self {
        Self::new(
            GroupFault::Lost,
            [rank],
            format!("rank {rank} joined before a fork, and is the process that forked"),
            "form a group after the fork",
        )
    }

    /// Rank 0 does not answer a call of another process.
    pub(super) fn coordinator_is_silent(limit: Duration) -> Self {
        Self::new(
            GroupFault::Unresponsive,
            [0],
            format!("rank 0, which coordinates the group, did not answer within {limit:?}"),
            "check that its process runs and its host can be reached, and form a new group",
        )
    }

    /// The connection to a rank failed: `how` completes "the connection to rank R".
    pub(super) fn connection(rank: usize, how: &str) -> Self {
        Self::new(
            GroupFault::Lost,
            [rank],
            format!("the connection to rank {rank} {how}"),
            "see the output of that rank, check that its process runs, and form a new group",
        )
    }

    /// A rank sent what no rank sends.
    pub(super) fn protocol(rank: usize, what: &str) -> Self {
        Self::new(
            GroupFault::Network,
            [rank],
            format!("rank {rank} sent {what}"),
            "run the same version of scry-gpu on every rank, and form a new group",
        )
    }

    /// The wait of a rank was interrupted by the program.
    pub(super) fn interrupted(rank: usize) -> Self {
        Self::new(
            GroupFault::Unresponsive,
            [rank],
            format!("rank {rank} was interrupted by Device::interrupt"),
            "form a new group",
        )
    }

    /// Returns the fault of an error; `None` for errors that are not of a group.
    pub(super) fn of_error(error: &GpuError) -> Option<Self> {
        let GpuError::Group(error) = error else { return None };
        let GroupError { fault, ranks, problem, help, .. } = error.clone();
        Some(Self { kind: fault, ranks, problem, help })
    }

    /// Returns the error for the caller at `seat`.
    pub(super) fn error(self, seat: Seat, function: &'static str) -> GpuError {
        let Self { kind: fault, ranks, problem, help } = self;
        let Seat { rank, world: world_size } = seat;
        let function = Some(function.into());
        GpuError::Group(GroupError { function, rank, world_size, fault, ranks, problem, help })
    }
}

/// Returns `rank 3`, `ranks 1 and 3`, `ranks 0, 1 and 3`.
pub(super) fn ranks_text(ranks: &[usize]) -> String {
    match ranks {
        [] => "no rank".to_owned(),
        [rank] => format!("rank {rank}"),
        [first @ .., last] => {
            let first: Vec<String> = first.iter().map(usize::to_string).collect();
            format!("ranks {} and {last}", first.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_listed() {
        assert_eq!(ranks_text(&[3]), "rank 3");
        assert_eq!(ranks_text(&[0, 3]), "ranks 0 and 3");
        assert_eq!(ranks_text(&[0, 1, 3]), "ranks 0, 1 and 3");
    }

    #[test]
    fn errors_name_caller_and_cause() {
        let seat = Seat { rank: 1, world: 4 };
        let error = Fault::lost(2, "ended").error(seat, "DeviceGroup::all_reduce");
        assert_eq!(
            error.to_string(),
            "DeviceGroup::all_reduce: rank 1 of 4: rank 2 ended; help: see the output of that \
             rank, and form a new group"
        );
        let GpuError::Group(error) = error else { panic!("{error}") };
        assert_eq!((error.rank(), error.world_size(), error.ranks()), (1, 4, &[2][..]));
        assert_eq!(error.fault(), GroupFault::Lost);
    }
}
