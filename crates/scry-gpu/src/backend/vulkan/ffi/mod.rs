//! The Vulkan loader, the features that are used, the validation layer, and errors.

pub(super) mod error;
pub(super) mod features;
pub(super) mod instance;
pub(super) mod validation;
