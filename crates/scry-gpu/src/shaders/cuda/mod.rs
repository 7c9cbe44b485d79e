//! CUDA C sources of the kernels in [`shaders`](crate::shaders), for
//! [`Device::compile_cuda_with`](crate::Device::compile_cuda_with).
//!
//! Each constant is a complete source with one kernel, [`ENTRY`]. Bindings, parameters, launch size
//! and, up to rounding, results are those of the WGSL kernel of the same name in
//! [`shaders`](crate::shaders); the function named in its documentation returns the interface.
//! Sizes passed as parameters are not checked: the buffers must be large enough for them.
//!
//! ```no_run
//! use scry_gpu::shaders::cuda::{self, matmul};
//! use scry_gpu::{BackendKind, Device};
//!
//! # fn main() -> Result<(), scry_gpu::GpuError> {
//! let gpu = Device::with_backend(BackendKind::Cuda)?;
//! let (m, n, k) = (2u32, 2, 3);
//! let a = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
//! let b = gpu.upload(&[1.0f32, 0.0, 0.0, 1.0, 1.0, 1.0])?;
//! let c = gpu.alloc::<f32>(4)?;
//! let interface = matmul::interface();
//! // SAFETY: the buffers are large enough for m, n and k.
//! let kernel = unsafe { gpu.compile_cuda_with(matmul::TILED_16X16, cuda::ENTRY, &interface)? };
//! gpu.run_with_immediates(&kernel, &[&a, &b, &c], [n, m], &[m, n, k])?;
//! assert_eq!(c.download()?, [4.0, 5.0, 10.0, 11.0]);
//! # Ok(())
//! # }
//! ```

pub mod backward;
pub mod elementwise;
pub mod matmul;
pub mod pairwise;

/// The name of the kernel in each source.
pub const ENTRY: &str = "kernel";
