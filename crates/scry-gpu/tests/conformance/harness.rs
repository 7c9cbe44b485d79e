//! Runs kernels on words, and compares with the host's results.

use scry_gpu::{BackendKind, Binding, Device, Launch, Result, UntypedBuffer};

/// Uploads words as a buffer that binds to every WGSL type.
#[track_caller]
pub fn upload_words(gpu: &Device, words: &[u32]) -> UntypedBuffer {
    succeed(succeed(gpu.upload(words)).untyped().view_as(None))
}

/// Reads the words of a buffer.
#[track_caller]
pub fn download_words(buffer: &UntypedBuffer) -> Vec<u32> {
    succeed(succeed(buffer.typed::<u32>()).download())
}

/// Returns whether a device skips a case: `frexp` of 16- and 64-bit floats, for which naga writes
/// an exponent type that SPIR-V does not allow.
pub fn is_left_out(gpu: &Device, ty: &str, expression: &str) -> bool {
    let left_out =
        gpu.backend_kind() == BackendKind::Vulkan && ty != "f32" && expression.contains("frexp(");
    if left_out {
        eprintln!(
            "{}: {expression} of {ty} is skipped: naga's SPIR-V of it is invalid",
            gpu.name()
        );
    }
    left_out
}

/// Runs a test on every device, naming each.
pub fn on_each_device(test: impl Fn(&Device)) {
    for gpu in crate::support::devices() {
        eprintln!("on {} ({})", gpu.name(), gpu.backend_kind());
        test(&gpu);
    }
}

/// The value, or a panic that shows the error as users see it.
#[track_caller]
pub fn succeed<T>(result: Result<T>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{error}"),
    }
}

/// Returns the text of an error; panics on success.
#[track_caller]
pub fn refused<T>(result: Result<T>) -> String {
    match result {
        Ok(_) => panic!("this should have been rejected"),
        Err(error) => error.to_string(),
    }
}

/// Asserts that a text contains each part.
#[track_caller]
pub fn assert_says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is missing in: {text}");
    }
}

/// Runs a kernel whose last binding is an output of words, initially all ones, and returns it.
#[track_caller]
pub fn run_words(
    gpu: &Device,
    source: &str,
    inputs: &[&[u32]],
    output: usize,
    launch: Launch,
) -> Vec<u32> {
    let output = succeed(gpu.upload(&vec![u32::MAX; output]));
    let inputs: Vec<_> = inputs.iter().map(|data| upload_words(gpu, data)).collect();
    let mut bindings: Vec<&dyn Binding> = inputs.iter().map(|b| b as &dyn Binding).collect();
    bindings.push(&output);
    let kernel = succeed(gpu.compile(source));
    succeed(gpu.run(&kernel, &bindings, launch));
    succeed(output.download())
}

/// A launch of one workgroup.
pub fn one_workgroup() -> Launch {
    Launch::workgroups([1, 1, 1])
}

/// Words, the same for the same seed.
pub struct Words(pub u32);

impl Iterator for Words {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        // A Weyl sequence through a mixer.
        self.0 = self.0.wrapping_add(0x9e37_79b9);
        let mut word = self.0;
        word = (word ^ (word >> 16)).wrapping_mul(0x21f0_aaad);
        word = (word ^ (word >> 15)).wrapping_mul(0x735a_2d97);
        Some(word ^ (word >> 15))
    }
}
