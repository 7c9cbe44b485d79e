//! Waiting for a device by polling: first spinning, then with growing sleeps.

use std::time::{Duration, Instant};

/// How long to spin: longer than a round trip of a small dispatch.
const SPIN: Duration = Duration::from_micros(80);

/// Minimum and maximum sleep between polls after that. A sleep is 1/32 of the time waited so far,
/// so that a wait is late by about 3 % at most. Blocking in the driver until an interrupt is not
/// better: on an H200 in a virtual machine the wake-up came 0.3 ms late, and at times 4 ms, a tick
/// of the system's clock.
const PAUSE: (Duration, Duration) = (Duration::from_micros(20), Duration::from_micros(250));

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
    pub(crate) fn waited(&self) -> Duration {
        self.start.elapsed()
    }

    /// Returns the remaining time; `None` after the timeout.
    #[cfg(feature = "vulkan")]
    pub(crate) fn left(&self) -> Option<Duration> {
        self.left_after(self.waited())
    }

    fn left_after(&self, waited: Duration) -> Option<Duration> {
        self.timeout.checked_sub(waited).filter(|left| !left.is_zero())
    }

    /// Spins or sleeps until the next poll; returns false after the timeout.
    pub(crate) fn pause(&self) -> bool {
        let waited = self.waited();
        let Some(left) = self.left_after(waited) else { return false };
        match pause_after(waited) {
            None => std::hint::spin_loop(),
            Some(pause) => std::thread::sleep(pause.min(left)),
        }
        true
    }
}

/// Returns the sleep before the next poll; `None` to spin.
fn pause_after(waited: Duration) -> Option<Duration> {
    (waited >= SPIN).then(|| (waited / 32).clamp(PAUSE.0, PAUSE.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_within_limits() {
        let micros = Duration::from_micros;
        assert_eq!(pause_after(micros(79)), None);
        assert_eq!(pause_after(micros(80)), Some(micros(20)));
        assert_eq!(pause_after(micros(3200)), Some(micros(100)));
        assert_eq!(pause_after(Duration::from_secs(9)), Some(micros(250)));
    }

    #[test]
    fn wait_ends_exactly_at_timeout() {
        assert!(!Wait::new(Duration::ZERO).pause());
        assert_eq!(Wait::new(Duration::ZERO).left(), None);
        let wait = Wait::new(Duration::from_millis(2));
        assert!(wait.pause());
        while wait.pause() {}
        assert!(wait.waited() >= Duration::from_millis(2));
        assert_eq!(wait.left(), None);
    }
}
