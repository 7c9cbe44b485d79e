//! Runs a kernel, and compares its output with a reference.

use scry_gpu::{Binding, Buffer, Device, Launch, Result};
use scry_test_support::succeed;

/// Sizes that are not multiples of the kernels' tiles, workgroups and vectors, and some that are.
pub const LENGTHS: [usize; 7] = [1, 7, 33, 127, 256, 1023, 4099];

/// Maximum error, relative to the scale of the results.
const TOLERANCE: f64 = 1e-5;

/// Runs a kernel on `inputs` and an output buffer of this length, its last binding; returns the
/// output.
pub fn run(
    gpu: &Device,
    source: &str,
    inputs: &[&[f32]],
    output: usize,
    launch: Launch,
) -> Vec<f32> {
    let launch = || {
        let kernel = gpu.compile(source)?;
        let inputs = inputs.iter().map(|data| gpu.upload(data));
        let inputs = inputs.collect::<Result<Vec<Buffer<f32>>>>()?;
        let output = gpu.upload(&vec![f32::NAN; output])?;
        let mut bindings: Vec<&dyn Binding> = inputs.iter().map(|b| b as &dyn Binding).collect();
        bindings.push(&output);
        gpu.run(&kernel, &bindings, launch)?;
        output.download()
    };
    succeed(launch())
}

/// Compares with a reference. Errors are relative to the largest expected magnitude.
pub fn assert_close(what: &str, results: &[f32], expected: &[f64]) {
    let scale = expected.iter().fold(0.0, |scale: f64, value| scale.max(value.abs()));
    assert_close_scaled(scale, what, results, expected);
}

/// Compares with a reference. Errors are relative to `scale`.
pub fn assert_close_scaled(scale: f64, what: &str, results: &[f32], expected: &[f64]) {
    assert_eq!(results.len(), expected.len(), "{what}");
    for (i, (result, expected)) in results.iter().zip(expected).enumerate() {
        let error = (f64::from(*result) - expected).abs();
        // The comparison is false for NaN.
        let is_close = error <= TOLERANCE * scale;
        assert!(is_close, "{what}: element {i} is {result}, expected {expected}");
    }
}

/// Converts a size to the type that kernels use.
pub fn to_u32(size: usize) -> u32 {
    u32::try_from(size).expect("the sizes of these tests are small")
}
