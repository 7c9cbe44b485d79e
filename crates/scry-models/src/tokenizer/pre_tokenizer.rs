//! How texts are split before byte pairs are merged, by the names that GGUF files have for it.

use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{PreTokenizerWrapper, SplitDelimiterBehavior};

/// Contractions, words, digits in groups of at most three, punctuation, line ends, spaces.
const LLAMA3: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|",
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);
/// The same, with each digit for itself.
const QWEN2: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|",
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);

/// A way to split texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PreTokenizer {
    /// GPT-2's pattern.
    Gpt2,
    /// Each digit for itself, then GPT-2's pattern.
    DigitsThenGpt2,
    /// Llama 3's pattern. Words that are tokens are not merged.
    Llama3,
    /// Qwen 2's pattern.
    Qwen2,
}

/// The names of `tokenizer.ggml.pre` that are supported.
const NAMES: [(&str, PreTokenizer); 18] = [
    ("gpt-2", PreTokenizer::Gpt2),
    ("phi-2", PreTokenizer::Gpt2),
    ("mpt", PreTokenizer::Gpt2),
    ("olmo", PreTokenizer::Gpt2),
    ("smollm", PreTokenizer::DigitsThenGpt2),
    ("starcoder", PreTokenizer::DigitsThenGpt2),
    ("refact", PreTokenizer::DigitsThenGpt2),
    ("command-r", PreTokenizer::DigitsThenGpt2),
    ("codeshell", PreTokenizer::DigitsThenGpt2),
    ("exaone", PreTokenizer::DigitsThenGpt2),
    ("minerva-7b", PreTokenizer::DigitsThenGpt2),
    ("llama3", PreTokenizer::Llama3),
    ("llama-v3", PreTokenizer::Llama3),
    ("llama-bpe", PreTokenizer::Llama3),
    ("falcon3", PreTokenizer::Llama3),
    ("qwen2", PreTokenizer::Qwen2),
    ("stablelm2", PreTokenizer::Qwen2),
    ("deepseek-r1-qwen", PreTokenizer::Qwen2),
];

impl PreTokenizer {
    /// Returns the way to split of a name.
    pub(super) fn of_gguf(name: &str) -> Option<Self> {
        NAMES.iter().find(|(other, _)| *other == name).map(|(_, it)| *it)
    }

    /// Returns the supported names.
    pub(super) fn names() -> String {
        NAMES.map(|(name, _)| name).join(", ")
    }

    /// Returns whether a word that is a token is not merged from its bytes.
    pub(super) fn ignores_merges(self) -> bool {
        self == Self::Llama3
    }

    /// Builds the pre-tokenizer, whose last step writes bytes as characters.
    pub(super) fn build(self) -> tokenizers::Result<PreTokenizerWrapper> {
        let bytes = |use_regex| PreTokenizerWrapper::from(ByteLevel::new(false, true, use_regex));
        let split = |pattern: &str| {
            let pattern = SplitPattern::Regex(pattern.to_owned());
            Split::new(pattern, SplitDelimiterBehavior::Isolated, false)
        };
        Ok(match self {
            Self::Gpt2 => bytes(true),
            Self::DigitsThenGpt2 => {
                Sequence::new(vec![Digits::new(true).into(), bytes(true)]).into()
            }
            Self::Llama3 => Sequence::new(vec![split(LLAMA3)?.into(), bytes(false)]).into(),
            Self::Qwen2 => Sequence::new(vec![split(QWEN2)?.into(), bytes(false)]).into(),
        })
    }
}
