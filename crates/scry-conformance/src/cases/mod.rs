//! The cases, a file a topic.

pub(crate) mod arithmetic;
pub(crate) mod between_types;
pub(crate) mod bits;
pub(crate) mod control;
pub(crate) mod conversions;
pub(crate) mod divergence;
pub(crate) mod exact_floats;
pub(crate) mod floats;
pub(crate) mod integers;
