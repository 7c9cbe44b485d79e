//! Whether this is still the process that a device was opened in.
//!
//! What a driver keeps does not survive a `fork`: its threads are not in the child, and what it
//! shares with the device belongs to the parent. So a device remembers how many forks lay behind
//! its process when it was opened. The count costs a load, where a process id costs a system call.

use std::sync::atomic::{AtomicU32, Ordering};

/// Forks between the process that first opened a device and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// What to say of a device that was opened before a fork.
pub(crate) const FORKED: &str = "it was opened before a fork and does not work in the child \
     process, where Device::open must come after the fork";

/// A process, as far as forks tell it from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process(u32);

impl Process {
    /// The process that this is called in.
    pub(crate) fn current() -> Self {
        count_forks();
        Self(FORKS.load(Ordering::Relaxed))
    }

    /// Whether this is called in a child that was forked since.
    pub(crate) fn was_left(self) -> bool {
        self.0 != FORKS.load(Ordering::Relaxed)
    }
}

/// Has every fork from now on counted, in the child.
#[cfg(unix)]
fn count_forks() {
    use std::ffi::c_int;
    use std::sync::Once;

    type Handler = unsafe extern "C" fn();

    // SAFETY: the declaration is POSIX's.
    unsafe extern "C" {
        fn pthread_atfork(
            prepare: Option<Handler>,
            parent: Option<Handler>,
            child: Option<Handler>,
        ) -> c_int;
    }

    /// Only this: a child of a process with several threads may do little before it is done.
    ///
    /// # Safety
    /// None is asked for: the type is what POSIX wants.
    unsafe extern "C" fn count() {
        FORKS.fetch_add(1, Ordering::Relaxed);
        crate::lifecycle::exit_guard::forked();
    }

    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        // SAFETY: the handler is safe to call at any time.
        let code = unsafe { pthread_atfork(None, None, Some(count)) };
        if code != 0 {
            log::warn!("forks are not noticed: pthread_atfork failed with {code}");
        }
    });
}

#[cfg(not(unix))]
fn count_forks() {}
