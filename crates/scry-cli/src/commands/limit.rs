//! Time limits on the command line, and notices during long work.

use std::io::{self, IsTerminal as _};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use scry_gpu::{Device, GpuError};

use crate::args::TimeLimit;
use crate::report::{Failure, note};

/// The time until the first notice; each further one follows at twice the time of the one before.
const FIRST_NOTICE: Duration = Duration::from_secs(5);

impl TimeLimit {
    /// Sets the time limit of a device to this one.
    pub fn apply_to(&self, device: &Device) {
        device.set_time_limit(self.time_limit);
    }

    /// Returns the failure of a kernel. If it exceeded the time limit, the message names the
    /// option.
    pub fn failure(&self, error: GpuError, kernel: &str, device: &Device) -> Failure {
        match (&error, self.time_limit) {
            (GpuError::Timeout { .. }, Some(limit)) => Failure::Runtime(format!(
                "kernel `{kernel}` did not finish on {} within --time-limit {}; help: look for a \
                 loop that does not terminate, or give a longer --time-limit",
                device.info().name,
                humantime::format_duration(limit)
            )),
            _ => error.into(),
        }
    }
}

/// Prints notices to a terminal, after times that double, that an operation is still running; stops
/// when dropped.
pub struct Notice {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Notice {
    /// Starts notices about the operation `what`, unless standard error is not a terminal.
    pub fn start(what: &str, limit: Option<&TimeLimit>) -> Self {
        if !io::stderr().is_terminal() {
            return Self { stop: None, thread: None };
        }
        let hint = match limit.and_then(|limit| limit.time_limit) {
            Some(limit) => format!("--time-limit {}", humantime::format_duration(limit)),
            None => "Ctrl+C stops it".to_owned(),
        };
        let what = what.to_owned();
        Self::start_with(FIRST_NOTICE, move |elapsed| {
            note(&format!("still running after {} s: {what} ({hint})", elapsed.as_secs()));
        })
    }

    fn start_with(first: Duration, mut print: impl FnMut(Duration) + Send + 'static) -> Self {
        let (stop, stopped) = mpsc::channel();
        let thread = thread::spawn(move || {
            let (mut elapsed, mut next) = (Duration::ZERO, first);
            while stopped.recv_timeout(next.saturating_sub(elapsed))
                == Err(RecvTimeoutError::Timeout)
            {
                print(next);
                (elapsed, next) = (next, next.saturating_mul(2));
            }
        });
        Self { stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Notice {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The thread only prints; a failure has no consequence.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_become_rarer_and_end() {
        let (sender, receiver) = mpsc::channel();
        let notice = Notice::start_with(Duration::from_millis(5), move |elapsed| {
            sender.send(elapsed.as_millis()).expect("the test still listens");
        });
        let first: Vec<u128> = receiver.iter().take(4).collect();
        assert_eq!(first, [5, 10, 20, 40]);
        drop(notice);
        assert!(receiver.iter().count() < 2, "after the end there are no more");
    }
}
