//! The public function that was called, as errors name it.

use std::borrow::Cow;

/// The function that the program called, such as `Device::upload`.
pub(super) type Function = Option<Cow<'static, str>>;

/// Returns the prefix of an error text that names the function that was called.
pub(super) fn function_prefix(function: &Function) -> String {
    function.as_ref().map(|function| format!("{function}: ")).unwrap_or_default()
}
