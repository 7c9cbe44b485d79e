//! Matrix product: C = A × B, where A is m × k, B is k × n and C is m × n.
//!
//! All kernels bind `a`, `b` (read) and `c` (written) and have the same parameters, three `u32`
//! in this order: m, n, k. Each is launched on a two-dimensional grid, x along C's columns and y
//! along its rows; they differ in how many elements of C an invocation computes.
//!
//! | kernel | invocations | tile of a workgroup | use it for |
//! | --- | --- | --- | --- |
//! | [`TILED_16X16`] | (n, m) | 16 × 16 | small products, or to read the source |
//! | [`COARSE_64X64`] | (⌈n/4⌉, ⌈m/4⌉) | 64 × 64 | m and n of a few hundred |
//! | [`COARSE_8X8`] | (⌈n/8⌉, ⌈m/8⌉) | 128 × 128 | m and n of at least 2000 |
//!
//! [`COOPERATIVE_F16`] multiplies `f16` operands by cooperative matrices, on CUDA in tensor cores.
//! It has the same bindings and parameters, and is launched on (⌈n/128⌉, ⌈m/128⌉) workgroups.

/// One element of C per invocation; launch (n, m) invocations.
///
/// Bindings: `a: array<f32>`, `b: array<f32>`, `c: array<f32>`. Parameters: m, n, k.
pub const TILED_16X16: &str = include_str!("tiled_16x16.wgsl");

/// 4×4 elements of C per invocation; launch (⌈n/4⌉, ⌈m/4⌉) invocations.
///
/// Bindings: `a: array<f32>`, `b: array<f32>`, `c: array<f32>`. Parameters: m, n, k.
pub const COARSE_64X64: &str =
    concat!(include_str!("io_scalar.wgsl"), include_str!("coarse_64x64.wgsl"));

/// [`COARSE_64X64`] for n and k that are multiples of four, with the same launch.
///
/// Bindings: `a`, `b` and `c`, all `array<vec4<f32>>`. Parameters: m, n, k, in elements.
pub const COARSE_64X64_VEC4: &str =
    concat!(include_str!("io_vec4.wgsl"), include_str!("coarse_64x64.wgsl"));

/// 8×8 elements of C per invocation, in tiles of 128×128; launch (⌈n/8⌉, ⌈m/8⌉) invocations.
///
/// Bindings: `a: array<f32>`, `b: array<f32>`, `c: array<f32>`. Parameters: m, n, k.
pub const COARSE_8X8: &str =
    concat!(include_str!("io_scalar.wgsl"), include_str!("coarse_8x8.wgsl"));

/// [`COARSE_8X8`] for n and k that are multiples of four, with the same launch.
///
/// Bindings: `a`, `b` and `c`, all `array<vec4<f32>>`. Parameters: m, n, k, in elements.
pub const COARSE_8X8_VEC4: &str =
    concat!(include_str!("io_vec4.wgsl"), include_str!("coarse_8x8.wgsl"));

/// `f16` operands and `f32` results, by cooperative matrices, in tiles of 128×128 per workgroup;
/// launch (⌈n/128⌉, ⌈m/128⌉) workgroups.
///
/// Bindings: `a: array<f16>`, `b: array<f16>`, `c: array<f32>`. Parameters: m, n, k, of any size,
/// as long as m·k, k·n and m·n are below 2³².
///
/// Products are added in `f32`. Needs [`Features::F16`](crate::Features::F16),
/// [`Features::COOPERATIVE_MATRIX`](crate::Features::COOPERATIVE_MATRIX), subgroups of 32
/// invocations, and 39 KiB of workgroup memory, on Vulkan 47 KiB. A workgroup has 256 invocations:
/// eight subgroups, each with 64×32 elements of C in eight matrices of 16×16.
pub const COOPERATIVE_F16: &str =
    concat!(include_str!("cooperative_f16_io_scalar.wgsl"), include_str!("cooperative_f16.wgsl"));

/// [`COOPERATIVE_F16`] for n and k that are multiples of four, with the same launch; it is faster.
///
/// Bindings: `a` and `b`, both `array<vec4<f16>>`, and `c: array<f32>`. Parameters: m, n, k, in
/// elements.
pub const COOPERATIVE_F16_VEC4: &str =
    concat!(include_str!("cooperative_f16_io_vec4.wgsl"), include_str!("cooperative_f16.wgsl"));
