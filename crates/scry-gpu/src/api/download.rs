//! Elements that a batch reads back to the host.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::api::element::{self, Element};
use crate::api::error::{GpuError, InFunction, RangeError, Result};
use crate::api::latest_submission::Latest;
use crate::core::context::Context;
use crate::core::handles::{MemoryId, SubmissionIndex};
use crate::core::memory::Memory;

/// Elements that a batch reads back.
#[must_use = "elements are read back only to be received with `get`"]
pub struct Download<T> {
    context: Arc<Context>,
    /// Absent if there are no elements.
    copy: Option<HostCopy>,
    len: usize,
    latest: Latest,
    element: PhantomData<T>,
}

/// Host memory that a batch copies elements to.
pub(crate) struct HostCopy {
    pub(crate) memory: Arc<Memory>,
    /// The allocation that they are copied from: reading them reports failed launches that write
    /// it.
    pub(crate) source: MemoryId,
}

impl<T: Element> Download<T> {
    pub(crate) fn new(
        context: &Arc<Context>,
        copy: Option<HostCopy>,
        len: usize,
        latest: Latest,
    ) -> Self {
        let element = PhantomData;
        Self { context: context.clone(), copy, len, latest, element }
    }

    /// Waits for the batch, or the latest replay of its recording, and returns the elements as they
    /// were at that place in it.
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
    /// [`GpuError::Range`] if the batch was never submitted; else as
    /// [`Ticket::wait`](crate::Ticket::wait).
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
        let Some(submission) = submission else {
            return Err(GpuError::Range(RangeError {
                operation: "Download::get",
                problem: "the batch that reads these elements was not submitted".to_owned(),
                help: "submit the batch, or replay the recording, first".to_owned(),
            }));
        };
        self.context.wait_for_reading(submission, copy.source)?;
        let mut out = element::zeroed(self.len);
        let bytes = element::bytes_of_mut(&mut out);
        self.context.note_loss(self.context.driver.read(copy.memory.id(), 0, bytes))?;
        Ok(out)
    }
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
