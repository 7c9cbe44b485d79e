//! Counts driver calls in progress, so that waits never block in the driver.
//!
//! Some calls, such as those that load code, wait for the device and block every other call on the
//! context meanwhile. A thread that waits for a kernel that does not terminate must therefore make
//! no call that could block, or it would miss its timeout. It queries the driver only while no
//! other call is in progress.

use std::hint;
use std::sync::atomic::{AtomicU32, Ordering};

/// Calls of this crate in progress, by all open devices: those of a GPU share its primary context.
static CALLS: AtomicU32 = AtomicU32::new(0);

/// The value of [`CALLS`] while an exclusive call is in progress.
const EXCLUSIVE: u32 = u32::MAX;

/// A guard that counts as a call in progress until it is dropped. A thread may hold several.
pub(crate) struct Call {
    exclusive: bool,
}

impl Call {
    /// Begins a call. Spins while an exclusive call is in progress: those are short queries.
    pub(crate) fn enter() -> Self {
        while CALLS.fetch_update(Ordering::Acquire, Ordering::Relaxed, increment).is_err() {
            hint::spin_loop();
        }
        Self { exclusive: false }
    }

    /// Begins an exclusive call; `None` if any other call is in progress.
    pub(crate) fn exclusive() -> Option<Self> {
        let acquired = CALLS.compare_exchange(0, EXCLUSIVE, Ordering::Acquire, Ordering::Relaxed);
        // Not `then_some`: it would create and drop the guard of a rejected call.
        acquired.is_ok().then(|| Self { exclusive: true })
    }
}

fn increment(calls: u32) -> Option<u32> {
    (calls != EXCLUSIVE).then(|| calls + 1)
}

impl Drop for Call {
    fn drop(&mut self) {
        if self.exclusive {
            CALLS.store(0, Ordering::Release);
        } else {
            CALLS.fetch_sub(1, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exclusive_call_fails_while_others_run() {
        let first = Call::enter();
        let second = Call::enter();
        assert!(Call::exclusive().is_none());
        assert!(CALLS.load(Ordering::Relaxed) >= 2, "a rejected call is not counted");
        drop(first);
        assert!(Call::exclusive().is_none());
        drop(second);
    }

    #[test]
    fn count_stays_below_exclusive_mark() {
        assert_eq!(increment(0), Some(1));
        assert_eq!(increment(EXCLUSIVE), None);
    }
}
