//! Code shared by drivers: locks, checks of commands, waiting by polling.

#[cfg(any(feature = "cuda", feature = "vulkan"))]
pub(super) mod command_checks;
pub(super) mod locks;
#[cfg(any(feature = "cuda", feature = "vulkan"))]
pub(super) mod poll;
