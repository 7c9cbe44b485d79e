//! Tests of the WGSL shader library (`scry_gpu::shaders`), each shader against a reference in plain
//! Rust on every available device. References compute in f64; `harness::run` fills outputs with NaN
//! before each launch.

mod backward;
mod cuda;
mod elementwise;
mod extremes;
mod harness;
mod matmul;
mod pairwise;
mod reduce;
mod saxpy;
mod source_properties;
#[cfg(feature = "vulkan")]
mod spirv_from_kir;
mod transpose;
