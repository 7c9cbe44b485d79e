//! Code shared by drivers: locks, checks of commands, the kernel for copies, waiting by polling,
//! waiting for cancelled work.

#[cfg(any(feature = "cuda", feature = "vulkan"))]
pub(super) mod cancellation;
#[cfg(any(feature = "cuda", feature = "vulkan"))]
pub(super) mod command_checks;
pub(crate) mod copy_kernel;
#[cfg(any(feature = "cpu", feature = "cuda", feature = "vulkan"))]
pub(super) mod locks;
#[cfg(any(feature = "cuda", feature = "vulkan"))]
pub(super) mod poll;
