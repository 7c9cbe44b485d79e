//! The driver's methods, driven directly, on the first CUDA device there is.

mod ending;
mod kernels;
mod loss;
mod memory;
mod order;

use std::sync::Arc;
use std::time::Duration;

use super::adapter::{self, CudaAdapter};
use super::api::Cuda;
use super::gpu::Gpu;
use crate::backend::tests::order::APPEND;
use crate::backend::tests::{
    Driven, LONG, compute_barrier, dispatch, dispatch_with, full_barrier, order as bodies, run,
    span,
};
use crate::command::{Command, Span, Step};
use crate::driver::{Adapter, Driver, Point, Work};

/// The first device; `None`, said aloud, where there is no CUDA and none is required.
fn driver() -> Option<Box<dyn Driver>> {
    adapter().map(|adapter| adapter.open().unwrap())
}

/// The first device, opened alone.
fn gpu() -> Option<Arc<Gpu>> {
    adapter().map(|adapter| adapter.open_gpu().unwrap())
}

fn adapter() -> Option<CudaAdapter> {
    match Cuda::shared().and_then(adapter::find) {
        Ok(mut adapters) => Some(adapters.swap_remove(0)),
        Err(absence) => {
            let required = std::env::var_os("SCRY_REQUIRE_CUDA").is_some_and(|v| v != "0");
            assert!(!required, "SCRY_REQUIRE_CUDA is set, but {absence:?}");
            eprintln!("SKIPPED, no CUDA device: {}", absence.reason);
            None
        }
    }
}

/// Submits a recording again.
fn replayed(driver: &dyn Driver, steps: &[Step], times: usize) {
    let recording = driver.record(steps).unwrap();
    let points = (0..times).map(|_| driver.submit(Work::Replay(recording), false).unwrap());
    let last = points.last().unwrap();
    assert!(driver.wait(last, LONG).unwrap());
    driver.forget(recording);
}
