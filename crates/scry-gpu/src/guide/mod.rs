//! The user guide. Each module is a chapter without items.
//!
//! | chapter | content |
//! | --- | --- |
//! | [`first_kernel`] | from an empty crate to a result, line by line |
//! | [`buffers`] | element types, structures and their layouts, views, slices |
//! | [`batches`] | several commands in one submission, hazards, recordings, indirect launches |
//! | [`awaiting`] | the async forms of blocking calls, for any executor |
//! | [`kernels_in_rust`] | kernels built at run time with a builder, without WGSL |
//! | [`devices`] | listing and choosing devices |
//! | [`groups`] | several devices: collectives, processes, faults |
//! | [`errors`] | what errors contain, time limits, logs, stages of compilation, debugging |
//! | [`performance`] | how to measure; transfers, workgroups, PDL, tensor cores |
//! | [`cpu_device`] | uses and limits of the CPU device |
//! | [`migrating`] | from wgpu, CUDA C++, cudarc and scry-gpu 0.1 |
//! | [`troubleshooting`] | error messages, their causes, and what to do |
//!
//! All programs of the guide are documentation tests, and run on the CPU device.

// Link targets of the chapters.
#[cfg(doc)]
use crate::kir::Builder;
#[cfg(doc)]
use crate::{
    Batch, Binding, BoundKernel, Buffer, CompileOptions, DType, Device, DeviceInfo, Download,
    Element, ErrorKind, GpuError, Kernel, Launch, NativeInterface, Recording, ReplayInputs, Slice,
    Ticket, UntypedBuffer, kir, shaders, verify,
};
#[cfg(all(doc, not(target_arch = "wasm32")))]
use crate::{DeviceGroup, Membership, Rendezvous};

#[doc = include_str!("first_kernel.md")]
pub mod first_kernel {}

#[doc = include_str!("buffers.md")]
pub mod buffers {}

#[doc = include_str!("batches.md")]
pub mod batches {}

#[doc = include_str!("awaiting.md")]
pub mod awaiting {}

#[doc = include_str!("kernels_in_rust.md")]
pub mod kernels_in_rust {}

#[doc = include_str!("devices.md")]
pub mod devices {}

#[cfg(not(target_arch = "wasm32"))]
#[doc = include_str!("groups.md")]
pub mod groups {}

#[doc = include_str!("errors.md")]
pub mod errors {}

#[doc = include_str!("performance.md")]
pub mod performance {}

#[doc = include_str!("cpu_device.md")]
pub mod cpu_device {}

#[doc = include_str!("migrating.md")]
pub mod migrating {}

#[doc = include_str!("troubleshooting.md")]
pub mod troubleshooting {}
