//! Checks of launches against the kernel's interface and the device's limits, before any driver
//! call.
//!
//! Drivers execute launches that pass these checks without checking them again.

mod aliasing;
mod arguments;
mod binding;
mod counts;
mod describe;
mod immediates;
mod interface;
mod limits;
mod types;

pub(crate) use aliasing::overwritten_counts;
pub(crate) use arguments::{arguments, bound_size, has_elements_of, native_arguments, signature};
pub(crate) use binding::Argument;
pub(crate) use counts::counts;
pub(crate) use immediates::{immediate, immediates};
pub(crate) use interface::KernelInterface;
pub(crate) use limits::kernel_limits;

use crate::api::dtype::ElementType;

impl Argument<'_> {
    /// Returns the element's type as spelled in Rust code.
    pub(crate) fn element_name(&self) -> String {
        describe::rust_name(&self.layout, self.type_name)
    }
}

impl ElementType {
    /// Returns the type as spelled in Rust code.
    pub(crate) fn rust_name(&self) -> String {
        describe::rust_name(&self.layout, self.name)
    }
}

#[cfg(test)]
pub(crate) mod tests;
