//! Element types of WGSL kernels.
//!
//! A kernel is written once for `Stored` elements, which it converts to the type that it computes
//! in and back with `widen` and `narrow`; the text that defines them precedes it.

use scry_gpu::{DType, Features};

use crate::kernels::Kernels;

/// The floating-point types: computed in `f32`.
pub(crate) const FLOATS: [DType; 3] = [DType::F32, DType::F16, DType::BF16];

/// The types that have definitions in WGSL.
pub(crate) const NUMBERS: [DType; 5] =
    [DType::F32, DType::F16, DType::BF16, DType::I32, DType::U32];

/// Returns the definitions of `Stored`, `Computed`, `widen` and `narrow` for an element type.
pub(crate) fn prelude(dtype: DType) -> &'static str {
    debug_assert!(NUMBERS.contains(&dtype), "{dtype} has definitions");
    match dtype {
        DType::F16 => include_str!("shaders/elements/f16.wgsl"),
        DType::BF16 => include_str!("shaders/elements/bf16.wgsl"),
        DType::I32 => include_str!("shaders/elements/i32.wgsl"),
        DType::U32 => include_str!("shaders/elements/u32.wgsl"),
        _ => include_str!("shaders/elements/f32.wgsl"),
    }
}

/// Returns the definitions of `Output`, `widen_output` and `narrow_output` of results: of the type
/// of `Stored`, or `f32`.
pub(crate) fn output_prelude(is_stored: bool) -> &'static str {
    match is_stored {
        true => include_str!("shaders/elements/output_stored.wgsl"),
        false => include_str!("shaders/elements/output_f32.wgsl"),
    }
}

/// Returns the definitions of `Quad`, four elements of a float type that are loaded and stored
/// together, of `widen_quad` and `narrow_quad`; [`prelude`] precedes it. A binding of quads needs
/// [`Preparation::quads`](crate::operation::Preparation::quads).
pub(crate) fn quads(dtype: DType) -> &'static str {
    match dtype {
        DType::F16 => include_str!("shaders/elements/quad_f16.wgsl"),
        DType::BF16 => include_str!("shaders/elements/quad_bf16.wgsl"),
        _ => include_str!("shaders/elements/quad_f32.wgsl"),
    }
}

/// Returns why WGSL kernels cannot store an element type on a device; `None` if they can.
pub(crate) fn obstacle(dtype: DType, kernels: &Kernels) -> Option<String> {
    let (needed, name) = match dtype {
        DType::F16 => (Features::F16, "16-bit floats"),
        DType::BF16 => (Features::I16, "16-bit integers, which hold bf16"),
        _ => return None,
    };
    let missing = !kernels.device().info().features.contains(needed);
    missing.then(|| format!("needs {name}, which the device lacks"))
}

/// Returns why WGSL kernels cannot index buffers; `None` if they can. Indices are 32-bit.
pub(crate) fn too_long(elements: &[u64]) -> Option<String> {
    let longest = elements.iter().copied().max()?;
    (longest > u64::from(u32::MAX))
        .then(|| format!("has 32-bit indices, but a buffer has {longest} elements"))
}

/// Returns the error, relative to the largest result, within which variants agree for results of an
/// element type: a few units in its last place.
pub(crate) fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F32 => 1e-5,
        DType::F16 => 2e-3,
        DType::BF16 => 2e-2,
        _ => 0.0,
    }
}
