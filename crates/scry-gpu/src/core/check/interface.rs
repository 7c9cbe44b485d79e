//! The interface of a kernel, and the terms in which errors name its parts.

use std::ops::Deref;

use scry_ir::{BindingInfo, Interface};

/// The interface of a kernel, and whether it is native: declared in Rust rather than in WGSL, so
/// that errors must not name parts of a WGSL source.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KernelInterface<'a> {
    interface: &'a Interface,
    is_native: bool,
}

impl<'a> KernelInterface<'a> {
    /// Wraps the interface of a kernel that is native or not.
    pub(crate) fn new(interface: &'a Interface, is_native: bool) -> Self {
        Self { interface, is_native }
    }

    /// Returns whether the kernel is native.
    pub(crate) fn is_native(self) -> bool {
        self.is_native
    }

    /// Returns one of two terms, for native kernels and for others.
    pub(super) fn term(self, native: &'static str, wgsl: &'static str) -> &'static str {
        if self.is_native { native } else { wgsl }
    }

    /// Returns the name of a binding in errors.
    pub(crate) fn binding_name(self, binding: &BindingInfo) -> String {
        let BindingInfo { name, group, binding, .. } = binding;
        match self.is_native {
            true => format!("buffer `{name}`"),
            false => format!("`{name}` at @group({group}) @binding({binding})"),
        }
    }
}

/// The interface of a kernel that is not native.
impl<'a> From<&'a Interface> for KernelInterface<'a> {
    fn from(interface: &'a Interface) -> Self {
        Self::new(interface, false)
    }
}

impl Deref for KernelInterface<'_> {
    type Target = Interface;

    fn deref(&self) -> &Interface {
        self.interface
    }
}
