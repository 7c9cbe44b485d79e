//! Cancellation of running kernels.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Cancels a running kernel.
///
/// All tokens created from one by [`CancelToken::at`] share an atomic word, which holds the latest
/// epoch to cancel and is never reset. Each launch must have a later epoch than those before it, so
/// that a request for a launch that has already ended cannot cancel a later one.
#[derive(Debug, Clone)]
pub struct CancelToken {
    word: Arc<AtomicU64>,
    epoch: u64,
}

impl Default for CancelToken {
    /// Creates a token with a new word, for epoch 1.
    fn default() -> Self {
        Self { word: Arc::default(), epoch: 1 }
    }
}

impl CancelToken {
    /// Returns a token with the same word for another epoch. Epochs start at 1; 0 is treated as 1.
    #[must_use]
    pub fn at(&self, epoch: u64) -> Self {
        Self { word: self.word.clone(), epoch: epoch.max(1) }
    }

    /// Requests cancellation of this epoch and of all before it.
    pub fn request(&self) {
        self.word.fetch_max(self.epoch, Ordering::Relaxed);
    }

    /// Returns whether cancellation of this epoch was requested.
    #[must_use]
    pub fn requested(&self) -> bool {
        self.word.load(Ordering::Relaxed) >= self.epoch
    }
}

/// The error of a cancelled launch.
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
        // A late request.
        first.request();
        assert!(second.requested() && !third.requested());
        assert!(!CancelToken::default().requested(), "another word");
        assert!(!CancelToken::default().at(0).requested());
    }
}
