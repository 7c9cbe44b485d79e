//! Text generation with language models of the Llama family.
//!
//! | file | contents |
//! | --- | --- |
//! | `config` | sizes, from GGUF metadata or `config.json` |
//! | `llama` | weights, and the graph of the layers |
//! | `plans`, `recent` | plans for prompts and steps, with one cache; tasks of a generation |
//! | `sampling`, `stop`, `ends` | how tokens are chosen, and where text ends |
//! | `generation` | the iterator: steps are submitted ahead of the token that is read |
//! | `futures` | public async forms |

mod config;
mod ends;
mod futures;
mod generation;
mod llama;
mod options;
mod plans;
mod recent;
mod sampling;
mod stop;

use std::fmt;
use std::path::Path;

use scry_gpu::BackendKind;
use scry_tensor::{DType, Device, Plan, Tensor};

use self::config::Config;
pub use self::generation::{Generation, StopReason};
use self::llama::Llama;
pub use self::options::DecoderOptions;
use self::plans::{Head, MAX_ROWS, Plans};
pub use self::sampling::Sampling;
use crate::error::{Error, ErrorKind, Result};
use crate::tokenizer::{ChatTemplate, EncodeOptions, Message, Tokenizer};
use crate::waiting::{Waiting, download, now};
use crate::weights::{FileFormat, Weights};

/// A language model of the Llama family, such as SmolLM2, with the KV cache of one conversation.
///
/// Matrix products and token embeddings use quantised weights as they are stored. A prompt that
/// begins with cached tokens is computed only from the first token that differs (prefix caching).
/// Tokens are sampled on the device, and the next ones are computed while a program reads earlier
/// ones.
///
/// ```no_run
/// use scry_models::{Decoder, Device};
///
/// let gpu = Device::auto()?;
/// let mut model = Decoder::load("models/SmolLM2-135M-Instruct.Q4_1.gguf", &gpu)?;
/// for piece in model.generate("What is the capital of France?")? {
///     print!("{}", piece?);
/// }
/// # Ok::<(), scry_models::Error>(())
/// ```
pub struct Decoder {
    tokenizer: Tokenizer,
    template: Option<ChatTemplate>,
    /// Tokens that end text, besides those of the tokenizer.
    ends: Vec<u32>,
    plans: Plans,
    /// The tokens of the context. The first `cached` of them are in the cache.
    history: Vec<u32>,
    cached: usize,
    /// How many tokens of the last prompt were cached before.
    reused: usize,
}

impl Decoder {
    /// Loads a model: a GGUF file, which has its tokenizer, or a folder with safetensors,
    /// `config.json` and `tokenizer.json`.
    ///
    /// ```no_run
    /// use scry_models::{Decoder, Device};
    ///
    /// let model = Decoder::load("models/SmolLM2-135M-Instruct.Q4_1.gguf", &Device::auto()?)?;
    /// assert_eq!(model.capacity(), 2048);
    /// # Ok::<(), scry_models::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if a file cannot be read; [`ErrorKind::Format`] for other models than
    /// those of the Llama family; [`ErrorKind::Keys`] and [`ErrorKind::Shape`] if the weights do
    /// not fit the configuration; [`ErrorKind::Tokenizer`]; [`ErrorKind::Gpu`].
    pub fn load(path: impl AsRef<Path>, device: &Device) -> Result<Self> {
        Self::options().load(path, device)
    }

    /// Returns options for loading: the size of the context, and the type of cached values.
    ///
    /// ```no_run
    /// use scry_models::{Decoder, Device};
    ///
    /// let options = Decoder::options().capacity(512);
    /// let model = options.load("models/SmolLM2-135M-Instruct.Q4_1.gguf", &Device::auto()?)?;
    /// assert_eq!(model.capacity(), 512);
    /// # Ok::<(), scry_models::Error>(())
    /// ```
    pub fn options() -> DecoderOptions {
        DecoderOptions::default()
    }

