//! Which devices run the kernels, and a device that only checks.

use scry_gpu::cuda::kernels::Kernels;
use scry_gpu::testing::{self, Observed};
use scry_gpu::{BackendKind, Result};

/// The capability that all kernels run on.
const NEEDED: [u16; 2] = [9, 0];

/// The kernels of each CUDA device of capability 9.0; says what it skips.
pub fn kernels() -> Vec<Kernels> {
    let cuda = crate::support::devices().into_iter();
    let cuda = cuda.filter(|gpu| gpu.backend_kind() == BackendKind::Cuda);
    let (able, others): (Vec<_>, Vec<_>) =
        cuda.partition(|gpu| gpu.info().compute_capability == Some(NEEDED));
    for gpu in others {
        eprintln!("skipped {}: it is not of compute capability 9.0", gpu.name());
    }
    if able.is_empty() {
        eprintln!("skipped: no CUDA device of compute capability 9.0 is present");
    }
    able.iter().map(|gpu| succeed(Kernels::new(gpu))).collect()
}

/// A device that claims a compute capability, checks everything and computes nothing.
pub fn pretended(capability: [u16; 2]) -> (Kernels, Observed) {
    let mut info = testing::null_info();
    info.compute_capability = Some(capability);
    info.multiprocessors = Some(132);
    info.limits.max_workgroup_memory = 227 << 10;
    let (gpu, log) = testing::observed(info);
    (succeed(Kernels::new(&gpu)), log)
}

/// The kernels of a device that claims to be an H200.
pub fn checked() -> Kernels {
    pretended(NEEDED).0
}

/// The value, or a panic that shows the error as users see it.
pub fn succeed<T>(result: Result<T>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}
