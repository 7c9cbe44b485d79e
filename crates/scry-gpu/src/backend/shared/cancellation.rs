//! Waiting for cancelled submissions to end.

use std::time::Duration;

#[cfg(any(cuda, vulkan))]
use crate::api::error::Result;

/// Interval at which a cancellation checks its progress: it fails if no submission ended in one.
pub(crate) const CANCEL_TIMEOUT: Duration = Duration::from_millis(500);

/// Repeats `wait` until it returns true. Returns false if it times out and `poll`, which returns
/// the last finished submission, reports no progress. `reached` is the result of the previous poll.
///
/// Many submissions may have to end, and other processes may share the device, so there is no limit
/// of the total time.
#[cfg(any(cuda, vulkan))]
pub(crate) fn wait_while_progressing(
    mut reached: u64,
    wait: impl Fn() -> Result<bool>,
    poll: impl Fn() -> Result<u64>,
) -> Result<bool> {
    while !wait()? {
        let now = poll()?;
        if now == reached {
            return Ok(false);
        }
        reached = now;
    }
    Ok(true)
}

/// Returns the first submission that a cancellation of those up to `last` ended: the one after
/// `reached`, which was the last finished one before the cancellation. `last + 1` if none was
/// ended.
#[cfg(any(cuda, vulkan))]
pub(crate) fn first_cancelled(reached: u64, last: u64) -> u64 {
    reached.min(last).saturating_add(1)
}

#[cfg(all(test, any(cuda, vulkan)))]
mod tests {
    use super::*;

    #[test]
    fn first_cancelled_follows_last_finished() {
        assert_eq!(first_cancelled(0, 1), 1);
        assert_eq!(first_cancelled(4, 9), 5);
        assert_eq!(first_cancelled(8, 9), 9);
        // All had finished; in the second case also submissions after `last`.
        assert_eq!(first_cancelled(9, 9), 10);
        assert_eq!(first_cancelled(12, 9), 10);
        assert_eq!(first_cancelled(u64::MAX, u64::MAX), u64::MAX);
    }

    #[test]
    fn waits_while_progress_continues() {
        // Waits for submission 9, where each wait ends one submission up to `last`.
        let wait_for_nine = |last: u64| {
            let done = std::cell::Cell::new(4);
            let wait = || {
                done.set(last.min(done.get() + 1));
                Ok(done.get() == 9)
            };
            (wait_while_progressing(4, wait, || Ok(done.get())), done.get())
        };
        assert_eq!(wait_for_nine(9), (Ok(true), 9));
        assert_eq!(wait_for_nine(7), (Ok(false), 7));
        assert_eq!(wait_for_nine(4), (Ok(false), 4));
    }
}
