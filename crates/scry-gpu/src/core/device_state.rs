//! The state of a device: driver, loss, time limit and interrupts.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use crate::api::error::{DeviceLostError, GpuError, Result, TimeoutError};
use crate::api::info::DeviceInfo;
use crate::cache::DiskCache;
use crate::core::driver::Driver;
use crate::core::memory::Account;
use crate::core::wakers::Wakers;
use crate::lifecycle::fork_guard::{FORKED, Process};

/// The state of an open device, without its submissions.
pub(crate) struct DeviceState {
    pub driver: Arc<dyn Driver>,
    pub info: DeviceInfo,
    pub disk: Option<DiskCache>,
    pub account: Arc<Account>,
    /// The pending futures.
    pub wakers: Wakers,
    /// The process that opened it.
    process: Process,
    lost: OnceLock<String>,
    time_limit: Mutex<Option<Duration>>,
    interrupts: AtomicU64,
}

impl DeviceState {
    /// Wraps a newly opened driver.
    pub(super) fn new(driver: Arc<dyn Driver>, disk: Option<DiskCache>) -> Self {
        Self {
            info: driver.info().clone(),
            disk,
            account: Arc::default(),
            wakers: Wakers::default(),
            process: Process::current(),
            lost: OnceLock::new(),
            time_limit: Mutex::new(None),
            interrupts: AtomicU64::new(0),
            driver,
        }
    }

    /// Returns an error if the device was lost or was opened before a fork of this process.
    pub(crate) fn check_alive(&self) -> Result<()> {
        if self.process.has_forked() {
            return Err(self.lost_error(FORKED));
        }
        match self.lost.get() {
            None => Ok(()),
            Some(reason) => Err(self.lost_error(reason)),
        }
    }

    /// Returns whether this process is a fork of the one that opened the device.
    pub(super) fn has_forked(&self) -> bool {
        self.process.has_forked()
    }

    /// Returns whether the device was lost or abandoned.
    pub(super) fn is_lost(&self) -> bool {
        self.lost.get().is_some()
    }

    /// Wakes every wait in progress with [`GpuError::Interrupted`].
    pub(crate) fn interrupt(&self) {
        self.interrupts.fetch_add(1, Ordering::AcqRel);
        self.wakers.wake_all();
    }

    /// Returns the number of interrupts so far.
    pub(super) fn interrupts(&self) -> u64 {
        self.interrupts.load(Ordering::Acquire)
    }

    /// Returns the current time limit.
    pub(crate) fn time_limit(&self) -> Option<Duration> {
        *self.time_limit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the time limit of waits. WebAssembly has no thread that could watch it.
    pub(crate) fn set_time_limit(&self, limit: Option<Duration>) {
        if cfg!(target_arch = "wasm32") {
            log::warn!("{}: time limits have no effect in WebAssembly", self.info.name);
            return;
        }
        *self.time_limit.lock().unwrap_or_else(PoisonError::into_inner) = limit;
        self.wakers.wake_all();
    }

    /// Returns a driver's result unchanged, and marks the device as lost if it is
    /// [`GpuError::DeviceLost`].
    pub(crate) fn note_loss<T>(&self, result: Result<T>) -> Result<T> {
        if let Err(GpuError::DeviceLost(DeviceLostError { reason, .. })) = &result {
            self.lose(reason.clone());
        }
        result
    }

    /// Marks the device as lost and abandons the driver, unless it is lost already.
    pub(super) fn lose(&self, reason: String) {
        if self.lost.set(reason).is_ok() {
            self.driver.abandon();
            self.wakers.wake_all();
        }
    }

    /// Abandons the device, because work exceeds the time limit and cannot be cancelled.
    pub(super) fn abandon(&self, limit: Duration) {
        self.lose(format!(
            "a kernel did not finish within the time limit of {limit:?}, and this backend could \
             not stop it"
        ));
    }

    /// Returns the pending futures; `None` in a forked child, in which the lock may never be
    /// released.
    pub(super) fn wakers_unless_forked(&self) -> Option<&Wakers> {
        (!self.has_forked()).then_some(&self.wakers)
    }

    fn lost_error(&self, reason: &str) -> GpuError {
        GpuError::DeviceLost(DeviceLostError {
            function: None,
            device: self.info.name.clone(),
            reason: reason.to_owned(),
        })
    }

    /// Returns the error of a wait that exceeded a time limit.
    pub(super) fn timeout_error(&self, limit: Duration, help: &str) -> GpuError {
        let device = self.info.name.clone();
        GpuError::Timeout(TimeoutError { function: None, device, limit, help: help.to_owned() })
    }
}
