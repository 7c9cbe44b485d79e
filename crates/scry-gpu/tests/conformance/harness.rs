//! Runs tests on devices, and checks results and errors.

use scry_gpu::{Device, Result};

/// Runs a test on every device, naming each.
pub fn on_each_device(test: impl Fn(&Device)) {
    for gpu in crate::devices::devices() {
        eprintln!("on {} ({})", gpu.name(), gpu.backend_kind());
        test(&gpu);
    }
}

/// Returns the value. Panics with the error's text, as users see it.
#[track_caller]
pub fn succeed<T>(result: Result<T>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{error}"),
    }
}

/// Returns the text of an error; panics on success.
#[track_caller]
pub fn expect_error<T>(result: Result<T>) -> String {
    match result {
        Ok(_) => panic!("this should have been rejected"),
        Err(error) => error.to_string(),
    }
}

/// Checks that a text contains each part.
#[track_caller]
pub fn assert_contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is missing in: {text}");
    }
}
