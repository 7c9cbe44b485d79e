//! Tokenizers: text to token ids and back.

mod byte_level;
mod chat_template;
mod gguf;
mod json;
mod options;
mod pre_tokenizer;
mod special_tokens;
mod stream;

use std::fmt;
use std::sync::{Arc, OnceLock};

use tokenizers::{DecoderWrapper, ModelWrapper};

use self::chat_template::TemplateTokens;
pub use self::chat_template::{ChatTemplate, Message};
pub use self::options::EncodeOptions;
use self::pre_tokenizer::{MAX_WHITESPACE, long_run};
use self::special_tokens::SpecialTokens;
pub use self::stream::DecodeStream;
use crate::error::{Error, ErrorKind, Result};

/// A tokenizer: text to token ids and back. Clones share it, and any thread may use it.
///
/// ```no_run
/// use scry_models::{Message, Tokenizer, Weights};
///
/// let weights = Weights::open("models/SmolLM2-135M-Instruct.Q4_1.gguf")?;
/// let tokenizer = Tokenizer::from_metadata(weights.metadata())?;
/// let ids = tokenizer.encode("Hello, world!")?;
/// assert_eq!(tokenizer.decode(&ids)?, "Hello, world!");
///
/// let template = tokenizer.chat_template().expect("an instruct model");
/// let prompt = template.render(&[Message::new("user", "What is a GPU?")], true)?;
/// # Ok::<(), scry_models::Error>(())
/// ```
#[derive(Clone)]
pub struct Tokenizer(Arc<Inner>);

struct Inner {
    engine: tokenizers::Tokenizer,
    /// The same tokenizer, except that texts of special tokens are ordinary text.
    literal: OnceLock<tokenizers::Tokenizer>,
    /// Whether tokens are bytes, written as characters.
    is_byte_level: bool,
    special: SpecialTokens,
    /// Tokens before and after a text, which the engine does not add itself.
    prefix: Option<u32>,
    suffix: Option<u32>,
    template: Option<ChatTemplate>,
}

impl Tokenizer {
    /// Wraps an engine, without padding and truncation, which would change what programs encode.
    fn new(
        mut engine: tokenizers::Tokenizer,
        special: SpecialTokens,
        [prefix, suffix]: [Option<u32>; 2],
        template: Option<ChatTemplate>,
    ) -> Self {
        engine.with_padding(None);
        // It fails only for lengths.
        let _ = engine.with_truncation(None);
        let is_byte_level = matches!(engine.get_decoder(), Some(DecoderWrapper::ByteLevel(_)));
        let literal = OnceLock::new();
        let inner = Inner { engine, literal, is_byte_level, special, prefix, suffix, template };
        Self(Arc::new(inner))
    }

