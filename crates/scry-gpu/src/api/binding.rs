//! What a kernel can be given: whole buffers and slices of them.

use std::sync::Arc;

use crate::api::element::ElementLayout;
use crate::core::context::Context;
use crate::core::memory::Memory;

/// A buffer, or a slice of one, as an argument of a kernel.
///
/// Arguments are given in the order of the kernel's bindings: by group, then by binding number.
/// Bindings can be held across an await by tasks that move between threads.
pub trait Binding: Sealed + Send + Sync {}

/// Keeps [`Binding`] closed, and shows its inside to the crate.
pub trait Sealed {
    /// The bytes and what they are.
    #[doc(hidden)]
    fn view(&self) -> View<'_>;
}

/// Bytes of a buffer and what they are; without the element's type.
#[derive(Clone, Copy)]
#[doc(hidden)]
pub struct View<'a> {
    pub(crate) context: &'a Arc<Context>,
    /// Absent if the buffer is empty.
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
