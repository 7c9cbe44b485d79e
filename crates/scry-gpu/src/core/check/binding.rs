//! The argument of a binding.

use crate::api::element::ElementLayout;
use crate::core::handles::MemoryId;

/// A range of a buffer, passed for a binding.
#[derive(Debug, Clone)]
pub(crate) struct Argument<'a> {
    /// Label of the buffer; may be empty.
    pub label: &'a str,
    /// Bytes of one element.
    pub element_size: u64,
    /// Layout of an element.
    pub layout: ElementLayout,
    /// Name of the Rust type of an element.
    pub type_name: &'static str,
    /// The allocation; `None` if there are no bytes.
    pub memory: Option<MemoryId>,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub size: u64,
}
