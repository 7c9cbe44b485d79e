//! Devices that run the kernels, and a device that only checks.

use scry_gpu::cuda::kernels::Kernels;
use scry_gpu::testing::{self, Observed};
use scry_gpu::{BackendKind, Buffer, Device, GemmElement, Result, bf16, f16};

use crate::support::random_f32;

/// The capability that all kernels run on.
const NEEDED: [u16; 2] = [9, 0];

/// Returns the kernels of each CUDA device of capability 9.0; prints what is skipped.
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

/// Returns a null device with a compute capability, which checks everything and computes nothing.
pub fn null_kernels(capability: [u16; 2]) -> (Kernels, Observed) {
    let mut info = testing::null_info();
    info.compute_capability = Some(capability);
    info.multiprocessors = Some(132);
    info.limits.max_workgroup_memory = 227 << 10;
    let (gpu, log) = testing::observed(info);
    (succeed(Kernels::new(&gpu)), log)
}

/// Returns the kernels of a null device with the properties of an H200.
pub fn null_h200_kernels() -> Kernels {
    null_kernels(NEEDED).0
}

/// The value, or a panic that shows the error as users see it.
pub fn succeed<T>(result: Result<T>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}

/// An element type of the kernels.
pub trait TestElement: GemmElement {
    /// A value that no kernel writes.
    const POISON: Self;
    /// Largest error allowed, relative to the sum of absolute products.
    const BOUND: f64;
    /// Rounds to the nearest value.
    fn of(number: f32) -> Self;
    /// Converts to f64.
    fn to_f64(self) -> f64;
}

impl TestElement for f32 {
    const POISON: Self = Self::NAN;
    const BOUND: f64 = 1e-5;

    fn of(number: f32) -> Self {
        number
    }

    fn to_f64(self) -> f64 {
        self.into()
    }
}

impl TestElement for f16 {
    const POISON: Self = Self::NAN;
    const BOUND: f64 = 1e-2;

    fn of(number: f32) -> Self {
        Self::from_f32(number)
    }

    fn to_f64(self) -> f64 {
        self.to_f64()
    }
}

impl TestElement for bf16 {
    const POISON: Self = Self::NAN;
    const BOUND: f64 = 1e-2;

    fn of(number: f32) -> Self {
        Self::from_f32(number)
    }

    fn to_f64(self) -> f64 {
        self.to_f64()
    }
}

/// Random numbers between -1 and 1.
pub fn random<T: TestElement>(seed: u64, count: usize) -> Vec<T> {
    random_f32(seed, count).into_iter().map(T::of).collect()
}

/// Creates a buffer of values that no kernel writes.
pub fn poisoned<T: TestElement>(gpu: &Device, count: usize) -> Buffer<T> {
    succeed(gpu.upload(&vec![T::POISON; count]))
}

/// Fails unless all errors are within the type's bound. Each result is paired with the expected
/// one; `scale` is the largest sum of absolute products.
pub fn assert_close<T: TestElement>(what: &str, scale: f64, results: &[(T, f64)]) {
    for (nth, (got, want)) in results.iter().enumerate() {
        // A NaN fails, too.
        let close = (got.to_f64() - want).abs() <= T::BOUND * scale;
        assert!(close, "{what}: result {nth} is {}, expected {want}", got.to_f64());
    }
}
