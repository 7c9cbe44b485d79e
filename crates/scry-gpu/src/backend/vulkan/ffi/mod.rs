//! Vulkan's interface: the loader, features, matrix products, the validation layer, and errors.

pub(super) mod error;
pub(super) mod features;
pub(super) mod instance;
pub(super) mod matrices;
pub(super) mod validation;
