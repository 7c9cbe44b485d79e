//! Generation: an iterator, and a stream, of pieces of text.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use scry_tensor::Tensor;

use super::Decoder;
use super::plans::{Head, MissingStep};
use super::sampling::Sampling;
use super::stop::StopFilter;
use crate::error::Result;
use crate::tokenizer::DecodeStream;

/// Steps of a submission. The next ones are submitted before the results of these are read.
const STEPS: usize = 4;

/// Why generation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StopReason {
    /// The model generated an end-of-sequence or end-of-turn token.
    EndOfText,
    /// The text contains a stop string: [`Sampling::stop`].
    StopText,
    /// The limit of [`Sampling::max_tokens`] is reached.
    MaxTokens,
    /// The context is full: see [`Decoder::capacity`].
    ContextFull,
    /// A step failed.
    Failed,
}

/// A generation in progress: an iterator over pieces of text. See [`Decoder::generate`].
///
/// The device computes a few tokens ahead of the piece that is returned. Generation ends when the
/// value is dropped; what the context holds of the text remains valid, and is not computed again if
/// a later prompt begins with it.
#[must_use = "nothing more is computed until it is iterated"]
pub struct Generation<'d> {
    decoder: &'d mut Decoder,
    head: Head,
    /// `None` once the text has ended.
    stream: Option<DecodeStream>,
    filter: StopFilter,
    /// Tokens that are read, and not part of the text yet.
    ready: VecDeque<u32>,
    /// Copies of the tokens that were chosen, with the number of those that are submitted by then.
    pending: VecDeque<(Tensor, usize)>,
    /// Tokens that a future reads.
    reading: Option<Reading>,
    /// A plan that steps need, and that a future compiles.
    compiling: Option<MissingStep>,
    /// How many tokens are read, and how many are submitted, of at most `limit`.
    read: usize,
    submitted: usize,
    limit: usize,
    limit_reason: StopReason,
    ignores_end: bool,
    generated: usize,
    prompt: usize,
    reason: Option<StopReason>,
}

/// Tokens that are being read, and the number of those that are submitted by then.
struct Reading {
    tokens: Tensor,
    submitted: usize,
    future: Pin<Box<dyn Future<Output = scry_tensor::Result<Vec<u32>>> + Send>>,
}

/// What a generation begins with.
struct Start {
    head: Head,
    prompt: usize,
    limit: usize,
    limit_reason: StopReason,
}

impl Start {
    fn new(decoder: &Decoder, prompt: usize, sampling: &Sampling) -> Self {
        let head = sampling.head(decoder.plans.model().config.vocabulary);
        let room = decoder.plans.capacity() - prompt + 1;
        let (limit, limit_reason) = match sampling.max_tokens < room {
            true => (sampling.max_tokens, StopReason::MaxTokens),
            false => (room, StopReason::ContextFull),
        };
        Self { head, prompt, limit, limit_reason }
    }
}

impl<'d> Generation<'d> {
    /// Begins after the tokens of a prompt, which are fewer than the context holds.
    pub(super) fn new(
        decoder: &'d mut Decoder,
        tokens: Vec<u32>,
        sampling: &Sampling,
    ) -> Result<Self> {
        let start = Start::new(decoder, tokens.len(), sampling);
        let first = match start.limit {
            0 => {
                decoder.adopt(tokens);
                None
            }
            _ => {
                decoder.prefill(start.head, tokens, sampling)?;
                Some(decoder.plans.tokens()?)
            }
        };
        Ok(Self::after(decoder, start, sampling, first))
    }

    /// Async form of [`new`](Self::new).
    pub(super) async fn new_async(
        decoder: &'d mut Decoder,
        tokens: Vec<u32>,
        sampling: &Sampling,
    ) -> Result<Self> {
        let start = Start::new(decoder, tokens.len(), sampling);
        let first = match start.limit {
            0 => {
                decoder.adopt(tokens);
                None
            }
            _ => {
                decoder.prefill_async(start.head, tokens, sampling).await?;
                Some(decoder.plans.tokens()?)
            }
        };
        Ok(Self::after(decoder, start, sampling, first))
    }

