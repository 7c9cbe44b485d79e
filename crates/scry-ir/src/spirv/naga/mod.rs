//! The writer of SPIR-V from naga's module, and the rewrites of the module before it.
//!
//! Behind the feature `naga-spirv`, for comparisons with `emit`. All of it goes when naga goes.

pub(crate) mod aborted_loops;
pub(crate) mod bits;
pub(crate) mod bools;
pub(crate) mod bounding;
pub(crate) mod bytes;
pub(crate) mod divisions;
pub(crate) mod fold;
pub(crate) mod initial;
pub(crate) mod integers;
pub(crate) mod loops;
pub(crate) mod mixes;
pub(crate) mod numbers;
pub(crate) mod operations;
pub(crate) mod pointers;
pub(crate) mod rebuild;
pub(crate) mod shifts;
pub(crate) mod widen;
mod write;