    fn new(path: &Path, device: &Device, options: &DecoderOptions) -> Result<Self> {
        const CALL: &str = "Decoder::load";
        let weights = Weights::open(path)?;
        let config = Config::read(path, &weights)?;
        let tokenizer = match (&options.tokenizer, weights.format()) {
            (Some(tokenizer), _) => tokenizer.clone(),
            (None, FileFormat::Gguf) => Tokenizer::from_metadata(weights.metadata())?,
            (None, FileFormat::Safetensors) => Tokenizer::from_file(config::folder(path))?,
        };
        let template = match &options.template {
            Some(source) => Some(tokenizer.parse_template(CALL, source)?),
            None => tokenizer.chat_template().cloned(),
        };
        let ends = match weights.format() {
            FileFormat::Gguf => Vec::new(),
            FileFormat::Safetensors => ends::read(CALL, config::folder(path))?,
        };
        let capacity = options.capacity_for(config.context)?;
        let is_cuda = device.backend_kind() == BackendKind::Cuda;
        let cache = options.cache.unwrap_or(if is_cuda { DType::F16 } else { DType::F32 });
        let (format, tensors) = (weights.format(), weights.tensors().len());
        if config.layers > tensors {
            let problem = format!(
                "the configuration has {} layers, but the file has only {tensors} tensors",
                config.layers
            );
            let help = "use the config.json that belongs to these weights";
            return Err(Error::new(CALL, ErrorKind::Format, problem, help).in_file(path));
        }
        Llama::check(&config, format, weights.state_dict(device))?;
        // Quantised weights stay as they are.
        let dict = weights.state_dict(device).with_float_dtype(DType::F32);
        let model = Llama::load(config, format, &dict, capacity)?;
        let plans = Plans::new(model, device, capacity, cache)?;
        let history = Vec::new();
        Ok(Self { tokenizer, template, ends, plans, history, cached: 0, reused: 0 })
    }

