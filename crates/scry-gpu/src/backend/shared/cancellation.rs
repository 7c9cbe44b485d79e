//! Waiting for cancelled submissions to end.

use std::time::Duration;

use crate::api::error::Result;

/// Timeout for the first cancelled submission to end, and for each one after it.
pub(crate) const CANCEL_TIMEOUT: Duration = Duration::from_millis(500);

/// Waits for the submissions from `reached` on to end one by one; false if none ended within the
/// timeout. There may be many, and other processes may share the device: progress is all that is
/// required.
pub(crate) fn wait_one_by_one(
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

/// Returns the first submission up to `number` that was not complete when those up to `reached`
/// were, or the one after it.
pub(crate) fn first_unreached(reached: u64, number: u64) -> u64 {
    reached.min(number).saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_cancelled_follows_last_completed() {
        assert_eq!(first_unreached(0, 1), 1);
        assert_eq!(first_unreached(4, 9), 5);
        assert_eq!(first_unreached(8, 9), 9);
        // All had completed, including submissions beyond the cancelled ones.
        assert_eq!(first_unreached(9, 9), 10);
        assert_eq!(first_unreached(12, 9), 10);
        assert_eq!(first_unreached(u64::MAX, u64::MAX), u64::MAX);
    }

    #[test]
    fn waits_while_progress_continues() {
        // Each wait ends one submission, up to the last one that ends.
        let ended = |last: u64| {
            let done = std::cell::Cell::new(4);
            let wait = || {
                done.set(last.min(done.get() + 1));
                Ok(done.get() == 9)
            };
            (wait_one_by_one(4, wait, || Ok(done.get())), done.get())
        };
        assert_eq!(ended(9), (Ok(true), 9));
        assert_eq!(ended(7), (Ok(false), 7));
        assert_eq!(ended(4), (Ok(false), 4));
    }
}
