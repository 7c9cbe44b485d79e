//! Generation: an iterator, and a stream, of pieces of text.

use std::collections::VecDeque;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use futures_core::Stream;
use scry_tensor::Tensor;

use super::Decoder;
use super::plans::{Head, Progress, Task};
use super::sampling::Sampling;
use super::stop::StopFilter;
use crate::error::Result;
use crate::tokenizer::DecodeStream;
use crate::waiting::{Waiting, download, now};

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
    /// What is in progress, so that it continues after the future that polls it is dropped.
    task: Option<Task>,
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

impl<'d> Generation<'d> {
    /// Begins after the tokens of a prompt, which are fewer than the context holds.
    pub(super) async fn new(
        decoder: &'d mut Decoder,
        tokens: Vec<u32>,
        sampling: &Sampling,
        waiting: Waiting,
    ) -> Result<Self> {
        let (head, prompt) = (sampling.head(decoder.plans.model().config.vocabulary), tokens.len());
        let room = decoder.plans.capacity() - prompt + 1;
        let (limit, limit_reason) = match sampling.max_tokens < room {
            true => (sampling.max_tokens, StopReason::MaxTokens),
            false => (room, StopReason::ContextFull),
        };
        // The prompt chooses the first token.
        let submitted = limit.min(1);
        if submitted == 0 {
            decoder.adopt(tokens);
        } else {
            decoder.prefill(head, tokens, sampling, waiting).await?;
        }
        let stream = Some(decoder.tokenizer.decode_stream());
        Ok(Self {
            decoder,
            head,
            stream,
            filter: StopFilter::new(&sampling.stops),
            ready: VecDeque::new(),
            pending: VecDeque::new(),
            task: None,
            read: 0,
            submitted,
            limit,
            limit_reason,
            ignores_end: sampling.ignores_end,
            generated: 0,
            prompt,
            reason: None,
        })
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

    /// Returns the next piece, as an iterator does.
    async fn next_by(&mut self, call: &'static str, waiting: Waiting) -> Option<Result<String>> {
        match self.piece(waiting).await {
            Ok(text) => text.map(Ok),
            Err(error) => {
                self.reason = Some(StopReason::Failed);
                Some(Err(error.in_call(call)))
            }
        }
    }

    /// Returns the next piece that is not empty, and ends generation where it must.
    async fn piece(&mut self, waiting: Waiting) -> Result<Option<String>> {
        while self.reason.is_none() {
            if self.generated == self.limit {
                return self.end(self.limit_reason);
            }
            let Some(token) = self.token(waiting).await? else { break };
            if let Some(piece) = self.accept(token)? {
                return Ok(piece);
            }
        }
        Ok(None)
    }

    /// Adds a token to the text. Returns the next piece, or the end, if there is one.
    fn accept(&mut self, token: u32) -> Result<Option<Option<String>>> {
        if !self.ignores_end && self.decoder.is_end_of_generation(token) {
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

    /// Returns the next token. All that it awaits is the task, so that its future may be dropped.
    async fn token(&mut self, waiting: Waiting) -> Result<Option<u32>> {
        if waiting == Waiting::Blocking {
            // That of a dropped future is repeated.
            self.task = None;
        }
        while self.ready.is_empty() {
            let task = match self.task.take() {
                Some(task) => Some(task),
                None => self.next_task(waiting)?,
            };
            let Some(task) = task else { return Ok(None) };
            let progress = self.task.insert(task).await;
            self.task = None;
            self.advance(progress?);
        }
        Ok(self.ready.pop_front())
    }

    /// Returns what is to be done before there is another token: steps are submitted before the
    /// tokens of the ones before them are read.
    fn next_task(&mut self, waiting: Waiting) -> Result<Option<Task>> {
        let copied = self.pending.back().map_or(self.read, |(_, submitted)| *submitted);
        if copied < self.submitted {
            return Ok(Some(self.decoder.plans.copy_tokens(waiting)));
        }
        let steps = STEPS.min(self.limit - self.submitted);
        if steps > 0 && self.pending.len() < 2 {
            // The first token follows the prompt; each step adds the one before to the cache.
            let position = self.prompt + self.submitted - 1;
            return self.decoder.plans.steps(self.head, position, steps, waiting).map(Some);
        }
        let Some((tokens, _)) = self.pending.front() else { return Ok(None) };
        let tokens = tokens.clone();
        Ok(Some(Box::pin(async move { Ok(Progress::Read(download(waiting, &tokens).await?)) })))
    }

    fn advance(&mut self, progress: Progress) {
        match progress {
            Progress::Compiled(key, plan, steps) => {
                self.decoder.plans.keep_steps(key, plan, steps);
            }
            Progress::Submitted(steps) => self.submitted += steps,
            Progress::Copied(tokens) => self.pending.push_back((tokens, self.submitted)),
            Progress::Read(tokens) => {
                let Some((_, submitted)) = self.pending.pop_front() else { return };
                self.ready.extend(&tokens[self.prompt + self.read..self.prompt + submitted]);
                self.read = submitted;
            }
        }
    }

    /// Returns the next piece, as [`Iterator::next`] does, without blocking a thread: it waits
    /// where that blocks. The value is also a `Stream` of the crate `futures-core`. If the future
    /// is dropped, the next call continues: no token is lost.
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
        self.next_by("Generation::next_async", Waiting::Awaiting).await
    }
}

impl Stream for Generation<'_> {
    type Item = Result<String>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<String>>> {
        // A future for each poll: what it awaits is kept.
        pin!(self.get_mut().next_async()).poll(cx)
    }
}

impl Iterator for Generation<'_> {
    type Item = Result<String>;

    fn next(&mut self) -> Option<Result<String>> {
        now(self.next_by("Generation::next", Waiting::Blocking))
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
