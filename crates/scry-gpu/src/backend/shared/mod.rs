//! Code shared by drivers: locks, checks of commands, the kernel for copies, the self-test of
//! cooperative matrices, waiting by polling, waiting for cancelled work, timers.

#[cfg(any(
    feature = "cuda",
    feature = "vulkan",
    feature = "wgpu",
    target_vendor = "apple",
    target_arch = "wasm32"
))]
pub(super) mod cancellation;
#[cfg(any(
    feature = "cuda",
    feature = "vulkan",
    feature = "wgpu",
    target_vendor = "apple",
    target_arch = "wasm32"
))]
pub(super) mod command_checks;
pub(crate) mod copy_kernel;
#[cfg(any(
    feature = "cpu",
    feature = "cuda",
    feature = "vulkan",
    feature = "wgpu",
    target_vendor = "apple",
    target_arch = "wasm32"
))]
pub(super) mod locks;
#[cfg(any(feature = "vulkan", feature = "wgpu", target_vendor = "apple", target_arch = "wasm32"))]
pub(super) mod loop_limits;
#[cfg(any(feature = "vulkan", all(test, feature = "cpu")))]
pub(super) mod matrix_self_test;
#[cfg(any(
    feature = "cuda",
    feature = "vulkan",
    feature = "wgpu",
    target_vendor = "apple",
    target_arch = "wasm32"
))]
pub(super) mod poll;
#[cfg(any(
    feature = "cuda",
    feature = "vulkan",
    feature = "wgpu",
    target_vendor = "apple",
    target_arch = "wasm32"
))]
pub(super) mod timers;
