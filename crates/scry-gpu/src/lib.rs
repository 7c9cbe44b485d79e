//! Compute on GPUs: upload data, run a WGSL kernel, read results back.

// The derive writes paths that begin with the crate's name.
#[cfg(test)]
extern crate self as scry_gpu;

mod backend;
mod cache;
mod check;
mod command;
mod driver;
mod element;
mod error;
mod id;
mod info;
mod launch;

pub use element::{Element, ElementLayout, Field};
pub use error::{Attempt, ErrorKind, GpuError, NoDevice, Result};
pub use half::{bf16, f16};
pub use info::{BackendKind, DeviceInfo, DeviceKind, Limits, PciAddress};
pub use launch::{Count, Invocations, Launch};
pub use scry_gpu_derive::Element;
pub use scry_ir::{Features, Scalar, ScalarKind, ShaderError};
