//! The latest submission of a batch or recording, for its downloads.

use std::sync::{Arc, PoisonError, RwLock, TryLockError};

use crate::api::error::Result;
use crate::core::handles::SubmissionIndex;

/// The latest submission of a batch, if any, shared by the batch and its downloads.
///
/// A replay overwrites the elements that an earlier one read back. Downloads therefore hold the
/// read lock and wait for the latest submission; submissions hold the write lock.
#[derive(Clone, Default)]
pub(crate) struct LatestSubmission(Arc<RwLock<Option<SubmissionIndex>>>);

impl LatestSubmission {
    /// Submits, and stores the submission index; an empty batch has none.
    pub(crate) fn submit(
        &self,
        submit: impl FnOnce() -> Result<Option<SubmissionIndex>>,
    ) -> Result<Option<SubmissionIndex>> {
        let mut latest = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let submission = submit()?;
        *latest = submission;
        Ok(submission)
    }

    /// Calls `read` with the index of the latest submission; the lock delays further submissions.
    pub(crate) fn read<R>(&self, read: impl FnOnce(Option<SubmissionIndex>) -> R) -> R {
        read(*self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// As [`Self::read`], but returns `None` at once while the lock is held by, or reserved for, a
    /// submission.
    pub(crate) fn try_read<R>(&self, read: impl FnOnce(Option<SubmissionIndex>) -> R) -> Option<R> {
        let latest = match self.0.try_read() {
            Ok(latest) => latest,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(read(*latest))
    }
}
