//! Cancellation of running kernels.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Cancels a running kernel.
///
/// All stops created from one by [`CancelToken::at`] share a word, which holds the latest epoch to cancel.
/// Each launch has an epoch of its own, later than those before it. So a request that comes late,
/// when its launch has already ended, cannot cancel a later one, and nothing is ever reset.
#[derive(Debug, Clone)]
pub struct CancelToken {
    word: Arc<AtomicU64>,
    epoch: u64,
}

impl Default for CancelToken {
    /// Creates a new word, at the first epoch.
    fn default() -> Self {
        Self { word: Arc::default(), epoch: 1 }
    }
}

impl CancelToken {
    /// Returns the same word at another epoch, from 1.
    #[must_use]
    pub fn at(&self, epoch: u64) -> Self {
        Self { word: self.word.clone(), epoch: epoch.max(1) }
    }

    /// Requests cancellation of this epoch and of all before it.
    pub fn request(&self) {
        self.word.fetch_max(self.epoch, Ordering::Relaxed);
    }

    /// Returns whether cancellation was requested.
    #[must_use]
    pub fn requested(&self) -> bool {
        self.word.load(Ordering::Relaxed) >= self.epoch
    }
}

/// A kernel was cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cancelled;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cancelling_an_epoch_spares_later_ones() {
        let first = CancelToken::default();
        let (second, third) = (first.at(2), first.at(3));
        assert!(!first.requested() && !second.requested());
        second.request();
        assert!(first.requested() && second.requested() && !third.requested());
        // One that comes late.
        first.request();
        assert!(second.requested() && !third.requested());
        assert!(!CancelToken::default().requested(), "another word");
        assert!(!CancelToken::default().at(0).requested());
    }
}
