//! Async forms of the encoder's functions.

use std::path::Path;

use scry_tensor::{DType, Device, Tensor};

use super::{Encoder, by_length, places};
use crate::error::{Error, Result};

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
        let all = self.embed_tensor_async(texts).await?.to_vec_async::<f32>().await?;
        Ok(all.chunks_exact(self.dimensions()).map(<[f32]>::to_vec).collect())
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
        let tokens: Result<Vec<_>> = texts.iter().map(|text| self.tokens(text.as_ref())).collect();
        self.embed_tokens_async(&tokens?).await
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
        const CALL: &str = "Encoder::embed_tokens_async";
        let texts: Vec<&[u32]> = texts.iter().map(AsRef::as_ref).collect();
        for (position, text) in texts.iter().enumerate() {
            self.check_tokens(CALL, position, text)?;
        }
        self.run_async(&texts).await.map_err(|error: Error| error.in_call(CALL))
    }

    async fn run_async(&self, texts: &[&[u32]]) -> Result<Tensor> {
        let device = self.plan.device();
        if texts.is_empty() {
            return Ok(Tensor::zeros([0, self.dimensions()], DType::F32, device)?);
        }
        if texts.len() <= self.max_batch {
            return self.batch_async(texts).await;
        }
        let (order, sorted) = by_length(texts);
        let mut batches = Vec::new();
        for texts in sorted.chunks(self.max_batch) {
            batches.push(self.batch_async(texts).await?);
        }
        let places = places(&order);
        let places = Tensor::from_slice_async(&places, [places.len()], device).await?;
        // Kernels of few rows are compiled at their first use.
        let arrange = move |_: &Device| -> scry_tensor::Result<Tensor> {
            Tensor::concat(&batches.iter().collect::<Vec<_>>(), 0)?.index_select(0, &places)
        };
        Ok(device.offload_async(arrange).await?)
    }

    async fn batch_async(&self, texts: &[&[u32]]) -> Result<Tensor> {
        let (tokens, length) = self.padded(texts);
        let shape = [texts.len(), length];
        let tokens = Tensor::from_slice_async(&tokens, shape, self.plan.device()).await?;
        let positions = self.positions.i(..length as i64)?;
        let inputs = [("tokens", &tokens), ("positions", &positions)];
        Ok(self.plan.run_async(&inputs).await?.remove(0))
    }
}
