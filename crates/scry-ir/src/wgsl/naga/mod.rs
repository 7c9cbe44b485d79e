//! What naga, the WGSL front end in use, needs around it: limits on its input, rejections of what
//! it gets wrong, a guarded call, and its errors in the crate's form.
//!
//! All of it goes when naga goes.

pub(crate) mod align;
pub(crate) mod bitcasts;
pub(crate) mod budget;
pub(crate) mod calls;
pub(crate) mod constant_shifts;
pub(crate) mod cooperative;
pub(crate) mod diagnostics;
pub(crate) mod guard;
pub(crate) mod handles;
pub(crate) mod indices;
pub(crate) mod scan;
