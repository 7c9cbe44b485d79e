//! Async forms of the encoder's functions.

use std::path::Path;

use scry_tensor::{Device, Tensor};

use super::Encoder;
use crate::error::Result;
use crate::waiting::Waiting;

/// Computing vectors without blocking a thread.
impl Encoder {
    /// Async form of [`load`](Self::load): loads on another thread.
    ///
    /// ```no_run
    /// # pollster::block_on(async {
    /// use scry_models::{Device, Encoder};
    ///
    /// let gpu = Device::auto_async().await?;
    /// let encoder = Encoder::load_async("all-MiniLM-L6-v2", &gpu).await?;
    /// # Ok::<(), scry_models::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`Encoder::load`].
    pub async fn load_async(folder: impl AsRef<Path>, device: &Device) -> Result<Self> {
        Self::options().load_async(folder, device).await
    }

    /// Async form of [`embed`](Self::embed). Tokens of texts are computed when the future is first
    /// polled; a batch is submitted in one poll.
    ///
    /// ```no_run
    /// # pollster::block_on(async {
    /// use scry_models::{Device, Encoder};
    ///
    /// let encoder = Encoder::load_async("all-MiniLM-L6-v2", &Device::auto_async().await?).await?;
    /// assert_eq!(encoder.embed_async(&["a cat", "a kitten"]).await?.len(), 2);
    /// # Ok::<(), scry_models::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`Encoder::embed`].
    pub async fn embed_async<T: AsRef<str>>(&self, texts: &[T]) -> Result<Vec<Vec<f32>>> {
        self.embed_by("Encoder::embed_async", texts, Waiting::Awaiting).await
    }

    /// Async form of [`embed_tensor`](Self::embed_tensor): completes once all batches are
    /// submitted.
    ///
    /// ```no_run
    /// # pollster::block_on(async {
    /// use scry_models::{Device, Encoder};
    ///
    /// let encoder = Encoder::load_async("all-MiniLM-L6-v2", &Device::auto_async().await?).await?;
    /// let texts = encoder.embed_tensor_async(&["a cat", "a kitten"]).await?;
    /// let query = encoder.embed_tensor_async(&["a young cat"]).await?;
    /// let similarities = texts.matmul(query.t()?)?.to_vec_async::<f32>().await?;
    /// # Ok::<(), scry_models::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`Encoder::embed`].
    pub async fn embed_tensor_async<T: AsRef<str>>(&self, texts: &[T]) -> Result<Tensor> {
        self.embed_tensor_by("Encoder::embed_tensor_async", texts, Waiting::Awaiting).await
    }

    /// Async form of [`embed_tokens`](Self::embed_tokens).
    ///
    /// ```no_run
    /// # pollster::block_on(async {
    /// use scry_models::{Device, Encoder};
    ///
    /// let encoder = Encoder::load_async("all-MiniLM-L6-v2", &Device::auto_async().await?).await?;
    /// let tokens = encoder.tokens("a cat")?;
    /// assert_eq!(*encoder.embed_tokens_async(&[tokens]).await?.shape(), [1, 384]);
    /// # Ok::<(), scry_models::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`Encoder::embed_tokens`].
    pub async fn embed_tokens_async<T: AsRef<[u32]>>(&self, texts: &[T]) -> Result<Tensor> {
        self.embed_tokens_by("Encoder::embed_tokens_async", texts, Waiting::Awaiting).await
    }
}
