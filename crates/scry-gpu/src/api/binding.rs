//! Bindings of a kernel: whole buffers and slices of them.

use std::sync::Arc;

use crate::api::element::ElementLayout;
use crate::core::context::Context;
use crate::core::memory::Memory;

/// A buffer, or a slice of one, as an argument of a kernel.
///
/// Arguments are passed in the order of the kernel's bindings: by group, then by binding number.
/// Bindings can be held across an await by tasks that move between threads.
pub trait Binding: Sealed + Send + Sync {}

/// Seals [`Binding`]; its methods are private to the crate.
pub trait Sealed {
    /// Returns the bytes and their layout.
    #[doc(hidden)]
    fn view(&self) -> View<'_>;
}

/// Bytes of a buffer with their layout as a value, instead of an element type.
#[derive(Clone, Copy)]
#[doc(hidden)]
pub struct View<'a> {
    pub(crate) context: &'a Arc<Context>,
    /// `None` if the buffer is empty.
    pub(crate) memory: Option<&'a Arc<Memory>>,
    pub(crate) label: &'a str,
    /// First byte.
    pub(crate) offset: u64,
    /// Number of bytes.
    pub(crate) size: u64,
    pub(crate) element_size: u64,
    pub(crate) layout: ElementLayout,
    pub(crate) type_name: &'static str,
}
