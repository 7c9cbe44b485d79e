//! Devices with their variants, element types, and comparisons with references.

use scry_gpu::{Buffer, DType, Device, Element, GpuError, bf16, f16};
use scry_kernels::{KernelOptions, Kernels, Op};
use scry_test_support::{devices, random_f32, succeed};

/// Sizes near powers of two, primes, and one.
pub const SIZES: [usize; 9] = [1, 2, 3, 31, 33, 127, 128, 257, 1009];

/// An element type of floats.
pub trait Float: Element {
    /// A value that no operation writes.
    const POISON: Self;
    /// Half a unit in the last place, relative.
    const EPSILON: f64;
    /// Rounds to the nearest value of the type.
    fn round(number: f32) -> Self;
    /// Converts exactly.
    fn wide(self) -> f64;
}

impl Float for f32 {
    const POISON: Self = Self::NAN;
    const EPSILON: f64 = 6e-8;

    fn round(number: f32) -> Self {
        number
    }

    fn wide(self) -> f64 {
        self.into()
    }
}

impl Float for f16 {
    const POISON: Self = Self::NAN;
    const EPSILON: f64 = 5e-4;

    fn round(number: f32) -> Self {
        Self::from_f32(number)
    }

    fn wide(self) -> f64 {
        self.to_f64()
    }
}

impl Float for bf16 {
    const POISON: Self = Self::NAN;
    const EPSILON: f64 = 4e-3;

    fn round(number: f32) -> Self {
        Self::from_f32(number)
    }

    fn wide(self) -> f64 {
        self.to_f64()
    }
}

/// An element type that is compared bit by bit.
pub trait Bits: Element {
    /// Returns the value with these bits; those that exceed the type are dropped.
    fn from_low_bits(bits: u32) -> Self;
    /// Returns the bits.
    fn bits(self) -> u32;
}

macro_rules! bits {
    ($($ty:ty: $from:expr, $to:expr;)*) => {
        $(impl Bits for $ty {
            fn from_low_bits(bits: u32) -> Self {
                $from(bits)
            }

            fn bits(self) -> u32 {
                $to(self)
            }
        })*
    };
}

bits! {
    f32: f32::from_bits, f32::to_bits;
    f16: |bits| f16::from_bits(bits as u16), |value: f16| value.to_bits().into();
    bf16: |bits| bf16::from_bits(bits as u16), |value: bf16| value.to_bits().into();
    i32: |bits| bits as i32, |value| value as u32;
    u32: |bits| bits, |value| value;
}

/// Returns elements of any bits, NaN among them, the same for the same seed.
pub fn any_bits<T: Bits>(seed: u32, count: usize) -> Vec<T> {
    let bits = |at: usize| (at as u32 ^ seed.rotate_left(16)).wrapping_mul(0x9e37_79b1);
    (0..count).map(|at| T::from_low_bits(bits(at) ^ (bits(at) >> 15))).collect()
}

/// Returns the bits of elements.
pub fn bits_of<T: Bits>(elements: &[T]) -> Vec<u32> {
    elements.iter().map(|element| element.bits()).collect()
}

/// Calls `check` with the library on each device for each variant of an operation by its name.
/// Variants that a device does not support fail with [`GpuError::Capability`]: `check` passes the
/// results of preparing on to [`supported`], which skips them.
pub fn each_variant(operation: &str, check: impl Fn(&Kernels, &str)) {
    let info = scry_kernels::operations().into_iter().find(|it| it.name == operation);
    let info = info.unwrap_or_else(|| panic!("{operation} is an operation"));
    for gpu in devices() {
        let kernels = succeed(Kernels::new(&gpu));
        for variant in &info.variants {
            let options =
                KernelOptions { variant: Some(variant.name.to_owned()), ..Default::default() };
            let name = format!("{operation}, `{}` on {}", variant.name, gpu.name());
            check(&kernels.having(options), &name);
        }
    }
}

/// Returns the operation; `None` if the device does not support the variant or a library is
/// missing.
#[track_caller]
pub fn supported(prepared: scry_gpu::Result<Op>) -> Option<Op> {
    match prepared {
        Ok(op) => Some(op),
        Err(error @ (GpuError::Capability(_) | GpuError::Library(_))) => {
            eprintln!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Returns random numbers between -1 and 1, the same for the same seed.
pub fn random<T: Float>(seed: u64, count: usize) -> Vec<T> {
    random_f32(seed, count).into_iter().map(T::round).collect()
}

/// Creates a buffer of values that no operation writes.
pub fn poisoned<T: Float>(gpu: &Device, count: usize) -> Buffer<T> {
    succeed(gpu.upload(&vec![T::POISON; count]))
}

/// Checks that each result is within `tolerance` half units in the last place of `scale`, which is
/// at least the magnitude of the terms that it is computed from. NaN is expected where the
/// reference is NaN.
#[track_caller]
pub fn assert_close<T: Float>(
    what: &str,
    tolerance: f64,
    scale: f64,
    results: &[T],
    expected: &[f64],
) {
    assert_eq!(results.len(), expected.len(), "{what}");
    for (i, (result, expected)) in results.iter().zip(expected).enumerate() {
        let result = result.wide();
        let limit = tolerance * T::EPSILON * scale + 1e-7;
        let is_close = match expected.is_nan() {
            true => result.is_nan(),
            false => result == *expected || (result - expected).abs() <= limit,
        };
        assert!(is_close, "{what}: result {i} is {result}, expected {expected}");
    }
}

/// The element types of floats, for tests that are generic over them.
#[macro_export]
macro_rules! for_each_float {
    ($check:ident($($argument:expr),*)) => {
        $check::<f32>($($argument),*);
        $check::<scry_gpu::f16>($($argument),*);
        $check::<scry_gpu::bf16>($($argument),*);
    };
}

/// All element types of the library, for tests that are generic over them.
#[macro_export]
macro_rules! for_each_number {
    ($check:ident($($argument:expr),*)) => {
        $crate::for_each_float!($check($($argument),*));
        $check::<i32>($($argument),*);
        $check::<u32>($($argument),*);
    };
}

/// The name of an element type.
pub fn type_name<T: Element>() -> &'static str {
    DType::of::<T>().map_or("?", DType::name)
}

/// Returns the text of the error with which a call on the CPU is rejected.
pub fn error_on_cpu<T>(call: impl Fn(&Kernels) -> scry_gpu::Result<T>) -> String {
    let gpu = succeed(Device::open("cpu"));
    match call(&succeed(Kernels::new(&gpu))) {
        Ok(_) => panic!("it is accepted"),
        Err(error) => error.to_string(),
    }
}
