//! Which devices run the kernels, and a device that only checks.

use scry_gpu::cuda::kernels::Kernels;
use scry_gpu::testing::{self, Observed};
use scry_gpu::{BackendKind, Buffer, Device, Factor, Result, bf16, f16};

use crate::support::random_f32;

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

/// An element of any of the types that kernels take.
pub trait Number: Factor {
    /// What no kernel writes.
    const POISON: Self;
    /// Largest error allowed, relative to the sum of absolute products.
    const BOUND: f64;
    /// The nearest to a number.
    fn of(number: f32) -> Self;
    /// The same number.
    fn wide(self) -> f64;
}

impl Number for f32 {
    const POISON: Self = Self::NAN;
    const BOUND: f64 = 1e-5;

    fn of(number: f32) -> Self {
        number
    }

    fn wide(self) -> f64 {
        self.into()
    }
}

impl Number for f16 {
    const POISON: Self = Self::NAN;
    const BOUND: f64 = 1e-2;

    fn of(number: f32) -> Self {
        Self::from_f32(number)
    }

    fn wide(self) -> f64 {
        self.to_f64()
    }
}

impl Number for bf16 {
    const POISON: Self = Self::NAN;
    const BOUND: f64 = 1e-2;

    fn of(number: f32) -> Self {
        Self::from_f32(number)
    }

    fn wide(self) -> f64 {
        self.to_f64()
    }
}

/// Random numbers between -1 and 1.
pub fn random<T: Number>(seed: u64, count: usize) -> Vec<T> {
    random_f32(seed, count).into_iter().map(T::of).collect()
}

/// A buffer of what no kernel writes.
pub fn poisoned<T: Number>(gpu: &Device, count: usize) -> Buffer<T> {
    succeed(gpu.upload(&vec![T::POISON; count]))
}

/// Fails unless all errors are within the bound of the type: each result comes with what it should
/// be, and all of them with the largest sum of absolute products.
pub fn assert_close<T: Number>(what: &str, scale: f64, results: &[(T, f64)]) {
    for (nth, (got, want)) in results.iter().enumerate() {
        // Written so that a NaN fails.
        let close = (got.wide() - want).abs() <= T::BOUND * scale;
        assert!(close, "{what}: result {nth} is {}, it should be {want}", got.wide());
    }
}
