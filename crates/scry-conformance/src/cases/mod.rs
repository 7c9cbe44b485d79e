//! The cases, a file a topic.

pub(crate) mod accuracy;
pub(crate) mod arithmetic;
pub(crate) mod atomics;
pub(crate) mod barriers;
pub(crate) mod between_types;
pub(crate) mod bits;
pub(crate) mod bounds;
pub(crate) mod bounds_corpus;
pub(crate) mod bounds_kernels;
pub(crate) mod control;
pub(crate) mod conversions;
pub(crate) mod cooperation;
pub(crate) mod cooperative_matrices;
pub(crate) mod divergence;
pub(crate) mod exact_floats;
pub(crate) mod floats;
pub(crate) mod integers;
pub(crate) mod matrices;
pub(crate) mod memory_types;
pub(crate) mod subgroups;
pub(crate) mod vectors;
