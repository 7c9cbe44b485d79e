//! Process exit, forks, pinned libraries, and cancellation.

pub(crate) mod cancellation;
pub(crate) mod exit_guard;
pub(crate) mod fork_guard;
#[cfg(vulkan)]
pub(crate) mod pinned_libraries;
