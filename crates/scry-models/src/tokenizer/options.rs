//! Options of encoding.

/// Options of [`Tokenizer::encode_with`](crate::Tokenizer::encode_with).
///
/// ```
/// use scry_models::EncodeOptions;
///
/// // What a user typed: `<|im_end|>` in it is text, not the end of a turn.
/// let typed = EncodeOptions::new().parse_special(false).add_special(false);
/// assert_ne!(typed, EncodeOptions::default());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "pass the options to `Tokenizer::encode_with`"]
pub struct EncodeOptions {
    pub(super) add_special: bool,
    pub(super) parse_special: bool,
    pub(super) max_length: Option<usize>,
}

impl Default for EncodeOptions {
    fn default() -> Self {
        Self { add_special: true, parse_special: true, max_length: None }
    }
}

impl EncodeOptions {
    /// Returns the default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether the tokens are added that the model expects around a text; true by default.
    /// False is right for rendered chat templates, which have these tokens.
    pub fn add_special(mut self, adds: bool) -> Self {
        self.add_special = adds;
        self
    }

    /// Sets whether special tokens in the text are recognised, the default, or are ordinary text.
    pub fn parse_special(mut self, parses: bool) -> Self {
        self.parse_special = parses;
        self
    }

    /// Sets the largest number of ids, added tokens included. The end of longer texts is dropped.
    /// By default there is no limit.
    pub fn max_length(mut self, ids: usize) -> Self {
        self.max_length = Some(ids);
        self
    }
}
