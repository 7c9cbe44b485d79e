//! GPU compute for Rust: upload data, run a WGSL kernel, read results back.
#![doc = include_str!("../README.md")]
#![doc(test(attr(deny(unused_must_use))))]
#![cfg_attr(docsrs, feature(doc_cfg))]

// The derive writes paths that begin with the crate's name.
#[cfg(test)]
extern crate self as scry_gpu;

mod backend;
mod batch;
mod binding;
mod bound_kernel;
mod buffer;
#[cfg_attr(
    not(any(feature = "cuda", feature = "vulkan")),
    expect(dead_code, reason = "only GPUs' drivers keep kernels on disk")
)]
mod cache;
mod check;
mod command;
mod context;
mod copy;
/// What only CUDA devices have.
#[path = "."]
pub mod cuda {
    #[cfg(feature = "kernels")]
    pub mod kernels;
}
mod cut;
mod device;
mod device_bytes;
pub mod disk_cache;
mod driver;
mod dtype;
mod element;
mod elements;
mod encode;
mod ending;
mod error;
pub mod guide;
mod hazard;
mod huge_pages;
mod id;
mod indirect;
mod info;
mod kernel;
mod launch;
mod library;
mod list;
mod logging;
mod memory;
#[cfg(doctest)]
mod must_use;
mod native;
mod process;
mod replay;
mod report;
mod select;
pub mod shaders;
mod slice;
mod staging;
#[doc(hidden)]
pub mod testing;
mod ticket;
mod transfer;
mod untyped;
pub mod verify;

pub use batch::Batch;
pub use binding::Binding;
pub use bound_kernel::{BoundKernel, KernelArgument};
pub use buffer::Buffer;
pub use device::Device;
pub use dtype::{DType, ParseDTypeError};
#[cfg(feature = "bytemuck")]
pub use element::PodElement;
pub use element::{Element, ElementLayout, Field};
pub use elements::{Elements, Untyped};
pub use error::{
    ArgumentError, Attempt, CapabilityError, DeviceLostError, DriverError, ErrorKind, GpuError,
    InterruptedError, KernelError, LanguageError, LibraryError, NoDevice, OutOfMemoryError,
    RangeError, Result, SourceError, TimeoutError, TooLargeError, UnsupportedError,
    WrongDeviceError,
};
pub use half::{bf16, f16};
pub use info::{BackendKind, DeviceInfo, DeviceKind, Limits, PciAddress, Workaround};
pub use kernel::{CompileOptions, Kernel};
pub use launch::{Count, Invocations, Launch};
pub use library::{LibraryState, LibraryStatus, cuda_libraries};
pub use memory::MemoryUsage;
pub use native::{
    Factor, Language, NativeBinding, NativeBindings, NativeInterface, NativeParameter,
    TensorElement, TensorMap, TensorSwizzle,
};
pub use replay::ReplayInputs;
pub use scry_gpu_derive::Element;
pub use scry_ir::{
    Features, Interface, Location, OverrideValue, Scalar, ScalarKind, ShaderError, ShaderErrorKind,
    TypeLayout,
};
pub use slice::Slice;
pub use ticket::{Download, Recording, Ticket};
pub use untyped::UntypedBuffer;
