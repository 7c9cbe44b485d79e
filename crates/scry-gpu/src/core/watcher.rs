//! The watcher: the thread of a device that wakes its pending futures.
//!
//! It polls drivers that cannot notify, and cancels work that exceeds the time limit. It starts
//! with the first pending await that needs it and ends with the device. It holds the driver and the
//! device's state but not the [`Context`](crate::core::context::Context), so that it keeps no
//! device alive.

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
    /// Starts the thread, unless it runs.
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

    /// Ends the thread and joins it. Called on the watcher itself (the waker of a task may drop the
    /// last handle of a device), it leaves the thread to end by itself.
    pub(crate) fn end(&mut self, device: &DeviceState) {
        let running = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(thread) = running.take() else { return };
        if device.has_forked() {
            // The thread is the parent's: the handle has no meaning here.
            std::mem::forget(thread);
            return;
        }
        device.wakers.end();
        if thread.thread().id() != thread::current().id() {
            // Panics of wakers are caught, and there are no others.
            let _ = thread.join();
        }
    }
}

/// Serves the pending futures of a device, until its end.
fn watch(device: &DeviceState, cancellations: &Cancellations) {
    // Polling without pauses would slow down a kernel that runs on the host's processor.
    let may_spin = device.info.kind != DeviceKind::Software;
    while let Some(duty) = device.wakers.next_duty(may_spin) {
        match duty {
            Duty::Poll(submission, pause) => {
                let polled = match may_spin {
                    true => device.driver.poll(submission),
                    false => device.driver.wait(submission, pause),
                };
                // After an error the futures poll for themselves, and return it.
                if !matches!(device.note_loss(polled), Ok(false)) {
                    device.wakers.wake_up_to(submission);
                }
            }
            Duty::Expired(submission) => {
                if let Some(limit) = device.time_limit() {
                    end_work(device, cancellations, submission, limit);
                }
                device.wakers.wake_up_to(submission);
            }
        }
    }
}

/// Cancels work that exceeds the time limit; gives the device up if that fails.
fn end_work(
    device: &DeviceState,
    cancellations: &Cancellations,
    submission: SubmissionIndex,
    limit: Duration,
) {
    let cancelled = cancellations.cancel(&*device.driver, submission, limit);
    if !matches!(device.note_loss(cancelled), Ok(true)) && device.check_alive().is_ok() {
        device.wakers.set_given_up(limit);
        device.give_up(limit);
    }
}

/// Wakes the futures of a device once the driver notifies.
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

/// Returns a waker for [`Driver::notify`](crate::core::driver::Driver::notify), which wakes the
/// futures that wait for submissions up to `submission`. It keeps no device alive.
pub(crate) fn notification(device: &Arc<DeviceState>, submission: SubmissionIndex) -> Waker {
    Waker::from(Arc::new(Notification { device: Arc::downgrade(device), submission }))
}
