//! Signals that ask this process to end: its ranks are asked first.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::report::{self, Failure};

/// The signals since the last look.
#[derive(Default)]
pub struct Interrupts {
    last: Arc<AtomicUsize>,
}

impl Interrupts {
    /// Handles SIGINT, SIGTERM and SIGHUP from now on. Elsewhere than on Unix there are none.
    pub fn handle() -> Result<Self, Failure> {
        let interrupts = Self::default();
        #[cfg(unix)]
        for signal in
            [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP]
        {
            let last = interrupts.last.clone();
            signal_hook::flag::register_usize(signal, last, signal as usize)
                .map_err(|error| Failure::Runtime(format!("signal {signal}: {error}")))?;
        }
        Ok(interrupts)
    }

    /// Returns the last signal since the call before.
    pub fn next(&self) -> Option<i32> {
        match self.last.swap(0, Ordering::Relaxed) {
            0 => None,
            signal => i32::try_from(signal).ok(),
        }
    }
}

/// Ends this process as the signal does if it is not handled, so that a parent sees the signal.
pub fn end_by(signal: i32) -> Failure {
    #[cfg(unix)]
    {
        let name = signal_hook::low_level::signal_name(signal).unwrap_or("a signal");
        report::note(&format!("error: interrupted by {name}; all ranks were ended"));
        // It returns only if the signal cannot be sent.
        let _ = signal_hook::low_level::emulate_default_handler(signal);
    }
    Failure::Runtime(format!("interrupted by signal {signal}"))
}
