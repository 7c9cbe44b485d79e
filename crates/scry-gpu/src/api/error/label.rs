//! The name of a kernel's source, and of a kernel, in errors.

/// The name of a kernel's source.
pub(super) type Label = Option<String>;

/// The entry point of a kernel.
pub(super) type EntryPoint = Option<String>;

/// Returns the prefix of an error text that names a kernel's source.
pub(super) fn label_prefix(label: &Label) -> String {
    label.as_ref().map(|label| format!("{label}: ")).unwrap_or_default()
}
