//! Detects use of a device in a forked child.
//!
//! A driver does not survive `fork`: its threads do not exist in the child, and the state that it
//! shares with the device is the parent's. A device therefore stores the number of forks before it
//! was opened. Checking that costs a load, whereas getting the process id is a system call.

use std::sync::atomic::{AtomicU32, Ordering};

/// Forks between the process that first opened a device and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// The reason of the device loss after a fork.
pub(crate) const FORKED: &str = "it was opened before a fork and cannot be used in the child \
     process; open a device after the fork";

/// A process, identified by its number of forks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process(u32);

impl Process {
    /// Returns the current process.
    pub(crate) fn current() -> Self {
        count_forks();
        Self(FORKS.load(Ordering::Relaxed))
    }

    /// Returns whether the calling process is a later fork of this one.
    pub(crate) fn has_forked(self) -> bool {
        self.0 != FORKS.load(Ordering::Relaxed)
    }
}

/// Registers a handler that counts forks in the child.
#[cfg(unix)]
fn count_forks() {
    use std::ffi::c_int;
    use std::sync::Once;

    type Handler = unsafe extern "C" fn();

    // SAFETY: the declaration matches POSIX.
    unsafe extern "C" {
        fn pthread_atfork(
            prepare: Option<Handler>,
            parent: Option<Handler>,
            child: Option<Handler>,
        ) -> c_int;
    }

    /// Counts a fork and resets the count of calls: both are async-signal-safe, as required in the
    /// child of a process with several threads.
    ///
    /// # Safety
    /// No preconditions: `unsafe` only matches the declaration of `pthread_atfork`.
    unsafe extern "C" fn count() {
        FORKS.fetch_add(1, Ordering::Relaxed);
        crate::lifecycle::exit_guard::reset_after_fork();
    }

    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        // SAFETY: the handler is safe to call at any time.
        let code = unsafe { pthread_atfork(None, None, Some(count)) };
        if code != 0 {
            log::warn!("forks are not detected: pthread_atfork failed with {code}");
        }
    });
}

#[cfg(not(unix))]
fn count_forks() {}
