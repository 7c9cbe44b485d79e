//! Compute on GPUs: upload data, run a WGSL kernel, read results back.

mod backend;
mod cache;
mod command;
pub mod disk_cache;
mod driver;
mod error;
mod id;
mod info;

pub use error::{Attempt, ErrorKind, GpuError, NoDevice, Result};
pub use info::{BackendKind, DeviceInfo, DeviceKind, Limits, PciAddress};
pub use scry_ir::{Features, ShaderError};
