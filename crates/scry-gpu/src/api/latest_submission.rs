//! Where a batch or recording keeps its latest submission, for its downloads.

use std::sync::{Arc, PoisonError, RwLock};

use crate::api::error::Result;
use crate::core::handles::Point;

/// The latest submission of a batch, once there is one; shared by the batch and its downloads.
///
/// A replay overwrites what an earlier one read back. So nothing is submitted while a download
/// reads, and downloads wait for the latest submission.
#[derive(Clone, Default)]
pub(crate) struct Latest(Arc<RwLock<Option<Point>>>);

impl Latest {
    /// Submits, and notes the point; an empty batch has none.
    pub(crate) fn submit(
        &self,
        submit: impl FnOnce() -> Result<Option<Point>>,
    ) -> Result<Option<Point>> {
        let mut latest = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let point = submit()?;
        *latest = point;
        Ok(point)
    }

    /// Calls `read` with the point of the latest submission; there is no other one meanwhile.
    pub(crate) fn read<R>(&self, read: impl FnOnce(Option<Point>) -> R) -> R {
        read(*self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}
