//! GPU compute for Rust: upload data, run a WGSL kernel, read results back.
#![doc = include_str!("../README.md")]
#![doc(test(attr(deny(unused_must_use))))]
#![cfg_attr(docsrs, feature(doc_cfg))]

// The derive macro generates paths that start with `::scry_gpu`.
#[cfg(test)]
extern crate self as scry_gpu;

mod api;
mod backend;
#[cfg_attr(
    not(any(cuda, vulkan)),
    expect(dead_code, reason = "only GPU drivers cache kernels on disk")
)]
mod cache;
mod core;
#[cfg(not(target_arch = "wasm32"))]
mod group;
pub mod guide;
mod lifecycle;
#[cfg(doctest)]
mod must_use;
pub mod shaders;
#[doc(hidden)]
pub mod testing;
pub mod verify;

pub use self::core::memory::MemoryUsage;
pub use api::batch::Batch;
pub use api::binding::Binding;
pub use api::bound_kernel::{BoundKernel, KernelArgument};
pub use api::buffer::Buffer;
pub use api::device::Device;
pub use api::download::Download;
pub use api::dtype::{DType, ParseDTypeError};
#[cfg(feature = "bytemuck")]
pub use api::element::PodElement;
pub use api::element::{Element, ElementLayout, Field};
pub use api::elements::{Elements, Untyped};
pub use api::error::{
    ArgumentError, Attempt, BufferAccessError, CapabilityError, DeviceLostError, DriverError,
    ErrorKind, GpuError, GroupError, GroupFault, InterruptedError, KernelError, LanguageError,
    LibraryError, NoDevice, OutOfMemoryError, Result, SourceError, TimeoutError, TooLargeError,
    UnsupportedError, WouldBlockError, WrongDeviceError,
};
pub use api::futures::TicketFuture;
pub use api::info::{
    BackendKind, DeviceInfo, DeviceKind, Limits, PciAddress, SharedMemory, Workaround,
};
pub use api::kernel::{CompileOptions, Kernel};
pub use api::launch::{Count, Invocations, Launch};
pub use api::library::{LibraryState, LibraryStatus, cuda_libraries};
pub use api::native::{
    GemmElement, HostArguments, HostThreads, Language, NativeBinding, NativeBindings,
    NativeInterface, NativeParameter, TensorElement, TensorMap, TensorSwizzle,
};
pub use api::prepared_launch::PreparedLaunch;
pub use api::recording::Recording;
#[cfg(not(target_arch = "wasm32"))]
pub use api::reduce_op::ReduceOp;
pub use api::replay_inputs::ReplayInputs;
pub use api::slice::Slice;
pub use api::ticket::Ticket;
pub use api::untyped_buffer::UntypedBuffer;
pub use cache::disk_cache;
#[cfg(not(target_arch = "wasm32"))]
pub use group::{DeviceGroup, GroupTransport, Membership, Rendezvous};
pub use half::{bf16, f16};
pub use scry_gpu_derive::Element;
pub use scry_ir::{
    Features, Interface, Location, MatrixProducts, OverrideValue, Scalar, ScalarKind, ShaderError,
    ShaderErrorKind, TypeLayout, kir,
};