    /// Returns the token ids of a text, with the tokens that the model expects around it, such as
    /// `[CLS]` and `[SEP]`. Special tokens in the text, such as `<|im_start|>`, are recognised.
    ///
    /// ```no_run
    /// # let tokenizer = scry_models::Tokenizer::from_file("tokenizer.json")?;
    /// assert_eq!(tokenizer.encode("a cat")?, [101, 1037, 4937, 102]);
    /// # Ok::<(), scry_models::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Tokenizer`] if the text cannot be split.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        self.encode_for("Tokenizer::encode", text, EncodeOptions::default())
    }

    /// Returns the token ids of a text, with options.
    ///
    /// ```no_run
    /// # let tokenizer = scry_models::Tokenizer::from_file("tokenizer.json")?;
    /// use scry_models::EncodeOptions;
    ///
    /// let options = EncodeOptions::new().max_length(256);
    /// assert!(tokenizer.encode_with("a long text", options)?.len() <= 256);
    /// # Ok::<(), scry_models::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Tokenizer`] if the text cannot be split; [`ErrorKind::Value`] if the maximum
    /// length is less than the number of added tokens.
    pub fn encode_with(&self, text: &str, options: EncodeOptions) -> Result<Vec<u32>> {
        self.encode_for("Tokenizer::encode_with", text, options)
    }

    fn encode_for(
        &self,
        call: &'static str,
        text: &str,
        options: EncodeOptions,
    ) -> Result<Vec<u32>> {
        let EncodeOptions { add_special, parse_special, max_length } = options;
        let engine = if parse_special { &self.0.engine } else { self.literal() };
        let error = |problem: tokenizers::Error| {
            let problem = format!("the text of {} bytes: {problem}", text.len());
            Error::new(call, ErrorKind::Tokenizer, problem, "split the text, and encode the parts")
        };
        if let Some((at, len)) = long_run(text) {
            let problem = format!(
                "{len} whitespace characters in a row, at byte {at} of the text, are too many"
            );
            let help = format!("shorten runs of whitespace to at most {MAX_WHITESPACE}");
            return Err(Error::new(call, ErrorKind::Tokenizer, problem, help));
        }
        let mut encoding = engine.encode_fast(text, false).map_err(error)?;
        let around = [self.0.prefix, self.0.suffix].map(|id| id.filter(|_| add_special));
        if let Some(max_length) = max_length {
            let own = engine.get_post_processor().filter(|_| add_special);
            let added = around.iter().flatten().count()
                + own.map_or(0, |it| tokenizers::PostProcessor::added_tokens(it, false));
            let left = max_length.checked_sub(added).ok_or_else(|| {
                let problem = format!(
                    "`max_length` is {max_length}, but the tokenizer adds {added} special tokens"
                );
                let help = "pass a larger `max_length`, or encode without special tokens";
                Error::new(call, ErrorKind::Value, problem, help)
            })?;
            encoding.truncate(left, 0, tokenizers::TruncationDirection::Right);
        }
        let encoding = engine.post_process(encoding, None, add_special).map_err(error)?;
        let [prefix, suffix] = around;
        Ok(prefix.into_iter().chain(encoding.get_ids().iter().copied()).chain(suffix).collect())
    }

    /// Returns the engine that treats special tokens as text.
    fn literal(&self) -> &tokenizers::Tokenizer {
        self.0.literal.get_or_init(|| {
            let mut engine = self.0.engine.clone();
            engine.set_encode_special_tokens(true);
            engine
        })
    }

    /// Returns the text of ids, without special tokens. Bytes that are not UTF-8 become U+FFFD.
    ///
    /// ```no_run
    /// # let tokenizer = scry_models::Tokenizer::from_file("tokenizer.json")?;
    /// assert_eq!(tokenizer.decode(&[101, 1037, 4937, 102])?, "a cat");
    /// # Ok::<(), scry_models::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Tokenizer`] for an id without a token.
    pub fn decode(&self, ids: &[u32]) -> Result<String> {
        const CALL: &str = "Tokenizer::decode";
        for (position, id) in ids.iter().enumerate() {
            if self.id_to_token(*id).is_none() {
                return Err(self.unknown(CALL, &format!("{id} at position {position}")));
            }
        }
        self.decode_known(CALL, ids)
    }

    /// Returns the text of ids that have tokens.
    fn decode_known(&self, call: &'static str, ids: &[u32]) -> Result<String> {
        self.0.engine.decode(ids, true).map_err(|problem| {
            let help = "the tokens are not those of a text: check the ids";
            Error::new(call, ErrorKind::Tokenizer, problem.to_string(), help)
        })
    }

    fn unknown(&self, call: &'static str, id: &str) -> Error {
        let problem = format!("the id {id} has no token");
        let help = format!("use ids below {}, of the same tokenizer", self.vocab_size());
        Error::new(call, ErrorKind::Tokenizer, problem, help)
    }

    /// Returns a streaming detokenizer: token ids are passed one by one, and its texts are whole
    /// characters.
    #[must_use]
    pub fn decode_stream(&self) -> DecodeStream {
        DecodeStream::new(self.clone())
    }

    /// Returns the number of tokens, special ones included.
    #[must_use]
    pub fn vocab_size(&self) -> usize {
        self.0.engine.get_vocab_size(true)
    }

    /// Returns the id of a token, as it is written in the vocabulary.
    ///
    /// ```no_run
    /// # let tokenizer = scry_models::Tokenizer::from_file("tokenizer.json")?;
    /// assert_eq!(tokenizer.token_to_id("[CLS]"), Some(101));
    /// # Ok::<(), scry_models::Error>(())
    /// ```
    #[must_use]
    pub fn token_to_id(&self, token: &str) -> Option<u32> {
        self.0.engine.token_to_id(token)
    }

    /// Returns the token of an id, as it is written in the vocabulary.
    ///
    /// ```no_run
    /// # let tokenizer = scry_models::Tokenizer::from_file("tokenizer.json")?;
    /// assert_eq!(tokenizer.id_to_token(101).as_deref(), Some("[CLS]"));
    /// # Ok::<(), scry_models::Error>(())
    /// ```
    #[must_use]
    pub fn id_to_token(&self, id: u32) -> Option<String> {
        self.0.engine.id_to_token(id)
    }

    /// Returns whether a token is special: not text, such as `[CLS]`.
    ///
    /// ```no_run
    /// # let tokenizer = scry_models::Tokenizer::from_file("tokenizer.json")?;
    /// assert!(tokenizer.is_special(101) && !tokenizer.is_special(1037));
    /// # Ok::<(), scry_models::Error>(())
    /// ```
    #[must_use]
    pub fn is_special(&self, id: u32) -> bool {
        let added = self.0.engine.get_added_vocabulary();
        added.get_added_tokens_decoder().get(&id).is_some_and(|token| token.special)
    }

    /// Returns the kind of the model in the crate `tokenizers`: `BPE`, `WordPiece`, `WordLevel` or
    /// `Unigram`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self.0.engine.get_model() {
            ModelWrapper::BPE(_) => "BPE",
            ModelWrapper::WordPiece(_) => "WordPiece",
            ModelWrapper::WordLevel(_) => "WordLevel",
            ModelWrapper::Unigram(_) => "Unigram",
        }
    }

    /// Returns the id of the beginning-of-sequence token (BOS); `None` if the tokenizer has none.
    #[must_use]
    pub fn bos_id(&self) -> Option<u32> {
        self.0.special.bos
    }

    /// Returns the id of the end-of-sequence token (EOS); `None` if the tokenizer has none.
    #[must_use]
    pub fn eos_id(&self) -> Option<u32> {
        self.0.special.eos
    }

    /// Returns the id of the unknown token (UNK); `None` if the tokenizer has none.
    #[must_use]
    pub fn unk_id(&self) -> Option<u32> {
        self.0.special.unk
    }

    /// Returns the id of the padding token (PAD); `None` if the tokenizer has none.
    #[must_use]
    pub fn pad_id(&self) -> Option<u32> {
        self.0.special.pad
    }

    /// Returns whether a token ends generation: end of sequence, or of a turn, such as
    /// `<|im_end|>`.
    ///
    /// ```no_run
    /// let weights = scry_models::Weights::open("models/SmolLM2-135M-Instruct.Q4_1.gguf")?;
    /// let tokenizer = scry_models::Tokenizer::from_metadata(weights.metadata())?;
    /// let end = tokenizer.token_to_id("<|im_end|>");
    /// assert!(end.is_some_and(|id| tokenizer.is_end_of_generation(id)));
    /// # Ok::<(), scry_models::Error>(())
    /// ```
    #[must_use]
    pub fn is_end_of_generation(&self, id: u32) -> bool {
        self.0.special.ends.contains(&id)
    }

    /// Parses a template of conversations, in which the special tokens are those of the tokenizer.
    pub(crate) fn parse_template(&self, call: &'static str, source: &str) -> Result<ChatTemplate> {
        let text = |id: Option<u32>| id.and_then(|id| self.id_to_token(id)).unwrap_or_default();
        let SpecialTokens { bos, eos, unk, pad, .. } = self.0.special;
        let tokens =
            TemplateTokens { bos: text(bos), eos: text(eos), unk: text(unk), pad: text(pad) };
        ChatTemplate::with_tokens(call, source, tokens)
    }

    /// Returns the template of conversations, if the model has one.
    #[must_use]
    pub fn chat_template(&self) -> Option<&ChatTemplate> {
        self.0.template.as_ref()
    }
}

impl fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokenizer")
            .field("vocab_size", &self.vocab_size())
            .field("special", &self.0.special)
            .finish_non_exhaustive()
    }
}
