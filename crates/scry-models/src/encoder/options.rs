//! How an encoder is loaded.

use std::path::Path;

use scry_tensor::{DType, Device};

use super::Encoder;
use crate::error::{Error, ErrorKind, Result};

/// Options for loading an [`Encoder`]: see [`Encoder::options`].
#[derive(Debug, Clone)]
#[must_use = "`load` loads the encoder"]
pub struct EncoderOptions {
    pub(super) dtype: DType,
    pub(super) max_length: Option<usize>,
}

impl Default for EncoderOptions {
    fn default() -> Self {
        Self { dtype: DType::F32, max_length: None }
    }
}

impl EncoderOptions {
    /// Sets the type of weights and intermediate results: `f32`, which is the default, `f16` or
    /// `bf16`. Matrix products, sums, norms and softmax accumulate in `f32`; embeddings are `f32`.
    pub fn dtype(mut self, dtype: DType) -> Self {
        self.dtype = dtype;
        self
    }

    /// Sets the maximum number of tokens of a text, special tokens included: 2 to
    /// `max_position_embeddings`, otherwise loading fails. Default: `max_seq_length` of the model.
    pub fn max_length(mut self, tokens: usize) -> Self {
        self.max_length = Some(tokens);
        self
    }

    /// Loads an encoder from a folder: see [`Encoder::load`].
    ///
    /// # Errors
    /// As [`Encoder::load`]; [`ErrorKind::DType`] for other types than floats;
    /// [`ErrorKind::Value`] if the model has no such length.
    pub fn load(self, folder: impl AsRef<Path>, device: &Device) -> Result<Encoder> {
        const CALL: &str = "Encoder::load";
        if !self.dtype.is_float() {
            let problem = format!("cannot compute with {}", self.dtype);
            return Err(Error::new(CALL, ErrorKind::DType, problem, "use f32, f16 or bf16"));
        }
        Encoder::new(folder.as_ref(), device, self).map_err(|error| error.for_call(CALL))
    }

    /// Async form of [`load`](Self::load): loads on another thread.
    ///
    /// ```no_run
    /// # pollster::block_on(async {
    /// use scry_models::{Device, Encoder};
    ///
    /// let gpu = Device::auto_async().await?;
    /// let encoder = Encoder::options().max_length(64).load_async("all-MiniLM-L6-v2", &gpu).await?;
    /// # Ok::<(), scry_models::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`EncoderOptions::load`].
    pub async fn load_async(self, folder: impl AsRef<Path>, device: &Device) -> Result<Encoder> {
        let folder = folder.as_ref().to_owned();
        device.offload_async(move |device| self.load(folder, device)).await
    }
}
