//! The watcher: a thread of a device that wakes its pending futures.
//!
//! It polls drivers that do not support notifications, and cancels work that exceeds the time
//! limit. The first await that needs it starts it; dropping the device ends it. It holds the
//! driver and the device's state but not the [`Context`](crate::core::context::Context): it does
//! not keep the device alive.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Wake, Waker};
use std::thread::{self, Builder, JoinHandle};
use std::time::Duration;

use crate::api::error::{DriverError, GpuError, Result};
use crate::api::info::DeviceKind;
use crate::core::device_state::DeviceState;
use crate::core::handles::SubmissionIndex;
use crate::core::wakers::Duty;
use crate::lifecycle::cancellation::Cancellations;

/// The watcher of a device, once it is started.
#[derive(Default)]
pub(crate) struct Watcher(Mutex<Option<JoinHandle<()>>>);

impl Watcher {
    /// Starts the thread, unless it is running.
    pub(crate) fn start(
        &self,
        device: &Arc<DeviceState>,
        cancellations: &Arc<Cancellations>,
    ) -> Result<()> {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if running.is_some() {
            return Ok(());
        }
        let (state, cancellations) = (device.clone(), cancellations.clone());
        let thread = Builder::new().name("scry-gpu watcher".to_owned());
        let thread = thread.spawn(move || watch(&state, &cancellations)).map_err(|error| {
            let code = format!("no thread could be started: {error}");
            let help = "end other threads, or wait without await";
            GpuError::Driver(DriverError::new(&device.info.name, "await", code, help))
        })?;
        *running = Some(thread);
        Ok(())
    }

    /// Ends the thread and joins it. When called on the watcher itself (the waker of a task may
    /// drop the last handle of a device), it does not join; the thread ends by itself.
    pub(crate) fn end(&mut self, device: &DeviceState) {
        let running = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(thread) = running.take() else { return };
        if device.has_forked() {
            // The thread exists only in the parent process: the handle is invalid here.
            std::mem::forget(thread);
            return;
        }
        device.wakers.end();
        if thread.thread().id() != thread::current().id() {
            // Panics of wakers are caught, and nothing else panics.
            let _ = thread.join();
        }
    }
}

/// Polls the driver for the pending futures of a device until the device is dropped.
fn watch(device: &DeviceState, cancellations: &Cancellations) {
    // Polling without pauses would slow down kernels of a software device, which run on the host.
    let may_spin = device.info.kind != DeviceKind::Software;
    while let Some(duty) = device.wakers.next_duty(may_spin) {
        match duty {
            Duty::Poll(submission, pause) => {
                let polled = match may_spin {
                    true => device.driver.poll(submission),
                    false => device.driver.wait(submission, pause),
                };
                // After an error, the futures poll the driver themselves and return the error.
                if !matches!(device.note_loss(polled), Ok(false)) {
                    device.wakers.wake_up_to(submission);
                }
            }
            Duty::Expired(submission) => {
                if let Some(limit) = device.time_limit() {
                    cancel_or_abandon(device, cancellations, submission, limit);
                }
                device.wakers.wake_up_to(submission);
            }
        }
    }
}

/// Cancels work that exceeds the time limit; abandons the device if that fails.
fn cancel_or_abandon(
    device: &DeviceState,
    cancellations: &Cancellations,
    submission: SubmissionIndex,
    limit: Duration,
) {
    let cancelled = cancellations.cancel(&*device.driver, submission, limit);
    if !matches!(device.note_loss(cancelled), Ok(true)) && device.check_alive().is_ok() {
        device.wakers.set_abandoned_after(limit);
        device.abandon(limit);
    }
}

/// Wakes the futures of a device when the driver notifies.
struct Notification {
    device: Weak<DeviceState>,
    submission: SubmissionIndex,
}

impl Wake for Notification {
    fn wake(self: Arc<Self>) {
        if let Some(device) = self.device.upgrade() {
            device.wakers.wake_up_to(self.submission);
        }
    }
}

/// Returns a waker for [`Driver::notify`](crate::core::driver::Driver::notify) that wakes the
/// futures waiting for submissions up to `submission`. It does not keep the device alive.
pub(crate) fn notification(device: &Arc<DeviceState>, submission: SubmissionIndex) -> Waker {
    Waker::from(Arc::new(Notification { device: Arc::downgrade(device), submission }))
}
