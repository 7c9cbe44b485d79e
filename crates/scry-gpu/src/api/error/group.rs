//! Errors of device groups.

use super::function::{Function, function_prefix};

type Ranks = Vec<usize>;

/// The cause of a [`GroupError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GroupFault {
    /// A rank did not join within the time limit.
    Absent,
    /// A rank left the group, its process ended, or its device failed.
    Lost,
    /// A rank did not make the call within the time limit, or its wait was interrupted.
    Unresponsive,
    /// Ranks differ in what they call, or in what they state when they join: the number of ranks,
    /// their own rank, the version of scry-gpu, the GPU.
    Mismatch,
    /// Two ranks do not have the same token.
    Token,
    /// The rendezvous cannot be opened or reached, or a rank sent invalid data.
    Network,
}

error_structs! {
    /// A group of devices could not be formed, or a rank of it failed. Form a new group by the same
    /// call, `DeviceGroup::local` or `DeviceGroup::join`.
    #[error(
        "{}rank {rank} of {world_size}: {problem}; help: {help}",
        function_prefix(.function)
    )]
    GroupError {
        /// Returns the function that was called, such as `DeviceGroup::all_reduce`.
        function: Function,
        /// Returns the rank of the caller.
        rank: usize,
        /// Returns the number of ranks of the group.
        world_size: usize,
        /// Returns the cause.
        fault: GroupFault,
        /// Returns the ranks at fault, sorted; empty if none is, as for a rendezvous that cannot be
        /// opened.
        ranks: Ranks,
        /// Returns what happened.
        problem: String,
        /// Returns what to do.
        help: String,
    }
}
