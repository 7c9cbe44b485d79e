//! The function that was called, in errors that arise below it.

use std::borrow::Cow;

/// The function that the program called, such as `Device::upload`.
pub(super) type Function = Option<Cow<'static, str>>;

/// The function that was called, as it stands before the rest of a text.
pub(super) fn called(function: &Function) -> String {
    function.as_ref().map(|function| format!("{function}: ")).unwrap_or_default()
}
