//! Who is calling the driver.
//!
//! Some calls wait for the device, such as those that load code, and keep every other call from
//! the context meanwhile. If the device is executing a kernel that does not end, a thread that
//! waits for that kernel must therefore make no call that could have to wait: it would never come
//! to say that the time is over. It asks only while nobody else is in the driver.

use std::hint;
use std::sync::atomic::{AtomicU32, Ordering};

/// The calls in progress of this process: one context of a device serves all who open it.
static CALLS: AtomicU32 = AtomicU32::new(0);

/// In place of a number: one call in progress, and nobody else enters.
const ALONE: u32 = u32::MAX;

/// A call in progress, or several of one thread.
pub(crate) struct Call {
    alone: bool,
}

impl Call {
    /// Begins a call. Who is alone is so for no more than the time of a question.
    pub(crate) fn enter() -> Self {
        while CALLS.fetch_update(Ordering::Acquire, Ordering::Relaxed, one_more).is_err() {
            hint::spin_loop();
        }
        Self { alone: false }
    }

    /// Begins a call if there is no other, and keeps others from beginning.
    pub(crate) fn alone() -> Option<Self> {
        let taken = CALLS.compare_exchange(0, ALONE, Ordering::Acquire, Ordering::Relaxed);
        // Not `then_some`: a call that is not taken must not be dropped either.
        taken.is_ok().then(|| Self { alone: true })
    }
}

fn one_more(calls: u32) -> Option<u32> {
    (calls != ALONE).then(|| calls + 1)
}

impl Drop for Call {
    fn drop(&mut self) {
        if self.alone {
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
    fn nobody_is_alone_while_others_call() {
        let first = Call::enter();
        let second = Call::enter();
        assert!(Call::alone().is_none());
        assert!(CALLS.load(Ordering::Relaxed) >= 2, "who is refused changes nothing");
        drop(first);
        assert!(Call::alone().is_none());
        drop(second);
    }

    #[test]
    fn a_number_grows_but_never_into_the_mark_of_one_alone() {
        assert_eq!(one_more(0), Some(1));
        assert_eq!(one_more(ALONE), None);
    }
}
