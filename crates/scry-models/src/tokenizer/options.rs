//! Options of encoding.

/// Options of [`Tokenizer::encode_with`](crate::Tokenizer::encode_with).
///
/// ```
/// use scry_models::EncodeOptions;
///
/// // What a user typed: `<|im_end|>` in it is text, not the end of a turn.
/// let typed = EncodeOptions { parse_special: false, add_special: false, ..Default::default() };
/// assert_eq!(typed.max_len, None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EncodeOptions {
    /// Adds the tokens that the model expects around a text. Default: true. False is right for
    /// rendered chat templates, which have these tokens.
    pub add_special: bool,
    /// Recognises special tokens in the text; otherwise they are ordinary text. Default: true.
    pub parse_special: bool,
    /// The largest number of ids, added tokens included. The end of longer texts is dropped.
    /// Default: no limit.
    pub max_len: Option<usize>,
}

impl Default for EncodeOptions {
    fn default() -> Self {
        Self { add_special: true, parse_special: true, max_len: None }
    }
}
