//! Runs a kernel, and compares its output.

use scry_gpu::{Binding, Buffer, Device, Launch, Result};

/// Sizes around the tiles, workgroups and vectors of the kernels.
pub const LENGTHS: [usize; 7] = [1, 7, 33, 127, 256, 1023, 4099];

/// Largest error allowed, relative to the scale of the results.
const TOLERANCE: f64 = 1e-5;

/// Runs a test on every device, naming each.
pub fn on_each_device(test: impl Fn(&Device)) {
    for gpu in crate::support::devices() {
        eprintln!("on {} ({})", gpu.name(), gpu.backend_kind());
        test(&gpu);
    }
}

/// Runs a kernel that writes its last binding, and returns its contents.
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

/// The value, or a panic that shows the error as users see it.
pub fn succeed<T>(result: Result<T>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}

/// Compares with a reference; the largest of its values is the scale.
pub fn assert_close(what: &str, got: &[f32], want: &[f64]) {
    let scale = want.iter().fold(0.0, |scale: f64, value| scale.max(value.abs()));
    assert_close_at(scale, what, got, want);
}

/// Compares with a reference, errors being relative to `scale`.
pub fn assert_close_at(scale: f64, what: &str, got: &[f32], want: &[f64]) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        let error = (f64::from(*got) - want).abs();
        // A NaN fails, too.
        let is_close = error <= TOLERANCE * scale;
        assert!(is_close, "{what}: element {i} is {got}, expected {want}");
    }
}

/// Converts a size for a kernel.
pub fn word(size: usize) -> u32 {
    u32::try_from(size).expect("the sizes of these tests are small")
}
