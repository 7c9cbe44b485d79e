//! Checks of errors.

use scry_gpu::Result;

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
