//! Async forms of the decoder's functions.
//!
//! A dropped future leaves the decoder usable: tokens that are not known to be in the cache are
//! computed again.

use std::path::Path;

use scry_tensor::{Device, Plan};

use super::Decoder;
use super::generation::Generation;
use super::sampling::Sampling;
use crate::error::Result;
use crate::tokenizer::Message;
use crate::waiting::Waiting;

/// Generating without blocking a thread.
impl Decoder {
    /// Async form of [`load`](Self::load): loads on another thread.
    ///
    /// ```no_run
    /// # pollster::block_on(async {
    /// use scry_models::{Decoder, Device};
    ///
    /// let gpu = Device::auto_async().await?;
    /// let model = Decoder::load_async("model.gguf", &gpu).await?;
    /// # Ok::<(), scry_models::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`Decoder::load`].
    pub async fn load_async(path: impl AsRef<Path>, device: &Device) -> Result<Self> {
        Self::options().load_async(path, device).await
    }

    /// Async form of [`generate`](Self::generate): completes once the prompt is submitted. The
    /// result is read with [`Generation::next_async`], or as a `Stream`.
    ///
    /// ```no_run
    /// # pollster::block_on(async {
    /// use scry_models::{Decoder, Device};
    ///
    /// let gpu = Device::auto_async().await?;
    /// let mut model = Decoder::load_async("model.gguf", &gpu).await?;
    /// let mut generation = model.generate_async("Name three colours.").await?;
    /// while let Some(piece) = generation.next_async().await {
    ///     print!("{}", piece?);
    /// }
    /// # Ok::<(), scry_models::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`Decoder::generate`].
    pub async fn generate_async(&mut self, prompt: &str) -> Result<Generation<'_>> {
        self.generate_with_async(prompt, &Sampling::default()).await
    }

    /// Async form of [`generate_with`](Self::generate_with): see
    /// [`generate_async`](Self::generate_async).
    ///
    /// # Errors
    /// As [`Decoder::generate_with`].
    pub async fn generate_with_async(
        &mut self,
        prompt: &str,
        options: &Sampling,
    ) -> Result<Generation<'_>> {
        match self.template {
            Some(_) => self.chat_async(&[Message::new("user", prompt)], options).await,
            None => self.complete_async(prompt, options).await,
        }
    }

    /// Async form of [`chat`](Self::chat): see [`generate_async`](Self::generate_async).
    ///
    /// # Errors
    /// As [`Decoder::chat`].
    pub async fn chat_async(
        &mut self,
        messages: &[Message],
        options: &Sampling,
    ) -> Result<Generation<'_>> {
        let tokens = self.chat_tokens("Decoder::chat_async", messages)?;
        self.start_async("Decoder::chat_async", tokens, options).await
    }

    /// Async form of [`complete`](Self::complete): see [`generate_async`](Self::generate_async).
    ///
    /// # Errors
    /// As [`Decoder::complete`].
    pub async fn complete_async(
        &mut self,
        text: &str,
        options: &Sampling,
    ) -> Result<Generation<'_>> {
        const CALL: &str = "Decoder::complete_async";
        let tokens = self.tokenizer.encode(text).map_err(|error| error.for_call(CALL))?;
        self.start_async(CALL, tokens, options).await
    }

    /// Async form of [`complete_tokens`](Self::complete_tokens): see
    /// [`generate_async`](Self::generate_async).
    ///
    /// # Errors
    /// As [`Decoder::complete_tokens`].
    pub async fn complete_tokens_async(
        &mut self,
        tokens: &[u32],
        options: &Sampling,
    ) -> Result<Generation<'_>> {
        self.start_async("Decoder::complete_tokens_async", tokens.to_vec(), options).await
    }

    async fn start_async(
        &mut self,
        call: &'static str,
        tokens: Vec<u32>,
        options: &Sampling,
    ) -> Result<Generation<'_>> {
        self.start_by(call, tokens, options, Waiting::Awaiting).await
    }

    /// Async form of [`logits`](Self::logits).
    ///
    /// ```no_run
    /// # pollster::block_on(async {
    /// use scry_models::{Decoder, Device};
    ///
    /// let gpu = Device::auto_async().await?;
    /// let mut model = Decoder::load_async("model.gguf", &gpu).await?;
    /// let tokens = model.tokenizer().encode("The capital of France is")?;
    /// let logits = model.logits_async(&tokens).await?;
    /// # Ok::<(), scry_models::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`Decoder::logits`].
    pub async fn logits_async(&mut self, tokens: &[u32]) -> Result<Vec<f32>> {
        self.logits_by("Decoder::logits_async", tokens, Waiting::Awaiting).await
    }

    /// Async form of [`clear`](Self::clear).
    ///
    /// # Errors
    /// As [`Decoder::clear`].
    pub async fn clear_async(&mut self) -> Result<()> {
        self.clear_by("Decoder::clear_async", Waiting::Awaiting).await
    }

    /// Async form of [`step_plan`](Self::step_plan).
    ///
    /// # Errors
    /// As [`Decoder::step_plan`].
    pub async fn step_plan_async(&mut self, options: &Sampling, position: usize) -> Result<&Plan> {
        let head = options.head(self.plans.model().config.vocabulary);
        self.plans.step_plan(head, position, Waiting::Awaiting).await
    }
}
