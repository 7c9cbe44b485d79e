//! Code shared by drivers: locks, checks of commands, the kernel for copies, the self-test of
//! cooperative matrices, waiting by polling, waiting for cancelled work, timers.

#[cfg(any(cuda, vulkan, wgpu))]
pub(super) mod cancellation;
#[cfg(any(cuda, vulkan, wgpu))]
pub(super) mod command_checks;
pub(crate) mod copy_kernel;
#[cfg(any(feature = "cpu", cuda, vulkan, wgpu))]
pub(super) mod locks;
#[cfg(any(vulkan, wgpu))]
pub(super) mod loop_limits;
#[cfg(any(vulkan, all(test, feature = "cpu")))]
pub(super) mod matrix_self_test;
#[cfg(any(cuda, vulkan, wgpu))]
pub(super) mod poll;
#[cfg(any(cuda, vulkan, wgpu))]
pub(super) mod timers;
