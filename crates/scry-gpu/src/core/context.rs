//! An open device: its submission queue, caches, staging memory and internal kernels.

use std::ops::Deref;
use std::sync::Arc;

use crate::cache::{DiskCache, MemoryCache};
use crate::core::compiled_kernel::CompiledKernel;
use crate::core::device_kernels::{Copier, GridPreparer, Routines};
use crate::core::driver::Driver;
use crate::core::staging::Staging;
use crate::core::submission_queue::SubmissionQueue;

/// An open device, shared by every object created from it.
pub(crate) struct Context {
    /// Dropped first: its drop waits for the work that uses the other fields.
    queue: SubmissionQueue,
    pub kernels: MemoryCache<CompiledKernel>,
    pub staging: Staging,
    pub copier: Copier,
    pub preparer: GridPreparer,
    pub routines: Routines,
}

impl Context {
    /// Wraps a newly opened driver.
    pub(crate) fn new(driver: Arc<dyn Driver>, disk: Option<DiskCache>) -> Arc<Self> {
        Arc::new(Self {
            copier: Copier::new(driver.copy_kernel()),
            preparer: GridPreparer::default(),
            routines: Routines::default(),
            kernels: MemoryCache::default(),
            staging: Staging::default(),
            queue: SubmissionQueue::new(driver, disk),
        })
    }
}

impl Deref for Context {
    type Target = SubmissionQueue;

    fn deref(&self) -> &SubmissionQueue {
        &self.queue
    }
}