    /// Generates the reply to one user message, as an iterator over pieces of text, by greedy
    /// decoding. The model's chat template is applied if it has one: use
    /// [`complete`](Self::complete) for what `generate` of the library transformers does.
    ///
    /// ```no_run
    /// use scry_models::{Decoder, Device};
    ///
    /// let mut model = Decoder::load("model.gguf", &Device::auto()?)?;
    /// let text: String = model.generate("Name three colours.")?.collect::<Result<_, _>>()?;
    /// # Ok::<(), scry_models::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Context`] if the prompt has more tokens than the context;
    /// [`ErrorKind::Tokenizer`]; [`ErrorKind::Template`]; [`ErrorKind::Gpu`].
    pub fn generate(&mut self, prompt: &str) -> Result<Generation<'_>> {
        let reply = self.generate_with(prompt, &Sampling::default());
        reply.map_err(|error| error.for_call("Decoder::generate"))
    }

    /// As [`Decoder::generate`], with options.
    ///
    /// ```no_run
    /// use scry_models::{Decoder, Device, Sampling};
    ///
    /// let mut model = Decoder::load("model.gguf", &Device::auto()?)?;
    /// let options = Sampling::new().temperature(0.7).top_p(0.9).seed(7).max_tokens(100);
    /// for piece in model.generate_with("Tell me a story.", &options)? {
    ///     print!("{}", piece?);
    /// }
    /// # Ok::<(), scry_models::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Decoder::generate`]; [`ErrorKind::Value`] for options out of range.
    pub fn generate_with(&mut self, prompt: &str, options: &Sampling) -> Result<Generation<'_>> {
        let reply = match self.template {
            Some(_) => self.chat(&[Message::new("user", prompt)], options),
            None => self.complete(prompt, options),
        };
        reply.map_err(|error| error.for_call("Decoder::generate_with"))
    }

    /// Generates the next message of a conversation. Messages that earlier calls have computed are
    /// in the KV cache and are not computed again. Special tokens in the text of a message, such as
    /// `<|im_end|>`, are parsed as such, so that untrusted text can end its turn (prompt
    /// injection): remove them from user input.
    ///
    /// ```no_run
    /// use scry_models::{Decoder, Device, Message, Sampling};
    ///
    /// let mut model = Decoder::load("model.gguf", &Device::auto()?)?;
    /// let mut messages = vec![Message::new("user", "Who wrote Faust?")];
    /// let options = Sampling::new();
    /// let reply: String = model.chat(&messages, &options)?.collect::<Result<_, _>>()?;
    /// messages.push(Message::new("assistant", &reply));
    /// messages.push(Message::new("user", "When?"));
    /// let reply: String = model.chat(&messages, &options)?.collect::<Result<_, _>>()?;
    /// # Ok::<(), scry_models::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Decoder::generate_with`]; [`ErrorKind::Template`] if the model has no chat template.
    pub fn chat(&mut self, messages: &[Message], options: &Sampling) -> Result<Generation<'_>> {
        let tokens = self.chat_tokens("Decoder::chat", messages)?;
        self.start("Decoder::chat", tokens, options)
    }

    /// Returns the tokens of a conversation, up to the next message.
    fn chat_tokens(&self, call: &'static str, messages: &[Message]) -> Result<Vec<u32>> {
        let Some(template) = &self.template else {
            let problem = "the model has no chat template";
            let help = "use `Decoder::complete`, or pass one to `DecoderOptions::chat_template`";
            return Err(Error::new(call, ErrorKind::Template, problem, help));
        };
        // The template writes special tokens itself.
        let special = EncodeOptions::new().add_special(false);
        let text = template.render(messages, true);
        let tokens = text.and_then(|text| self.tokenizer.encode_with(&text, special));
        tokens.map_err(|error| error.for_call(call))
    }

    /// Continues a text, without a chat template.
    ///
    /// ```no_run
    /// use scry_models::{Decoder, Device, Sampling};
    ///
    /// let mut model = Decoder::load("model.gguf", &Device::auto()?)?;
    /// let options = Sampling::new().max_tokens(20).stop(".");
    /// let text: String =
    ///     model.complete("Once upon a time", &options)?.collect::<Result<_, _>>()?;
    /// # Ok::<(), scry_models::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Decoder::generate_with`].
    pub fn complete(&mut self, text: &str, options: &Sampling) -> Result<Generation<'_>> {
        const CALL: &str = "Decoder::complete";
        let tokens = self.tokenizer.encode(text).map_err(|error| error.for_call(CALL))?;
        self.start(CALL, tokens, options)
    }

    /// Continues a sequence of token ids, without a tokenizer or a chat template.
    ///
    /// ```no_run
    /// use scry_models::{Decoder, Device, Sampling};
    ///
    /// let mut model = Decoder::load("models/model.gguf", &Device::auto()?)?;
    /// let tokens = model.tokenizer().encode("Once upon a time")?;
    /// let options = Sampling::new().max_tokens(20);
    /// let text: String =
    ///     model.complete_tokens(&tokens, &options)?.collect::<Result<_, _>>()?;
    /// # Ok::<(), scry_models::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Decoder::generate_with`]; [`ErrorKind::Value`] if there is no token, or one beyond the
    /// vocabulary.
    pub fn complete_tokens(
        &mut self,
        tokens: &[u32],
        options: &Sampling,
    ) -> Result<Generation<'_>> {
        self.start("Decoder::complete_tokens", tokens.to_vec(), options)
    }

    fn start(
        &mut self,
        call: &'static str,
        tokens: Vec<u32>,
        options: &Sampling,
    ) -> Result<Generation<'_>> {
        now(self.start_by(call, tokens, options, Waiting::Blocking))
    }

    async fn start_by(
        &mut self,
        call: &'static str,
        tokens: Vec<u32>,
        options: &Sampling,
        waiting: Waiting,
    ) -> Result<Generation<'_>> {
        options.check(call)?;
        self.check_tokens(call, &tokens)?;
        let generation = Generation::new(self, tokens, options, waiting).await;
        generation.map_err(|error| error.in_call(call))
    }

    /// Returns the logits of the token that follows `tokens`, in `f32`, one for each entry of the
    /// vocabulary: shape `[vocab_size]`.
    ///
    /// ```no_run
    /// use scry_models::{Decoder, Device};
    ///
    /// let mut model = Decoder::load("model.gguf", &Device::auto()?)?;
    /// let tokens = model.tokenizer().encode("The capital of France is")?;
    /// let logits = model.logits(&tokens)?;
    /// assert_eq!(logits.len(), model.tokenizer().vocab_size());
    /// # Ok::<(), scry_models::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Context`] for more tokens than the context holds; [`ErrorKind::Value`] if there
    /// is no token, or one beyond the vocabulary; [`ErrorKind::Gpu`].
    pub fn logits(&mut self, tokens: &[u32]) -> Result<Vec<f32>> {
        now(self.logits_by("Decoder::logits", tokens, Waiting::Blocking))
    }

    async fn logits_by(
        &mut self,
        call: &'static str,
        tokens: &[u32],
        waiting: Waiting,
    ) -> Result<Vec<f32>> {
        self.check_tokens(call, tokens)?;
        let read = async {
            let options = Sampling::default();
            match self.prefill(Head::Logits, tokens.to_vec(), &options, waiting).await? {
                Some(logits) => Ok(download(waiting, &logits).await?),
                None => Ok(Vec::new()),
            }
        };
        read.await.map_err(|error: Error| error.in_call(call))
    }

    fn check_tokens(&self, call: &'static str, tokens: &[u32]) -> Result<()> {
        let (count, capacity) = (tokens.len(), self.plans.capacity());
        if count > capacity {
            let problem =
                format!("the prompt has {count} tokens, but the context holds {capacity}");
            let help = "shorten the prompt, or load the model with a larger context: \
                        `Decoder::options().capacity(…)`, or `--context` of `scry model \
                        generate`";
            return Err(Error::new(call, ErrorKind::Context, problem, help));
        }
        let vocabulary = self.plans.model().config.vocabulary;
        let error = |problem: String, help| Err(Error::new(call, ErrorKind::Value, problem, help));
        if count == 0 {
            return error("the prompt has no tokens".to_owned(), "use a longer text");
        }
        match tokens.iter().find(|token| **token as usize >= vocabulary) {
            Some(token) => error(
                format!("token {token} is beyond the vocabulary, {vocabulary}"),
                "use the tokens of this model's tokenizer",
            ),
            None => Ok(()),
        }
    }

    /// Makes these tokens the context. Returns how many of them are cached, and remain so; the last
    /// one does not, since its results are needed.
    fn adopt(&mut self, tokens: Vec<u32>) -> usize {
        let cached = self.history[..self.cached].iter().zip(&tokens);
        let common = cached.take_while(|(a, b)| a == b).count().min(tokens.len() - 1);
        (self.history, self.cached, self.reused) = (tokens, common, common);
        common
    }

    /// Makes these tokens the context, and sets what steps read. Returns how many are cached.
    async fn prepare(
        &mut self,
        tokens: Vec<u32>,
        options: &Sampling,
        waiting: Waiting,
    ) -> Result<usize> {
        let common = self.adopt(tokens);
        let control = [0, options.seed, common as u32, options.window];
        self.plans.set_control(control, options.numbers(), waiting).await?;
        if options.penalty != 1.0 {
            self.plans.set_seen(&self.history, waiting).await?;
        }
        Ok(common)
    }

    /// Makes these tokens the context, adds what is missing to the cache, and returns what the head
    /// computes of the last one.
    async fn prefill(
        &mut self,
        head: Head,
        tokens: Vec<u32>,
        options: &Sampling,
        waiting: Waiting,
    ) -> Result<Option<Tensor>> {
        let mut position = self.prepare(tokens, options, waiting).await?;
        let tokens = &self.history;
        let mut result = None;
        while position < tokens.len() {
            let end = tokens.len().min(position + MAX_ROWS);
            let head = if end == tokens.len() { head } else { Head::None };
            result = self.plans.prompt(head, position, &tokens[position..end], waiting).await?;
            position = end;
        }
        self.cached = self.history.len();
        Ok(result)
    }

    /// Clears the conversation, and zeroes the KV cache.
    ///
    /// # Errors
    /// [`ErrorKind::Gpu`].
    pub fn clear(&mut self) -> Result<()> {
        now(self.clear_by("Decoder::clear", Waiting::Blocking))
    }

    async fn clear_by(&mut self, call: &'static str, waiting: Waiting) -> Result<()> {
        self.history.clear();
        self.cached = 0;
        self.plans.clear(waiting).await.map_err(|error| error.in_call(call))
    }

    /// Returns the token ids of the conversation so far: the last prompt and the tokens generated
    /// after it.
    #[must_use]
    pub fn context(&self) -> &[u32] {
        &self.history
    }

    /// Returns the size of the KV cache in tokens (llama.cpp's `n_ctx`). Prompt and generated text
    /// together have at most one token more, since the last token is never fed back.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.plans.capacity()
    }

    /// Returns the tokenizer.
    #[must_use]
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// Returns the template of conversations: that of the tokenizer, or of
    /// [`DecoderOptions::chat_template`].
    #[must_use]
    pub fn chat_template(&self) -> Option<&ChatTemplate> {
        self.template.as_ref()
    }

    /// Returns whether a token ends text: of [`Tokenizer::is_end_of_generation`], or of
    /// `generation_config.json` beside safetensors.
    #[must_use]
    pub fn is_end_of_generation(&self, token: u32) -> bool {
        self.tokenizer.is_end_of_generation(token) || self.ends.contains(&token)
    }

    /// Returns the device.
    #[must_use]
    pub fn device(&self) -> &Device {
        self.plans.device()
    }

    /// Returns the plan that generates one token after `position` tokens, to inspect its kernels
    /// and memory ([`Plan::explain`](scry_tensor::Plan::explain)).
    ///
    /// # Errors
    /// [`ErrorKind::Gpu`].
    pub fn step_plan(&mut self, options: &Sampling, position: usize) -> Result<&Plan> {
        let head = options.head(self.plans.model().config.vocabulary);
        now(self.plans.step_plan(head, position, Waiting::Blocking))
    }
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder")
            .field("layers", &self.plans.model().config.layers)
            .field("capacity", &self.capacity())
            .field("context", &self.history.len())
            .field("device", &self.device().name())
            .finish_non_exhaustive()
    }
}