    /// Returns the generation after a prompt, and the copy of its first token.
    fn after(
        decoder: &'d mut Decoder,
        Start { head, prompt, limit, limit_reason }: Start,
        sampling: &Sampling,
        first: Option<Tensor>,
    ) -> Self {
        let pending: VecDeque<_> = first.into_iter().map(|tokens| (tokens, 1)).collect();
        let (read, submitted, generated) = (0, pending.len(), 0);
        let ready = VecDeque::new();
        let stream = Some(decoder.tokenizer.decode_stream());
        let filter = StopFilter::new(&sampling.stops);
        let (reason, reading, compiling) = (None, None, None);
        Self {
            decoder,
            head,
            stream,
            filter,
            ready,
            pending,
            reading,
            compiling,
            read,
            submitted,
            limit,
            limit_reason,
            ignores_end: sampling.ignores_end,
            generated,
            prompt,
            reason,
        }
    }

    /// Returns why generation ended; `None` before.
    #[must_use]
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.reason
    }

    /// Returns the number of prompt tokens that were found in the KV cache.
    #[must_use]
    pub fn reused_tokens(&self) -> usize {
        self.decoder.reused
    }

    /// Returns the number of tokens of the prompt.
    #[must_use]
    pub fn prompt_tokens(&self) -> usize {
        self.prompt
    }

    /// Returns the number of tokens generated so far.
    #[must_use]
    pub fn tokens(&self) -> usize {
        self.generated
    }

    /// Returns the next piece that is not empty, and ends generation where it must.
    fn piece(&mut self) -> Result<Option<String>> {
        while self.reason.is_none() {
            if self.generated == self.limit {
                return self.end(self.limit_reason);
            }
            let Some(token) = self.token()? else { break };
            if let Some(piece) = self.accept(token)? {
                return Ok(piece);
            }
        }
        Ok(None)
    }

    /// Adds a token to the text. Returns the next piece, or the end, if there is one.
    fn accept(&mut self, token: u32) -> Result<Option<Option<String>>> {
        if !self.ignores_end && self.decoder.is_end(token) {
            return self.end(StopReason::EndOfText).map(Some);
        }
        self.generated += 1;
        self.decoder.history.push(token);
        let piece = self.stream.as_mut().map(|stream| stream.push(token));
        let piece = piece.transpose()?.unwrap_or_default();
        let (text, is_stopped) = self.filter.push(&piece);
        if is_stopped {
            self.reason = Some(StopReason::StopText);
        }
        Ok((!text.is_empty()).then_some(Some(text)))
    }

    /// Ends generation with the text that was held back.
    fn end(&mut self, reason: StopReason) -> Result<Option<String>> {
        self.reason = Some(reason);
        let rest = self.stream.take().map(DecodeStream::finish).transpose()?.unwrap_or_default();
        let (mut text, is_stopped) = self.filter.push(&rest);
        match is_stopped {
            true => self.reason = Some(StopReason::StopText),
            false => text.push_str(&self.filter.finish()),
        }
        Ok((!text.is_empty()).then_some(text))
    }

    /// Returns the next token. Before it waits for one, it submits the steps after it.
    fn token(&mut self) -> Result<Option<u32>> {
        if self.ready.is_empty() {
            match self.reading.take() {
                // Of a future, after whose steps no others were submitted.
                Some(Reading { tokens, submitted, .. }) => {
                    self.pending.push_front((tokens, submitted));
                }
                None => self.submit()?,
            }
            if let Some((tokens, submitted)) = self.pending.pop_front() {
                let tokens = tokens.to_vec::<u32>()?;
                self.receive(&tokens, submitted);
            }
        }
        Ok(self.ready.pop_front())
    }

    /// Adds tokens that were read, up to a number of submitted ones.
    fn receive(&mut self, tokens: &[u32], submitted: usize) {
        self.ready.extend(&tokens[self.prompt + self.read..self.prompt + submitted]);
        self.read = submitted;
    }

    /// Returns the number of tokens before the next steps, and the number of these.
    fn next_steps(&self) -> (usize, usize) {
        // The first token follows the prompt; each step adds the one before to the cache.
        let position = self.prompt + self.submitted.max(1) - 1;
        (position, STEPS.min(self.limit - self.submitted))
    }

    /// Submits steps, unless there are no more.
    fn submit(&mut self) -> Result<()> {
        let (position, steps) = self.next_steps();
        if steps > 0 {
            self.decoder.plans.steps(self.head, position, steps)?;
            self.submitted += steps;
            self.pending.push_back((self.decoder.plans.tokens()?, self.submitted));
        }
        Ok(())
    }
}

