//! The stops of the tour: each operation, its sizes, and its reference on the host.

mod images;
mod indices;
mod points;
mod products;
mod random;
mod rows;
mod sorts;
mod sums;
mod weights;

use std::collections::BTreeSet;
use std::error::Error;
use std::time::Duration;

use scry_gpu::{Buffer, Device, Element, GpuError};
use scry_kernels::{Kernels, Op, operations};

/// The result of a stop.
pub type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

/// Timed runs of an operation, of which the fastest counts.
const RUNS: usize = 5;

/// The tour of one device.
pub struct Tour {
    gpu: Device,
    kernels: Kernels,
    /// Multiplies the sizes.
    scale: usize,
    /// The operations so far.
    shown: BTreeSet<&'static str>,
}

/// Runs every operation of the library, and prints a line for each.
///
/// # Errors
/// A result that differs from the reference; an operation that the tour misses; the errors of the
/// device.
pub fn run(gpu: &Device, scale: usize) -> Result {
    println!("{} ({}), sizes times {scale}", gpu.name(), gpu.backend_kind());
    println!("{:<18} {:<32} {:<16} {:>10}  rate", "operation", "sizes", "variant", "time");
    let kernels = Kernels::new(gpu)?;
    let mut tour = Tour { gpu: gpu.clone(), kernels, scale, shown: BTreeSet::new() };
    products::visit(&mut tour)?;
    rows::visit(&mut tour)?;
    sums::visit(&mut tour)?;
    sorts::visit(&mut tour)?;
    weights::visit(&mut tour)?;
    indices::visit(&mut tour)?;
    images::visit(&mut tour)?;
    points::visit(&mut tour)?;
    random::visit(&mut tour)?;
    let missing: Vec<_> =
        operations().iter().map(|it| it.name).filter(|name| !tour.shown.contains(name)).collect();
    match missing.as_slice() {
        [] => Ok(()),
        _ => Err(format!("the tour has no stop for {}", missing.join(", ")).into()),
    }
}

impl Tour {
    /// Runs an operation once and checks its result; then measures and prints a line. It moves this
    /// many bytes of operands and results.
    fn show(
        &mut self,
        name: &'static str,
        sizes: &str,
        op: scry_gpu::Result<Op>,
        bytes: usize,
        check: impl FnOnce() -> Result,
    ) -> Result {
        assert!(self.shown.insert(name), "{name} has one stop");
        let op = match op {
            Ok(op) => op,
            Err(error @ GpuError::Capability(_)) => {
                println!("{name:<18} {sizes:<32} skipped: {error}");
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        op.run()?;
        check().map_err(|error| format!("{name}, {sizes}, {}: {error}", op.explain().variant()))?;
        let mut fastest = Duration::MAX;
        for _ in 0..RUNS {
            let mut batch = self.gpu.batch();
            op.add_to(&mut batch)?;
            fastest = fastest.min(batch.submit_timed()?.iter().sum());
        }
        let (micros, variant) = (fastest.as_secs_f64() * 1e6, op.explain().variant());
        let rate = bytes as f64 / micros / 1e3;
        println!("{name:<18} {sizes:<32} {variant:<16} {micros:>7.1} µs  {rate:.2} GB/s");
        Ok(())
    }

    /// Uploads numbers; also returns them.
    fn upload<T: Element>(&self, numbers: Vec<T>) -> Result<(Buffer<T>, Vec<T>)> {
        Ok((self.gpu.upload(&numbers)?, numbers))
    }

    /// Uploads random numbers between -1 and 1; also returns them.
    fn random(&self, seed: u32, count: usize) -> Result<(Buffer<f32>, Vec<f32>)> {
        self.upload(numbers(seed, count))
    }
}

/// Returns random words, the same for the same seed.
fn words(seed: u32, count: usize) -> Vec<u32> {
    let word = |at: usize| {
        let bits = (at as u32 ^ seed.rotate_left(16)).wrapping_mul(0x9e37_79b9);
        let mixed = (bits ^ (bits >> 15)).wrapping_mul(0x2c1b_3c6d);
        mixed ^ (mixed >> 13)
    };
    (0..count).map(word).collect()
}

/// Returns random numbers between -1 and 1, the same for the same seed.
fn numbers(seed: u32, count: usize) -> Vec<f32> {
    words(seed, count).iter().map(|word| (word >> 8) as f32 / (1 << 23) as f32 - 1.0).collect()
}

/// Checks that the first results are within `tolerance` of the expected ones, relative to the
/// larger of their magnitude and 1.
fn check<T: Element + Into<f64>>(results: &Buffer<T>, expected: &[f64], tolerance: f64) -> Result {
    let results = results.download()?;
    for (nth, (result, expected)) in results.into_iter().zip(expected).enumerate() {
        let result: f64 = result.into();
        // Written so that NaN is an error.
        let is_close = (result - expected).abs() <= tolerance * expected.abs().max(1.0);
        if !is_close {
            return Err(format!("result {nth} is {result}, expected {expected}").into());
        }
    }
    Ok(())
}

/// Checks that the first results are the expected ones.
fn check_equal<T: Element + PartialEq + std::fmt::Debug>(
    results: &Buffer<T>,
    expected: &[T],
) -> Result {
    let results = results.download()?;
    match results.iter().zip(expected).position(|(result, expected)| result != expected) {
        None => Ok(()),
        Some(nth) => {
            let (result, expected) = (&results[nth], &expected[nth]);
            Err(format!("result {nth} is {result:?}, expected {expected:?}").into())
        }
    }
}

/// Returns numbers as f64.
fn wide(numbers: &[f32]) -> Vec<f64> {
    numbers.iter().map(|number| f64::from(*number)).collect()
}

/// Returns the inner product.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
