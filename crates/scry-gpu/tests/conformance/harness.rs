//! Runs kernels on words, and compares with the host's results.

use scry_gpu::{Binding, Device, Launch, Result, UntypedBuffer};

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
