//! Reductions of a whole vector to one number.
//!
//! Two passes reduce any length. The first, launched with G workgroups, writes one result for each
//! into `results`, which is G long; the second is the same kernel ([`SUM`] after [`DOT`] and after
//! the `VEC4` kernels, their scalar namesakes), launched with one workgroup over those G results.
//! One pass with one workgroup does as well, slower. G = ⌈length/2048⌉ and at most 1024 keeps a
//! large device busy. The order of the operations depends on the length and on G alone, so that
//! equal launches give equal bits. An empty vector reduces to the operation's neutral element.
//!
//! Launch by explicit workgroups, (G, 1, 1). No parameters.

/// The sum of all elements.
///
/// Bindings: `x: array<f32>`, `results: array<f32>` (written, one for each workgroup).
pub const SUM: &str = concat!(
    include_str!("reduce/one.wgsl"),
    include_str!("reduce/sum.wgsl"),
    include_str!("reduce/reduce.wgsl")
);

/// The largest element; a NaN may be passed over.
///
/// Bindings: `x: array<f32>`, `results: array<f32>` (written, one for each workgroup).
pub const MAX: &str = concat!(
    include_str!("reduce/one.wgsl"),
    include_str!("reduce/max.wgsl"),
    include_str!("reduce/reduce.wgsl")
);

/// The smallest element; a NaN may be passed over.
///
/// Bindings: `x: array<f32>`, `results: array<f32>` (written, one for each workgroup).
pub const MIN: &str = concat!(
    include_str!("reduce/one.wgsl"),
    include_str!("reduce/min.wgsl"),
    include_str!("reduce/reduce.wgsl")
);

/// The inner product of two vectors of the same length.
///
/// Bindings: `a: array<f32>`, `b: array<f32>`, `results: array<f32>` (written, one for each
/// workgroup). The second pass is [`SUM`].
pub const DOT: &str = concat!(
    include_str!("reduce/two.wgsl"),
    include_str!("reduce/sum.wgsl"),
    include_str!("reduce/reduce.wgsl")
);

/// [`SUM`] of a vector whose length is a multiple of four. The second pass is [`SUM`].
///
/// Bindings: `x: array<vec4<f32>>`, `results: array<f32>` (written, one for each workgroup).
pub const SUM_VEC4: &str = concat!(
    include_str!("reduce/one_vec4.wgsl"),
    include_str!("reduce/sum.wgsl"),
    include_str!("reduce/reduce.wgsl")
);

/// [`MAX`] of a vector whose length is a multiple of four. The second pass is [`MAX`].
///
/// Bindings: `x: array<vec4<f32>>`, `results: array<f32>` (written, one for each workgroup).
pub const MAX_VEC4: &str = concat!(
    include_str!("reduce/one_vec4.wgsl"),
    include_str!("reduce/max.wgsl"),
    include_str!("reduce/reduce.wgsl")
);

/// [`MIN`] of a vector whose length is a multiple of four. The second pass is [`MIN`].
///
/// Bindings: `x: array<vec4<f32>>`, `results: array<f32>` (written, one for each workgroup).
pub const MIN_VEC4: &str = concat!(
    include_str!("reduce/one_vec4.wgsl"),
    include_str!("reduce/min.wgsl"),
    include_str!("reduce/reduce.wgsl")
);
