//! How a decoder is loaded.

use std::path::Path;

use scry_tensor::{DType, Device};

use super::Decoder;
use crate::error::{Error, ErrorKind, Result};
use crate::tokenizer::Tokenizer;

/// The most tokens of a context by default: memory is allocated for all of them.
const CAPACITY: usize = 2048;

/// Options for loading a [`Decoder`]: see [`Decoder::options`].
#[derive(Debug, Clone, Default)]
#[must_use = "`load` loads the decoder"]
pub struct DecoderOptions {
    pub(super) capacity: Option<usize>,
    pub(super) cache: Option<DType>,
    pub(super) tokenizer: Option<Tokenizer>,
    pub(super) template: Option<String>,
}

impl DecoderOptions {
    /// Sets the size of the KV cache in tokens, for prompt and generated text together. Memory is
    /// allocated for all of them. Loading fails above the context length of the model. Default:
    /// 2048, or the context length of the model if it is smaller.
    pub fn capacity(mut self, tokens: usize) -> Self {
        self.capacity = Some(tokens);
        self
    }

    /// Sets the element type of the KV cache, in which attention is computed: `f32`, `f16` or
    /// `bf16`. By default it is `f16` on CUDA devices, and `f32` on others.
    pub fn cache_dtype(mut self, dtype: DType) -> Self {
        self.cache = Some(dtype);
        self
    }

    /// Sets the tokenizer, instead of that of the model's files: for GGUF files whose tokenizer is
    /// not supported.
    ///
    /// ```no_run
    /// use scry_models::{Decoder, Device, Tokenizer};
    ///
    /// let tokenizer = Tokenizer::from_file("TinyLlama-1.1B-Chat-v1.0/tokenizer.json")?;
    /// let options = Decoder::options().tokenizer(tokenizer);
    /// let model = options.load("tinyllama.gguf", &Device::auto()?)?;
    /// # Ok::<(), scry_models::Error>(())
    /// ```
    pub fn tokenizer(mut self, tokenizer: Tokenizer) -> Self {
        self.tokenizer = Some(tokenizer);
        self
    }

    /// Sets the chat template, in Jinja, instead of that of the tokenizer: see
    /// [`ChatTemplate`](crate::ChatTemplate). Its special tokens are those of the tokenizer.
    ///
    /// ```no_run
    /// use scry_models::{Decoder, Device};
    ///
    /// let template = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}";
    /// let options = Decoder::options().chat_template(template);
    /// let model = options.load("model.gguf", &Device::auto()?)?;
    /// # Ok::<(), scry_models::Error>(())
    /// ```
    pub fn chat_template(mut self, source: impl Into<String>) -> Self {
        self.template = Some(source.into());
        self
    }

    pub(super) fn capacity_for(&self, context: usize) -> Result<usize> {
        match self.capacity {
            None => Ok(CAPACITY.min(context)),
            Some(capacity) if (1..=context).contains(&capacity) => Ok(capacity),
            Some(capacity) => {
                let problem = format!("`capacity` is {capacity}, not 1 to {context} tokens");
                let help = "the model was trained for contexts of this length";
                Err(Error::new("Decoder::load", ErrorKind::Value, problem, help))
            }
        }
    }

    /// Loads a decoder: see [`Decoder::load`].
    ///
    /// # Errors
    /// As [`Decoder::load`]; [`ErrorKind::DType`] for a cache of other types than floats;
    /// [`ErrorKind::Value`] for a capacity that the model does not have; [`ErrorKind::Template`] if
    /// the chat template is not valid.
    pub fn load(self, path: impl AsRef<Path>, device: &Device) -> Result<Decoder> {
        const CALL: &str = "Decoder::load";
        if let Some(dtype) = self.cache.filter(|dtype| !dtype.is_float()) {
            let problem = format!("cannot cache keys and values as {dtype}");
            return Err(Error::new(CALL, ErrorKind::DType, problem, "use f32, f16 or bf16"));
        }
        Decoder::new(path.as_ref(), device, &self).map_err(|error| error.for_call(CALL))
    }

    /// Async form of [`load`](Self::load): loads on another thread.
    ///
    /// ```no_run
    /// # pollster::block_on(async {
    /// use scry_models::{Decoder, Device};
    ///
    /// let gpu = Device::auto_async().await?;
    /// let model = Decoder::options().capacity(512).load_async("model.gguf", &gpu).await?;
    /// # Ok::<(), scry_models::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`DecoderOptions::load`].
    pub async fn load_async(self, path: impl AsRef<Path>, device: &Device) -> Result<Decoder> {
        let path = path.as_ref().to_owned();
        device.offload_async(move |device| self.load(path, device)).await
    }
}
