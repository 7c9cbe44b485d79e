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
mod graph;
mod library;
mod memory;
mod params;
mod plan;
mod stream;
mod submit;
mod timing;
mod types;
mod wait;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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

/// Locks; a panic elsewhere under the lock left nothing half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
