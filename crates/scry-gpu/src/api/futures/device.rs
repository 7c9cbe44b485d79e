//! Awaiting everything that a device was given.

use crate::api::device::Device;
use crate::api::error::{InFunction, Result};
use crate::core::completion::Completion;

impl Device {
    /// [`Device::wait`] for tasks: completes when everything submitted so far is done.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// # fn main() -> scry_gpu::Result<()> {
    /// pollster::block_on(async {
    ///     let gpu = Device::open("cpu")?;
    ///     let x = gpu.alloc::<u32>(2)?;
    ///     x.fill(7)?;
    ///     gpu.wait_async().await
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Device::wait`].
    pub async fn wait_async(&self) -> Result<()> {
        const NAME: &str = "Device::wait_async";
        self.context.check_alive().in_function(NAME)?;
        match Completion::of_all(&self.context) {
            Some(completion) => completion.await.in_function(NAME),
            None => Ok(()),
        }
    }
}
