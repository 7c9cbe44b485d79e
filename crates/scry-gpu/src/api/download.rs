//! Elements that a batch reads back to the host.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::task::Poll;

use crate::api::element::{self, Element};
use crate::api::error::{BufferAccessError, GpuError, InFunction, Result};
use crate::api::latest_submission::LatestSubmission;
use crate::core::completion::Completion;
use crate::core::context::Context;
use crate::core::handles::{MemoryId, SubmissionIndex};
use crate::core::memory::Memory;

/// Elements that a batch reads back.
#[must_use = "the elements are available only through `get`"]
pub struct Download<T> {
    context: Arc<Context>,
    /// `None` if there are no elements.
    copy: Option<HostCopy>,
    len: usize,
    latest: LatestSubmission,
    element: PhantomData<T>,
}

/// Host memory that a batch copies elements to.
pub(crate) struct HostCopy {
    pub(crate) memory: Arc<Memory>,
    /// The source allocation: reading reports failed launches that write it.
    pub(crate) source: MemoryId,
}

impl<T: Element> Download<T> {
    pub(crate) fn new(
        context: &Arc<Context>,
        copy: Option<HostCopy>,
        len: usize,
        latest: LatestSubmission,
    ) -> Self {
        let element = PhantomData;
        Self { context: context.clone(), copy, len, latest, element }
    }

    /// Waits for the batch, or the latest replay of its recording, and returns the elements as they
    /// were at that point of the batch.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = gpu.upload(&[1u32, 2])?;
    /// let mut batch = gpu.batch();
    /// let before = batch.download(&x)?;
    /// batch.fill(&x, 0)?;
    /// let after = batch.download(&x)?;
    /// assert!(before.get().is_err()); // not submitted
    /// let ticket = batch.submit_async()?;
    /// ticket.wait()?;
    /// assert_eq!((before.get()?, after.get()?), (vec![1, 2], vec![0, 0]));
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::BufferAccess`] if the batch was never submitted; else as
    /// [`Ticket::wait`](crate::Ticket::wait). A download of no elements never fails, and does not
    /// wait.
    pub fn get(&self) -> Result<Vec<T>> {
        match &self.copy {
            Some(copy) => {
                let read = self.latest.read(|submission| self.read(copy, submission));
                read.in_function("Download::get")
            }
            None => Ok(Vec::new()),
        }
    }

    fn read(&self, copy: &HostCopy, submission: Option<SubmissionIndex>) -> Result<Vec<T>> {
        let submission = submission.ok_or_else(|| not_submitted("Download::get"))?;
        self.context.wait_for_reading(submission, copy.source)?;
        self.copy_out(copy)
    }

    /// Async form of [`Download::get`]. No lock is held while it waits: a replay that is submitted
    /// in the meantime is awaited as well.
    pub(super) async fn read_async(&self) -> Result<Vec<T>> {
        let Some(copy) = &self.copy else { return Ok(Vec::new()) };
        let mut awaited = None;
        loop {
            let read = self.latest.try_read(|submission| match submission {
                Some(submission) if Some(submission) == awaited => Ok(Ok(self.copy_out(copy))),
                Some(submission) => Ok(Err(submission)),
                None => Err(not_submitted("Download::get_async")),
            });
            match read.transpose()? {
                Some(Ok(elements)) => return elements,
                Some(Err(submission)) => {
                    Completion::for_reading(&self.context, submission, copy.source).await?;
                    awaited = Some(submission);
                }
                // Another thread is submitting a replay, or waiting for the lock to do so.
                None => yield_now().await,
            }
        }
    }

    fn copy_out(&self, copy: &HostCopy) -> Result<Vec<T>> {
        let mut out = element::zeroed(self.len);
        let bytes = element::bytes_of_mut(&mut out);
        self.context.note_loss(self.context.driver.read(copy.memory.id(), 0, bytes))?;
        Ok(out)
    }
}

fn not_submitted(operation: &'static str) -> GpuError {
    GpuError::BufferAccess(BufferAccessError {
        operation,
        problem: "the batch that reads these elements was not submitted".to_owned(),
        help: "submit the batch, or replay the recording, first".to_owned(),
    })
}

/// Yields to other tasks once.
async fn yield_now() {
    let mut has_yielded = false;
    std::future::poll_fn(|cx| match std::mem::replace(&mut has_yielded, true) {
        true => Poll::Ready(()),
        false => {
            cx.waker().wake_by_ref();
            Poll::Pending
        }
    })
    .await;
}

impl<T> fmt::Debug for Download<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Download")
            .field("len", &self.len)
            .field("element", &std::any::type_name::<T>())
            .field("device", &self.context.info.name)
            .finish()
    }
}
