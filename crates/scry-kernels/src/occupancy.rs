//! How many workgroups and invocations work on something.

use scry_gpu::BackendKind;

use crate::kernels::Kernels;

/// Returns how many workgroups of 256 invocations occupy a device: as many as are resident
/// together, if each multiprocessor of an NVIDIA GPU has `per_multiprocessor`.
pub(crate) fn resident_workgroups(kernels: &Kernels, per_multiprocessor: u64) -> u64 {
    let info = kernels.device().info();
    match (info.multiprocessors, info.backend) {
        (Some(multiprocessors), _) => u64::from(multiprocessors) * per_multiprocessor,
        (None, BackendKind::Cpu) => 32,
        (None, _) => 512,
    }
}

/// Returns the smallest power of 4 that is at least `size`: where sizes are constants of kernels,
/// few of them are compiled.
pub(crate) fn power_of_4(size: u64) -> u64 {
    let power = size.next_power_of_two();
    if power.trailing_zeros().is_multiple_of(2) { power } else { 2 * power }
}
