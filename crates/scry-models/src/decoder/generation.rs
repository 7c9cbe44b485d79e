//! Generation: an iterator of pieces of text.

use std::collections::VecDeque;

use scry_tensor::Tensor;

use super::Decoder;
use super::plans::Head;
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
    /// How many tokens are read, and how many are submitted, of at most `limit`.
    read: usize,
    submitted: usize,
    limit: usize,
    limit_reason: StopReason,
    generated: usize,
    prompt: usize,
    reason: Option<StopReason>,
}

impl<'d> Generation<'d> {
    /// Begins after the tokens of a prompt, which are fewer than the context holds.
    pub(super) fn new(
        decoder: &'d mut Decoder,
        tokens: Vec<u32>,
        sampling: &Sampling,
    ) -> Result<Self> {
        let head = sampling.head(decoder.plans.model().config.vocabulary);
        let prompt = tokens.len();
        let room = decoder.plans.capacity() - prompt + 1;
        let (limit, limit_reason) = match sampling.max_tokens < room {
            true => (sampling.max_tokens, StopReason::MaxTokens),
            false => (room, StopReason::ContextFull),
        };
        let mut pending = VecDeque::new();
        match limit {
            0 => {
                decoder.adopt(tokens);
            }
            _ => {
                decoder.prefill(head, tokens, sampling)?;
                pending.push_back((decoder.plans.tokens()?, 1));
            }
        }
        let (read, submitted, generated) = (0, pending.len(), 0);
        let ready = VecDeque::new();
        let stream = Some(decoder.tokenizer.decode_stream());
        let filter = StopFilter::new(&sampling.stops);
        let reason = None;
        Ok(Self {
            decoder,
            head,
            stream,
            filter,
            ready,
            pending,
            read,
            submitted,
            limit,
            limit_reason,
            generated,
            prompt,
            reason,
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

    /// Returns the next piece that is not empty, and ends generation where it must.
    fn piece(&mut self) -> Result<Option<String>> {
        while self.reason.is_none() {
            if self.generated == self.limit {
                return self.end(self.limit_reason);
            }
            let Some(token) = self.token()? else { break };
            if self.decoder.tokenizer.is_end(token) {
                return self.end(StopReason::EndOfText);
            }
            self.generated += 1;
            self.decoder.history.push(token);
            let piece = self.stream.as_mut().map(|stream| stream.push(token));
            let piece = piece.transpose()?.unwrap_or_default();
            let (text, is_stopped) = self.filter.push(&piece);
            if is_stopped {
                self.reason = Some(StopReason::StopText);
            }
            if !text.is_empty() {
                return Ok(Some(text));
            }
        }
        Ok(None)
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
            self.submit()?;
            if let Some((tokens, submitted)) = self.pending.pop_front() {
                let tokens = tokens.to_vec::<u32>()?;
                let range = self.prompt + self.read..self.prompt + submitted;
                self.ready.extend(&tokens[range]);
                self.read = submitted;
            }
        }
        Ok(self.ready.pop_front())
    }

    /// Submits steps, unless there are no more.
    fn submit(&mut self) -> Result<()> {
        let steps = STEPS.min(self.limit - self.submitted);
        if steps > 0 {
            // The first token follows the prompt; each step adds the one before to the cache.
            let position = self.prompt + self.submitted - 1;
            self.decoder.plans.steps(self.head, position, steps)?;
            self.submitted += steps;
            self.pending.push_back((self.decoder.plans.tokens()?, self.submitted));
        }
        Ok(())
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
