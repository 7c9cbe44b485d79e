//! Observers of submissions: collectives are watched, and rejected once their group has ended.

use std::sync::Arc;

use crate::api::error::Result;
use crate::core::handles::{MemoryId, SubmissionIndex};

/// Notices the submissions of a list of commands, also of its replays.
pub(crate) trait Observer: Send + Sync {
    /// Called without a lock before the list is recorded, submitted or replayed, which an error
    /// prevents. May wait.
    fn prepare(&self) -> Result<()>;

    /// Called before each submission, with the queue locked.
    fn begin(&self);

    /// Called after each submission, with the queue locked; `None` if it failed.
    fn end(&self, submitted: Option<(SubmissionIndex, &Arc<[MemoryId]>)>);

    /// Called after [`Observer::end`] without a lock. An error is the cause of a failed submission.
    fn settle(&self) -> Result<()>;
}

/// Submits work, which the observers notice.
pub(super) fn observed(
    observers: &[Arc<dyn Observer>],
    written: Option<&Arc<[MemoryId]>>,
    submit: impl FnOnce() -> Result<SubmissionIndex>,
) -> Result<SubmissionIndex> {
    observers.iter().for_each(|observer| observer.begin());
    let submitted = submit();
    let done = submitted.as_ref().ok().copied().zip(written);
    observers.iter().for_each(|observer| observer.end(done));
    submitted
}

/// Lets the observers settle a submission, and returns the cause if it failed and they know it.
pub(super) fn settled(
    observers: &[Arc<dyn Observer>],
    submitted: Result<SubmissionIndex>,
) -> Result<SubmissionIndex> {
    let settled = observers.iter().map(|observer| observer.settle()).fold(Ok(()), Result::and);
    match (submitted, settled) {
        (Err(_), Err(cause)) => Err(cause),
        (submitted, _) => submitted,
    }
}
