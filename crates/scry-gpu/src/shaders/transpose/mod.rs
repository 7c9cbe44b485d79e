//! Matrix transpose.

/// `y` = transpose of `x`; accesses to both are coalesced, through a tile in workgroup memory.
///
/// Bindings: `x: array<f32>` (rows × columns) and `y: array<f32>` (columns × rows, written).
/// Parameters, two `u32`: rows, columns of `x`. Each invocation moves four elements of a column:
/// launch (columns, ⌈rows/4⌉) invocations.
pub const TRANSPOSE: &str = include_str!("transpose.wgsl");
