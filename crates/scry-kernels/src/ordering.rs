//! The order of elements, as WGSL kernels compute it: unsigned integers, which are compared and
//! sorted instead.

use scry_gpu::DType;

/// Returns the definitions of `is_nan`, `ordinal`, `ordinal_of_equal_zeros` and `from_ordinal` for
/// what elements of a type are computed in.
pub(crate) fn prelude(dtype: DType) -> &'static str {
    match dtype {
        DType::I32 => include_str!("shaders/ordering/i32.wgsl"),
        DType::U32 => include_str!("shaders/ordering/u32.wgsl"),
        _ => include_str!("shaders/ordering/f32.wgsl"),
    }
}
