//! Tests of the driver's methods on the first CUDA device.

mod cancellation;
mod device_loss;
mod kernels;
mod memory;
mod submissions;

use std::ops::Deref;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use super::adapter::{self, CudaAdapter};
use super::device::Gpu;
use super::ffi::driver_api::Cuda;
use crate::backend::tests::submissions::APPEND;
use crate::backend::tests::{
    DriverExt, LONG, compute_barrier, dispatch, dispatch_with, full_barrier, run, span,
    submissions as bodies,
};
use crate::core::command::{BufferRange, Command, Step};
use crate::core::driver::{Adapter, Driver, GridSource, SubmissionIndex, Work};

/// All drivers of a process share the context, where calls that load code wait for kernels, and
/// other calls wait for them. So tests with endless kernels run exclusively.
static DEVICE_LOCK: RwLock<()> = RwLock::new(());

/// Whether other tests may run at the same time.
enum Access {
    Shared { _guard: RwLockReadGuard<'static, ()> },
    Exclusive { _guard: RwLockWriteGuard<'static, ()> },
}

impl Access {
    fn shared() -> Self {
        Self::Shared { _guard: DEVICE_LOCK.read().unwrap_or_else(PoisonError::into_inner) }
    }

    fn exclusive() -> Self {
        Self::Exclusive { _guard: DEVICE_LOCK.write().unwrap_or_else(PoisonError::into_inner) }
    }
}

/// A driver, dropped before the lock is released.
struct Opened {
    driver: Box<dyn Driver>,
    _access: Access,
}

impl Deref for Opened {
    type Target = dyn Driver;

    fn deref(&self) -> &Self::Target {
        &*self.driver
    }
}

/// Opens the first device; `None`, with a message, where there is no CUDA and none is required.
fn driver() -> Option<Opened> {
    opened(Access::shared())
}

fn opened(access: Access) -> Option<Opened> {
    adapter().map(|adapter| Opened { driver: adapter.open().unwrap(), _access: access })
}

/// Opens the first device without a queue.
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

/// Replays a recording several times.
fn replayed(driver: &dyn Driver, steps: &[Step], times: usize) {
    let recording = driver.record(steps).unwrap();
    let points = (0..times).map(|_| driver.submit(Work::Replay(recording), false).unwrap());
    let last = points.last().unwrap();
    assert!(driver.wait(last, LONG).unwrap());
    driver.free_recording(recording);
}
