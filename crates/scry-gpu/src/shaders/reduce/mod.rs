//! Reductions of a vector to one number.
//!
//! Two passes reduce any length. The first, launched with G workgroups, writes G results to
//! `results`, one per workgroup; the second reduces them with one workgroup of the same kernel
//! ([`SUM`] after [`DOT`], the scalar kernel after a `VEC4` one). A single pass with one workgroup
//! is possible, but slower. Recommended is G = ⌈length/2048⌉, at most 1024, which occupies a large
//! device. The order of the operations depends only on the length and on G, so equal launches
//! produce equal bits. A workgroup without elements writes the neutral element: 0 for sums,
//! [`f32::MIN`] for maxima, [`f32::MAX`] for minima. An empty buffer cannot be bound.
//!
//! Launch (G, 1, 1) explicit workgroups. No parameters.

/// The sum of all elements.
///
/// Bindings: `x: array<f32>`, `results: array<f32>` (written, one per workgroup).
pub const SUM: &str =
    concat!(include_str!("one.wgsl"), include_str!("sum.wgsl"), include_str!("reduce.wgsl"));

/// The largest element, but at least [`f32::MIN`]; NaNs may be ignored.
///
/// Bindings: `x: array<f32>`, `results: array<f32>` (written, one per workgroup).
pub const MAX: &str =
    concat!(include_str!("one.wgsl"), include_str!("max.wgsl"), include_str!("reduce.wgsl"));

/// The smallest element, but at most [`f32::MAX`]; NaNs may be ignored.
///
/// Bindings: `x: array<f32>`, `results: array<f32>` (written, one per workgroup).
pub const MIN: &str =
    concat!(include_str!("one.wgsl"), include_str!("min.wgsl"), include_str!("reduce.wgsl"));

/// The inner product of two vectors of the same length.
///
/// Bindings: `a: array<f32>`, `b: array<f32>`, `results: array<f32>` (written, one per
/// workgroup). The second pass is [`SUM`].
pub const DOT: &str =
    concat!(include_str!("two.wgsl"), include_str!("sum.wgsl"), include_str!("reduce.wgsl"));

/// [`SUM`] of a vector whose length is a multiple of four. The second pass is [`SUM`].
///
/// Bindings: `x: array<vec4<f32>>`, `results: array<f32>` (written, one per workgroup).
pub const SUM_VEC4: &str =
    concat!(include_str!("one_vec4.wgsl"), include_str!("sum.wgsl"), include_str!("reduce.wgsl"));

/// [`MAX`] of a vector whose length is a multiple of four. The second pass is [`MAX`].
///
/// Bindings: `x: array<vec4<f32>>`, `results: array<f32>` (written, one per workgroup).
pub const MAX_VEC4: &str =
    concat!(include_str!("one_vec4.wgsl"), include_str!("max.wgsl"), include_str!("reduce.wgsl"));

/// [`MIN`] of a vector whose length is a multiple of four. The second pass is [`MIN`].
///
/// Bindings: `x: array<vec4<f32>>`, `results: array<f32>` (written, one per workgroup).
pub const MIN_VEC4: &str =
    concat!(include_str!("one_vec4.wgsl"), include_str!("min.wgsl"), include_str!("reduce.wgsl"));
