//! Devices that run the kernels, the null device, and comparisons with references.

use scry_gpu::testing::{self, Observed};
use scry_gpu::{BackendKind, Buffer, Device, GemmElement, bf16, f16};
use scry_kernels::{KernelOptions, Kernels};
use scry_test_support::{devices, random_f32, succeed};

/// The compute capability on which all kernels of the library run.
const REQUIRED_CAPABILITY: [u16; 2] = [9, 0];

/// Returns the library with the PTX variants on each CUDA device of capability 9.0; prints what is
/// skipped.
pub fn kernels() -> Vec<Kernels> {
    let cuda = devices().into_iter();
    let cuda = cuda.filter(|gpu| gpu.backend_kind() == BackendKind::Cuda);
    let (supported, others): (Vec<_>, Vec<_>) =
        cuda.partition(|gpu| gpu.info().compute_capability == Some(REQUIRED_CAPABILITY));
    for gpu in others {
        eprintln!("skipped {}: it is not of compute capability 9.0", gpu.name());
    }
    if supported.is_empty() {
        eprintln!("skipped: no CUDA device of compute capability 9.0 is present");
    }
    supported.iter().map(ptx_kernels).collect()
}

/// Returns the library with the PTX variants on a device.
pub fn ptx_kernels(gpu: &Device) -> Kernels {
    having_variant(&succeed(Kernels::new(gpu)), "ptx")
}

/// Returns the library of the same device with another variant.
pub fn having_variant(kernels: &Kernels, variant: &str) -> Kernels {
    let variant = Some(variant.to_owned());
    kernels.having(KernelOptions { variant, ..Default::default() })
}

/// Returns the library on a null device with this compute capability, which validates calls and
/// executes no kernels; and a log of the submitted commands. The library chooses the variants.
pub fn null_kernels(capability: [u16; 2]) -> (Kernels, Observed) {
    let mut info = testing::null_info();
    info.compute_capability = Some(capability);
    info.multiprocessors = Some(132);
    info.limits.max_workgroup_memory = 227 << 10;
    let (gpu, log) = testing::observed(info);
    (succeed(Kernels::new(&gpu)), log)
}

/// Returns the library on a null device with the properties of an H200.
pub fn null_h200_kernels() -> Kernels {
    null_kernels(REQUIRED_CAPABILITY).0
}

/// An element type of the kernels.
pub trait TestElement: GemmElement {
    /// A value that no kernel writes.
    const POISON: Self;
    /// Maximum error, relative to the scale of a comparison.
    const TOLERANCE: f64;
    /// Rounds to the nearest value of the type.
    fn round_f32(number: f32) -> Self;
    /// Converts exactly.
    fn to_f64(self) -> f64;
}

impl TestElement for f32 {
    const POISON: Self = Self::NAN;
    const TOLERANCE: f64 = 1e-5;

    fn round_f32(number: f32) -> Self {
        number
    }

    fn to_f64(self) -> f64 {
        self.into()
    }
}

impl TestElement for f16 {
    const POISON: Self = Self::NAN;
    const TOLERANCE: f64 = 1e-2;

    fn round_f32(number: f32) -> Self {
        Self::from_f32(number)
    }

    fn to_f64(self) -> f64 {
        self.to_f64()
    }
}

impl TestElement for bf16 {
    const POISON: Self = Self::NAN;
    const TOLERANCE: f64 = 1e-2;

    fn round_f32(number: f32) -> Self {
        Self::from_f32(number)
    }

    fn to_f64(self) -> f64 {
        self.to_f64()
    }
}

/// Returns random numbers between -1 and 1, the same for the same seed.
pub fn random<T: TestElement>(seed: u64, count: usize) -> Vec<T> {
    random_f32(seed, count).into_iter().map(T::round_f32).collect()
}

/// Creates a buffer of values that no kernel writes.
pub fn poisoned<T: TestElement>(gpu: &Device, count: usize) -> Buffer<T> {
    succeed(gpu.upload(&vec![T::POISON; count]))
}

/// Checks that no result differs from its expected value by more than `T::TOLERANCE * scale`.
/// `scale` is the magnitude of the terms of a result, such as the sum of absolute products.
pub fn assert_close<T: TestElement>(what: &str, scale: f64, results: &[(T, f64)]) {
    for (i, (result, expected)) in results.iter().enumerate() {
        let result = result.to_f64();
        // The comparison is false for NaN.
        let is_close = (result - expected).abs() <= T::TOLERANCE * scale;
        assert!(is_close, "{what}: result {i} is {result}, expected {expected}");
    }
}
