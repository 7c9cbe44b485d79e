//! Waiting for a device by polling: first spinning, then with growing sleeps.

use std::time::Duration;

use crate::core::clock::Instant;

/// How long to spin before the first sleep: longer than a round trip of a small dispatch.
const SPIN_TIME: Duration = Duration::from_micros(80);

/// Minimum sleep between polls. A longer one is 1/32 of the time waited so far, so that a wait is
/// late by about 3 %, or by this minimum. Blocking in the driver until an interrupt is not better:
/// on an H200 in a virtual machine the wake-up came 0.3 ms late, and at times 4 ms, a tick of the
/// system's clock.
const MIN_SLEEP: Duration = Duration::from_micros(20);

/// Maximum sleep between polls.
const MAX_SLEEP: Duration = Duration::from_micros(250);

/// A wait in progress.
pub(crate) struct Wait {
    start: Instant,
    timeout: Duration,
}

impl Wait {
    /// Starts a wait for at most `timeout`.
    pub(crate) fn new(timeout: Duration) -> Self {
        Self { start: Instant::now(), timeout }
    }

    /// Returns the time since the start.
    pub(crate) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Returns the remaining time; `None` after the timeout.
    #[cfg(any(vulkan, wgpu))]
    pub(crate) fn remaining(&self) -> Option<Duration> {
        self.remaining_after(self.elapsed())
    }

    fn remaining_after(&self, elapsed: Duration) -> Option<Duration> {
        self.timeout.checked_sub(elapsed).filter(|remaining| !remaining.is_zero())
    }

    /// Spins or sleeps until the next poll; returns false after the timeout.
    pub(crate) fn pause(&self) -> bool {
        let elapsed = self.elapsed();
        let Some(remaining) = self.remaining_after(elapsed) else { return false };
        match sleep_after(elapsed) {
            None => std::hint::spin_loop(),
            Some(sleep) => std::thread::sleep(sleep.min(remaining)),
        }
        true
    }
}

/// Returns the sleep before the next poll; `None` to spin.
fn sleep_after(elapsed: Duration) -> Option<Duration> {
    (elapsed >= SPIN_TIME).then(|| (elapsed / 32).clamp(MIN_SLEEP, MAX_SLEEP))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_grow_within_limits() {
        let micros = Duration::from_micros;
        assert_eq!(sleep_after(micros(79)), None);
        assert_eq!(sleep_after(micros(80)), Some(micros(20)));
        assert_eq!(sleep_after(micros(3200)), Some(micros(100)));
        assert_eq!(sleep_after(Duration::from_secs(9)), Some(micros(250)));
    }

    #[test]
    fn waits_never_end_early() {
        assert!(!Wait::new(Duration::ZERO).pause());
        assert_eq!(Wait::new(Duration::ZERO).remaining(), None);
        let wait = Wait::new(Duration::from_millis(2));
        assert!(wait.pause());
        while wait.pause() {}
        assert!(wait.elapsed() >= Duration::from_millis(2));
        assert_eq!(wait.remaining(), None);
    }
}
