//! WGSL sources of common kernels, for [`Device::compile`](crate::Device::compile).
//!
//! Each constant is a complete source with one entry point, `main`. Its documentation lists the
//! bindings, the parameters (`var<immediate>`) and the launch size. Matrices are row-major and
//! dense; elements are `f32`. Bindings are listed in order, all in group 0. Kernels support any
//! size and need at most 16 KiB of workgroup memory, 256 invocations per workgroup and WebGPU's
//! core features. Constants that end in `VEC4` load and store four elements at a time: they are the
//! fastest, but require multiples of four for the sizes that they document. The exceptions are
//! [`matmul::COOPERATIVE_F16`] and its `VEC4` form, for `f16` operands, whose documentation lists
//! what they need, and the sources in [`cuda`].
//!
//! | family | kernels |
//! | --- | --- |
//! | [`matmul`] | matrix product, three tile sizes; `f16` by cooperative matrices |
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
