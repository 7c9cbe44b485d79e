//! CUDA C sources of the same kernels, ready for
//! [`Device::compile_cuda_with`](crate::Device::compile_cuda_with).
//!
//! Each constant is one whole source with one kernel, [`ENTRY`]. It binds, takes and computes what
//! the WGSL kernel of the same name in [`shaders`](crate::shaders) does, and is launched alike; its
//! interface is what the function named beside it gives. Kernels that take numbers of rows and
//! columns believe them: buffers have to be as large as those say.
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
//! // SAFETY: the buffers are as large as m, n and k say.
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
