//! Tests of the CUDA driver's methods, on the first device.

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
    DriverExt, LONG, compute_barrier, dispatch, dispatch_with, full_barrier, range, run,
    submissions as bodies,
};
use crate::core::command::{BufferRange, Command, Step};
use crate::core::driver::{Adapter, Driver, GridSource, SubmissionIndex, Work};

/// All drivers of a process share the primary context. There a call that loads code waits for
/// running kernels, and blocks other calls meanwhile. So tests with endless kernels run
/// exclusively.
static DEVICE_LOCK: RwLock<()> = RwLock::new(());

/// The lock that a test holds: whether others may run at the same time.
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

/// A driver that is dropped before the test's lock is released.
struct TestDriver {
    driver: Box<dyn Driver>,
    _access: Access,
}

impl Deref for TestDriver {
    type Target = dyn Driver;

    fn deref(&self) -> &Self::Target {
        &*self.driver
    }
}

/// Opens the first device; prints why and returns `None` if there is no CUDA and none is required.
fn driver() -> Option<TestDriver> {
    open(Access::shared())
}

fn open(access: Access) -> Option<TestDriver> {
    adapter().map(|adapter| TestDriver { driver: adapter.open().unwrap(), _access: access })
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

/// Records steps, replays the recording `times` times, and waits for all replays.
fn replay(driver: &dyn Driver, steps: &[Step], times: usize) {
    let recording = driver.record(steps).unwrap();
    let submissions = (0..times).map(|_| driver.submit(Work::Replay(recording), false).unwrap());
    let last = submissions.last().unwrap();
    assert!(driver.wait(last, LONG).unwrap());
    driver.free_recording(recording);
}
