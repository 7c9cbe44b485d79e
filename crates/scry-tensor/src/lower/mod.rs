//! Maps to kernels: the one code generator of the crate.
//!
//! - `iteration` merges axes, classifies operands, and packs sizes, strides and offsets: they are
//!   arguments of the kernel, never constants in it;
//! - `kernel` builds the kernel in the kernel IR, from the map and the classes alone;
//! - `maps` builds kernels of several maps;
//! - `rows` describes kernels of rows, of which `row_kernel` builds the kernel, with `reductions`
//!   and `thread_group`, which merges their states;
//! - `steps` has what both have in common;
//! - `memory` loads and stores elements that share a word.

mod iteration;
mod kernel;
mod maps;
mod memory;
mod reductions;
mod row_kernel;
mod rows;
mod steps;
#[cfg(test)]
mod tests;
mod thread_group;

pub(crate) use iteration::{GatherAxis, Iteration, MIN_UNROLLED, for_each_axis, merge_axes};
pub(crate) use kernel::build;
pub(crate) use maps::{MapsKey, PartLaunch, StoreKind, build_maps};
pub(crate) use memory::Conversions;
pub(crate) use row_kernel::build_rows;
pub(crate) use rows::{
    MAX_COLUMNS, RowIteration, RowKey, RowProgram, RowReduction, RowSource, RowStep, RowWalk,
    WORKGROUP,
};
pub(crate) use thread_group::{Exchange, SUBGROUP};

use crate::expr::Map;

/// What a kernel depends on: kernels with equal keys are the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct KernelKey {
    pub(crate) map: Map,
    pub(crate) classes: Classes,
    /// Whether the parameters are in a buffer, because there are more than immediates hold.
    pub(crate) in_buffer: bool,
    /// Words of the result that each invocation computes, in distances of the number of
    /// invocations: several of large results, so that more loads are in flight.
    pub(crate) unroll: u32,
    /// The operand that the result replaces in memory. Its elements have the size of those of the
    /// result, and are at the same positions, so that each word is read only by the invocation that
    /// writes it.
    pub(crate) in_place: Option<u32>,
}

/// The classes of sizes and strides that have kernels of their own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Classes {
    /// The number of axes that coordinates are computed for, 0 if none is needed.
    pub(crate) rank: u32,
    pub(crate) operands: Vec<Access>,
}

/// How an operand is accessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Access {
    /// One element for the whole result.
    Uniform,
    /// In the order of the result.
    Linear,
    /// At `offset + Σ coordinate * stride`.
    Strided,
}

/// The number of elements that share a word of storage.
pub(crate) fn elements_per_word(dtype: crate::DType) -> u32 {
    4 / dtype.size() as u32
}
