//! Timing the launches of a batch from tasks.

use std::time::Duration;

use crate::api::batch::Batch;
use crate::api::error::{InFunction, Result};
use crate::core::completion::Completion;

impl Batch {
    /// Async form of [`Batch::submit_timed`]: submits when first polled, and returns the device
    /// time of each launch. Leaves the batch empty, even on failure.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// # fn main() -> scry_gpu::Result<()> {
    /// pollster::block_on(async {
    ///     let gpu = Device::open("cpu")?;
    ///     let kernel = gpu.compile("@compute @workgroup_size(64) fn nothing() {}")?;
    ///     let times = gpu.batch().run(&kernel, &[], 64)?.submit_timed_async().await?;
    ///     assert_eq!(times.len(), 1);
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Batch::submit_timed`].
    pub async fn submit_timed_async(&mut self) -> Result<Vec<Duration>> {
        const NAME: &str = "Batch::submit_timed_async";
        let Some(timed) = self.start_timed().in_function(NAME)? else { return Ok(Vec::new()) };
        Completion::for_submission(&self.context, timed.submission).await.in_function(NAME)?;
        timed.times().in_function(NAME)
    }
}
