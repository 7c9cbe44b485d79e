//! WGSL sources of everyday kernels, ready for [`Device::compile`](crate::Device::compile).
//!
//! Each constant is one whole source with one entry point, `main`, and says what its kernel binds,
//! which parameters (`var<immediate>`) it takes and how it is launched. Matrices are row-major and
//! dense; elements are `f32`. Bindings are named in order, all in group 0. Kernels take any size
//! and keep within 16 KiB of workgroup memory, 256 invocations a workgroup and WebGPU's core
//! features. Constants that end in `VEC4` move four elements at a time and are the fastest where
//! the sizes that they name are multiples of four.
//!
//! | family | kernels |
//! | --- | --- |
//! | [`matmul`] | matrix product, three tile sizes |
//! | [`pairwise`] | squared distances between two sets of points |
//! | [`transpose`] | matrix transpose |
//! | [`elementwise`] | activations, arithmetic, bias |
//! | [`saxpy`] | `y = a·x + y` |
//! | [`reduce`] | sum, maximum, minimum, inner product |
//! | [`backward`] | gradients of the activations and of the bias |
//! | [`cuda`] | CUDA C sources of many of these, for `compile_cuda_with` |

pub mod backward;
pub mod cuda;
pub mod elementwise;
pub mod matmul;
pub mod pairwise;
pub mod reduce;
pub mod saxpy;
pub mod transpose;
