//! The scaled sum of two vectors, `y = a·x + y`.

/// `y = a·x + y`; launch one invocation per element of `y`.
///
/// Bindings: `x: array<f32>`, `y: array<f32>` (read and written). Parameter: `a`, one `f32`.
pub const SAXPY: &str = include_str!("saxpy.wgsl");

/// [`SAXPY`] for a length that is a multiple of four: launch one invocation per four elements.
///
/// Bindings: `x: array<vec4<f32>>`, `y: array<vec4<f32>>` (read and written). Parameter: `a`.
pub const SAXPY_VEC4: &str = include_str!("saxpy_vec4.wgsl");
