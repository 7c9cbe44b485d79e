//! How long a rank waits for others, and what ends its wait early.

use std::time::{Duration, Instant};

/// The longest wait without a look at the time limit and at interrupts.
pub(super) const SLICE: Duration = Duration::from_millis(50);

/// The wait of a call.
pub(super) struct Wait<'a> {
    /// The longest time that the caller waits for other ranks.
    pub limit: Duration,
    /// Returns whether the program has interrupted the wait.
    pub interrupted: &'a dyn Fn() -> bool,
}

/// Why a wait ended without a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// At its time limit.
    Limit,
    /// By the program.
    Interrupt,
}

impl Wait<'_> {
    /// Returns why a wait that began at `start` has to end; `None` if it may go on.
    pub(super) fn ended(&self, start: Instant) -> Option<Ended> {
        if (self.interrupted)() {
            return Some(Ended::Interrupt);
        }
        (start.elapsed() >= self.limit).then_some(Ended::Limit)
    }

    /// Returns the time until the next look, for a wait that began at `start`.
    pub(super) fn slice(&self, start: Instant) -> Duration {
        // Sockets reject a timeout of zero.
        self.limit.saturating_sub(start.elapsed()).clamp(Duration::from_millis(1), SLICE)
    }
}
