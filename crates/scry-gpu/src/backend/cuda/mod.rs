//! CUDA 12.0 and newer, with nothing but NVIDIA's driver, opened at run time.
//!
//! `library` and `api` open the driver, `adapter` finds its devices, `gpu` opens one. `memory` and
//! `compile` do what the driver's methods ask.

#![expect(dead_code, reason = "the queue is still to come")]

mod adapter;
mod api;
mod compile;
mod encode;
mod error;
mod gpu;
mod library;
mod memory;
mod types;

use std::sync::Arc;

use self::api::Cuda;
use self::gpu::Gpu;
use super::Absence;
use crate::driver::Adapter;

/// Finds the CUDA devices.
pub(super) fn find() -> Result<Vec<Box<dyn Adapter>>, Absence> {
    let adapters = adapter::find(Cuda::shared()?)?;
    let boxed = adapters.into_iter().map(|adapter| Box::new(adapter) as _);
    Ok(boxed.collect())
}

/// An open device.
struct CudaDriver {
    gpu: Arc<Gpu>,
}
