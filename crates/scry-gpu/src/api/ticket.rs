//! Waiting for a submitted batch.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::api::error::{InFunction, Result};
use crate::core::completion::Completion;
use crate::core::context::Context;
use crate::core::handles::SubmissionIndex;

/// A submitted batch, which may still be running: what a fence is in Vulkan, and an event in CUDA.
/// Dropping a ticket does not stop the batch.
#[doc(alias("fence", "event", "semaphore"))]
#[must_use = "wait for the ticket, or drop it explicitly: the batch keeps running"]
pub struct Ticket {
    context: Arc<Context>,
    /// `None` if the batch was empty.
    submission: Option<SubmissionIndex>,
}

impl Ticket {
    pub(crate) fn new(context: &Arc<Context>, submission: Option<SubmissionIndex>) -> Self {
        Self { context: context.clone(), submission }
    }

    pub(crate) fn completion(&self) -> Option<Completion> {
        self.submission.map(|submission| Completion::for_submission(&self.context, submission))
    }

    /// Waits until the batch is done.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = gpu.alloc::<u32>(2)?;
    /// let ticket = gpu.batch().fill(&x, 1)?.submit_async()?;
    /// // … work for the host …
    /// ticket.wait()?;
    /// assert!(ticket.is_ready()?);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::DeviceLost`](crate::GpuError::DeviceLost),
    /// [`GpuError::Timeout`](crate::GpuError::Timeout) after the device's time limit,
    /// [`GpuError::Kernel`](crate::GpuError::Kernel) if a launch of the batch did not
    /// complete,
    /// [`GpuError::Interrupted`](crate::GpuError::Interrupted) after which it may be waited
    /// for again.
    pub fn wait(&self) -> Result<()> {
        let wait = |submission| self.context.wait(submission).in_function("Ticket::wait");
        self.submission.map_or(Ok(()), wait)
    }

    /// Waits at most `timeout`, and returns whether the batch is done. May be called again.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use scry_gpu::Device;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = gpu.alloc::<u32>(2)?;
    /// let ticket = gpu.batch().fill(&x, 1)?.submit_async()?;
    /// while !ticket.wait_timeout(Duration::from_millis(100))? {
    ///     println!("still running");
    /// }
    /// assert_eq!(x.download()?, [1, 1]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Ticket::wait`]; an expired `timeout` is not an error.
    pub fn wait_timeout(&self, timeout: Duration) -> Result<bool> {
        let wait = |submission| self.context.wait_until(submission, Some(timeout));
        self.submission.map_or(Ok(true), wait).in_function("Ticket::wait_timeout")
    }

    /// Returns whether the batch is done, without waiting.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let ticket = gpu.batch().submit_async()?; // nothing to do
    /// assert!(ticket.is_ready()?);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Ticket::wait_timeout`].
    pub fn is_ready(&self) -> Result<bool> {
        self.wait_timeout(Duration::ZERO).in_function("Ticket::is_ready")
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket")
            .field("device", &self.context.info.name)
            .field("submission", &self.submission.map(|submission| submission.0))
            .finish()
    }
}