/// The same without blocking a thread.
impl Generation<'_> {
    /// Returns the next piece, as [`Iterator::next`] does, without blocking a thread. The value is
    /// also a `Stream` of the crate `futures-core`. If the future is dropped, the next call
    /// continues: no token is lost.
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
    pub async fn next_async(&mut self) -> Option<Result<String>> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<String>>> {
        while self.reason.is_none() {
            if self.generated == self.limit {
                return Poll::Ready(self.end(self.limit_reason));
            }
            let Some(token) = ready!(self.poll_token(cx))? else { break };
            if let Some(piece) = self.accept(token)? {
                return Poll::Ready(Ok(piece));
            }
        }
        Poll::Ready(Ok(None))
    }

    fn poll_token(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<u32>>> {
        if self.ready.is_empty() {
            if self.reading.is_none() {
                ready!(self.poll_submit(cx))?;
                self.reading = self.pending.pop_front().map(|(tokens, submitted)| Reading {
                    future: Box::pin(tokens.to_vec_async::<u32>()),
                    tokens,
                    submitted,
                });
            }
            if let Some(reading) = &mut self.reading {
                let (tokens, submitted) =
                    (ready!(reading.future.as_mut().poll(cx)), reading.submitted);
                self.reading = None;
                self.receive(&tokens?, submitted);
            }
        }
        Poll::Ready(Ok(self.ready.pop_front()))
    }

    /// Submits steps once their plans are compiled.
    fn poll_submit(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        loop {
            if let Some(compiling) = &mut self.compiling {
                let compiled = ready!(compiling.as_mut().poll(cx));
                self.compiling = None;
                self.decoder.plans.keep_step(compiled?);
            }
            let (position, steps) = self.next_steps();
            match self.decoder.plans.missing_step(self.head, position, steps)? {
                Some(missing) => self.compiling = Some(missing),
                None => return Poll::Ready(self.submit()),
            }
        }
    }
}

impl Stream for Generation<'_> {
    type Item = Result<String>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<String>>> {
        let piece = ready!(self.poll_piece(cx));
        Poll::Ready(match piece {
            Ok(text) => text.map(Ok),
            Err(error) => {
                self.reason = Some(StopReason::Failed);
                Some(Err(error.in_call("Generation::next_async")))
            }
        })
    }
}

impl Iterator for Generation<'_> {
    type Item = Result<String>;

    fn next(&mut self) -> Option<Result<String>> {
        match self.piece() {
            Ok(text) => text.map(Ok),
            Err(error) => {
                self.reason = Some(StopReason::Failed);
                Some(Err(error.in_call("Generation::next")))
            }
        }
    }
}

impl std::iter::FusedIterator for Generation<'_> {}

impl Drop for Generation<'_> {
    /// Notes how many tokens of the text are in the cache: later ones are overwritten.
    fn drop(&mut self) {
        if self.submitted > 0 {
            let computed = self.prompt + self.submitted - 1;
            self.decoder.cached = match self.reason {
                Some(StopReason::Failed) => 0,
                _ => computed.min(self.decoder.history.len()),
            };
        }
    }
}

impl std::fmt::Debug for Generation<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Generation")
            .field("prompt_tokens", &self.prompt)
            .field("tokens", &self.generated)
            .field("stop_reason", &self.reason)
            .finish_non_exhaustive()
    }
}
