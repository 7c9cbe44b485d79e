//! Waiting for a device by looking: at first without a pause, then with growing ones.

use std::time::{Duration, Instant};

/// Longest time to look without a pause: a round trip of a small dispatch is shorter.
const SPIN: Duration = Duration::from_micros(80);

/// Shortest and longest pause between looks after that. A pause is a 32nd of the time waited so
/// far, so that no wait takes more than about so much too long. Sleeping in the driver until the
/// device interrupts is not better: on an H200 in a virtual machine the wake-up came 0.3 ms late,
/// and at times 4 ms, a tick of the system's clock.
const PAUSE: (Duration, Duration) = (Duration::from_micros(20), Duration::from_micros(250));

/// A wait that has begun.
pub(crate) struct Wait {
    start: Instant,
    timeout: Duration,
}

impl Wait {
    /// A wait for at most `timeout`.
    pub(crate) fn new(timeout: Duration) -> Self {
        Self { start: Instant::now(), timeout }
    }

    /// How long it has taken.
    pub(crate) fn waited(&self) -> Duration {
        self.start.elapsed()
    }

    /// The time that is left, unless it is up.
    #[cfg(feature = "vulkan")]
    pub(crate) fn left(&self) -> Option<Duration> {
        self.left_after(self.waited())
    }

    fn left_after(&self, waited: Duration) -> Option<Duration> {
        self.timeout.checked_sub(waited).filter(|left| !left.is_zero())
    }

    /// Passes the time until the next look; false if the time is up.
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

/// The pause before the next look after so long a wait; none while it is worth looking on.
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
