//! Launches against the kernel's interface and the device's limits, before any driver sees them.
//!
//! What passes here a driver may execute without a look of its own.

mod aliasing;
mod arguments;
mod counts;
mod describe;
mod immediates;
mod limits;
mod types;

pub(crate) use aliasing::overwritten_counts;
#[cfg(feature = "kernels")]
pub(crate) use arguments::has_elements_of;
pub(crate) use arguments::{arguments, bound_size, native_arguments, signature};
pub(crate) use counts::counts;
pub(crate) use immediates::{immediate, immediates};
pub(crate) use limits::kernel_limits;

use scry_ir::Binding;

use crate::api::dtype::ElementType;
use crate::api::element::ElementLayout;
use crate::core::driver::MemoryId;

/// A range of a buffer, as given for a binding.
#[derive(Debug, Clone)]
pub(crate) struct Argument<'a> {
    /// Name of the buffer; may be empty.
    pub label: &'a str,
    /// Bytes of one element.
    pub element_size: u64,
    /// What stands where in an element.
    pub layout: ElementLayout,
    /// Name of the Rust type of an element.
    pub type_name: &'static str,
    /// The allocation; absent if there are no bytes.
    pub memory: Option<MemoryId>,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub size: u64,
}

impl Argument<'_> {
    /// The element's type as Rust code spells it.
    pub(crate) fn element_name(&self) -> String {
        describe::rust_name(&self.layout, self.type_name)
    }
}

impl ElementType {
    /// The type as Rust code spells it.
    pub(crate) fn rust_name(&self) -> String {
        describe::rust_name(&self.layout, self.name)
    }
}

/// A binding as errors name it.
pub(crate) fn place(binding: &Binding) -> String {
    format!("`{}` at @group({}) @binding({})", binding.name, binding.group, binding.binding)
}

#[cfg(test)]
pub(crate) mod tests;
