//! The manual. Each module is a chapter; there is no code in them.
//!
//! | chapter | what it explains |
//! | --- | --- |
//! | [`first_kernel`] | from an empty crate to a result, line by line |
//! | [`buffers`] | element types, structures and their layouts, views, slices |
//! | [`batches`] | several commands in one submission, hazards, recordings, indirect launches |
//! | [`devices`] | which devices there are, and how to choose one |
//! | [`errors`] | what errors contain, time limits, logs, how to debug a kernel |
//! | [`performance`] | how to measure; transfers, workgroups, PDL, tensor cores |
//! | [`cpu_device`] | what the CPU device is good for, and what it is not |
//! | [`migrating`] | from wgpu, cudarc and scry-gpu 0.1 |
//! | [`troubleshooting`] | error messages, what causes them, and what to do |
//!
//! All programs of the manual run on the CPU device when the crate's documentation is tested.

// What the chapters link to.
#[cfg(doc)]
use crate::{
    Batch, Binding, BoundKernel, Buffer, CompileOptions, DType, Device, DeviceInfo, Download,
    Element, ErrorKind, GpuError, Kernel, Launch, NativeInterface, Recording, ReplayInputs, Slice,
    Ticket, UntypedBuffer, shaders, verify,
};

#[doc = include_str!("first_kernel.md")]
pub mod first_kernel {}

#[doc = include_str!("buffers.md")]
pub mod buffers {}

#[doc = include_str!("batches.md")]
pub mod batches {}

#[doc = include_str!("devices.md")]
pub mod devices {}

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
