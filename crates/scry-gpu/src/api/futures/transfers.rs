//! Reading and writing buffers from tasks.

use crate::api::buffer::Buffer;
use crate::api::device::Device;
use crate::api::download::Download;
use crate::api::element::{self, Element};
use crate::api::error::{InFunction, Result};
use crate::api::slice::Slice;
use crate::api::untyped_buffer::UntypedBuffer;
use crate::core::device_bytes;

impl Device {
    /// Async form of [`Device::upload`]: copies a slice of any length to a new buffer.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// # fn main() -> scry_gpu::Result<()> {
    /// pollster::block_on(async {
    ///     let gpu = Device::open("cpu")?;
    ///     let x = gpu.upload_async(&[1.0f32, 2.0, 3.0]).await?;
    ///     assert_eq!(x.download_async().await?, [1.0, 2.0, 3.0]);
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Device::upload`].
    pub async fn upload_async<T: Element>(&self, data: &[T]) -> Result<Buffer<T>> {
        let buffer = Buffer::from_slice_async(&self.context, data).await;
        buffer.in_function("Device::upload_async")
    }
}

impl<T: Element> Buffer<T> {
    /// Async form of [`Buffer::write`]: replaces all elements. Completes once `data` is copied;
    /// later work sees it. Nothing is written before the future is first polled; a future dropped
    /// before it completes may have written a part.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// # fn main() -> scry_gpu::Result<()> {
    /// pollster::block_on(async {
    ///     let gpu = Device::open("cpu")?;
    ///     let x = gpu.alloc::<u32>(3)?;
    ///     x.write_async(&[1, 2, 3]).await?;
    ///     assert_eq!(x.download_async().await?, [1, 2, 3]);
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Buffer::write`].
    pub async fn write_async(&self, data: &[T]) -> Result<()> {
        Slice::from(self).write_async_for("Buffer::write_async", data).await
    }

    /// Async form of [`Buffer::download`]: reads all elements, after all work submitted before the
    /// future is first polled. It returns the elements of one point in the order of submissions. On
    /// a GPU, more than 16 MiB are copied on the device first, if there is memory for it.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// # fn main() -> scry_gpu::Result<()> {
    /// pollster::block_on(async {
    ///     let gpu = Device::open("cpu")?;
    ///     let x = gpu.upload_async(&[1.5f32, 2.5]).await?;
    ///     x.fill(3.0)?;
    ///     assert_eq!(x.download_async().await?, [3.0, 3.0]);
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Buffer::download`].
    pub async fn download_async(&self) -> Result<Vec<T>> {
        Slice::from(self).download_async().await.in_function("Buffer::download_async")
    }
}

impl<T: Element> Slice<'_, T> {
    /// Async form of [`Slice::write`]; see [`Buffer::write_async`].
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// # fn main() -> scry_gpu::Result<()> {
    /// pollster::block_on(async {
    ///     let gpu = Device::open("cpu")?;
    ///     let x = gpu.alloc::<u32>(4)?;
    ///     x.slice(2..)?.write_async(&[1, 2]).await?;
    ///     assert_eq!(x.download_async().await?, [0, 0, 1, 2]);
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Slice::write`].
    pub async fn write_async(&self, data: &[T]) -> Result<()> {
        self.write_async_for("Slice::write_async", data).await
    }

    async fn write_async_for(&self, operation: &'static str, data: &[T]) -> Result<()> {
        self.check_length(operation, data.len())?;
        let written = device_bytes::write_async(self.into_view(), element::bytes_of(data)).await;
        written.in_function(operation)
    }

    /// Async form of [`Slice::download`]; see [`Buffer::download_async`].
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// # fn main() -> scry_gpu::Result<()> {
    /// pollster::block_on(async {
    ///     let gpu = Device::open("cpu")?;
    ///     let x = gpu.upload_async(&[1u32, 2, 3]).await?;
    ///     assert_eq!(x.slice(1..)?.download_async().await?, [2, 3]);
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Slice::download`].
    pub async fn download_async(&self) -> Result<Vec<T>> {
        let mut out = element::zeroed(self.len());
        let bytes = element::bytes_of_mut(&mut out);
        let read = device_bytes::read_async(self.into_view(), bytes).await;
        read.in_function("Slice::download_async")?;
        Ok(out)
    }
}

impl UntypedBuffer {
    /// Async form of [`UntypedBuffer::write_bytes`]; see [`Buffer::write_async`].
    ///
    /// ```
    /// use scry_gpu::{DType, Device};
    ///
    /// # fn main() -> scry_gpu::Result<()> {
    /// pollster::block_on(async {
    ///     let gpu = Device::open("cpu")?;
    ///     let x = gpu.alloc_untyped(DType::U32, 1)?;
    ///     x.write_bytes_async(&[1, 0, 0, 0]).await?;
    ///     assert_eq!(x.download_bytes_async().await?, [1, 0, 0, 0]);
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`UntypedBuffer::write_bytes`].
    pub async fn write_bytes_async(&self, data: &[u8]) -> Result<()> {
        const NAME: &str = "UntypedBuffer::write_bytes_async";
        self.check_size(NAME, data.len())?;
        Buffer::<u8>::from_bytes(self.bytes.clone()).write_async(data).await.in_function(NAME)
    }

    /// Async form of [`UntypedBuffer::download_bytes`]; see [`Buffer::download_async`].
    ///
    /// ```
    /// use scry_gpu::{DType, Device};
    ///
    /// # fn main() -> scry_gpu::Result<()> {
    /// pollster::block_on(async {
    ///     let gpu = Device::open("cpu")?;
    ///     let x = gpu.alloc_untyped(DType::U32, 2)?;
    ///     assert_eq!(x.download_bytes_async().await?, [0; 8]);
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`UntypedBuffer::download_bytes`].
    pub async fn download_bytes_async(&self) -> Result<Vec<u8>> {
        let bytes = Buffer::<u8>::from_bytes(self.bytes.clone()).download_async().await;
        bytes.in_function("UntypedBuffer::download_bytes_async")
    }
}

impl<T: Element> Download<T> {
    /// Async form of [`Download::get`]: completes when the batch, or the latest replay of its
    /// recording, is done. While it is pending the recording can be replayed again; then it
    /// completes with the elements of that replay.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// # fn main() -> scry_gpu::Result<()> {
    /// pollster::block_on(async {
    ///     let gpu = Device::open("cpu")?;
    ///     let x = gpu.upload_async(&[1u32, 2]).await?;
    ///     let mut batch = gpu.batch();
    ///     let elements = batch.download(&x)?;
    ///     batch.submit_async()?.await?;
    ///     assert_eq!(elements.get_async().await?, [1, 2]);
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Download::get`].
    pub async fn get_async(&self) -> Result<Vec<T>> {
        self.read_async().await.in_function("Download::get_async")
    }
}
