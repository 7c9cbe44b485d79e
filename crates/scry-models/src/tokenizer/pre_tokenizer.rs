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

/// The longest run of whitespace characters that texts may have. Patterns that end with
/// `\s+(?!\S)|\s+` backtrack once for each of them, of which the crate `tokenizers` permits a
/// million; beyond, it stops splitting the text, without an error.
pub(super) const MAX_WHITESPACE: usize = 250_000;

/// Returns the first run of whitespace that is too long: its offset in bytes, and its length in
/// characters.
pub(super) fn long_run(text: &str) -> Option<(usize, usize)> {
    if text.len() <= MAX_WHITESPACE {
        return None;
    }
    let is_white = |character: char| character.is_whitespace();
    let mut start = 0;
    while let Some(from) = text[start..].find(is_white) {
        start += from;
        let rest = &text[start..];
        let run = &rest[..rest.find(|character| !is_white(character)).unwrap_or(rest.len())];
        let len = run.chars().count();
        if len > MAX_WHITESPACE {
            return Some((start, len));
        }
        start += run.len();
    }
    None
}

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

    /// Returns whether texts begin with a token unless the file states otherwise.
    pub(super) fn adds_bos(self) -> bool {
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

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use tokenizers::{OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer as _};

    use super::{MAX_WHITESPACE, PreTokenizer, long_run};

    /// Returns the pieces of a text, as parts of it.
    fn pieces<'t>(name: &str, text: &'t str) -> Vec<&'t str> {
        let pre_tokenizer = PreTokenizer::of_gguf(name).unwrap().build().unwrap();
        let mut pieces = PreTokenizedString::from(text);
        pre_tokenizer.pre_tokenize(&mut pieces).unwrap();
        let splits = pieces.get_splits(OffsetReferential::Original, OffsetType::Byte);
        splits.into_iter().map(|(_, (start, end), _)| &text[start..end]).collect()
    }

    #[test]
    fn texts_are_split_as_by_other_libraries() {
        let cases = include_str!("../../tests/models/formats/expected/pieces.json");
        let cases: Vec<Value> = serde_json::from_str(cases).unwrap();
        for case in &cases {
            let text = case["text"].as_str().unwrap();
            for name in ["gpt-2", "smollm", "llama-bpe", "qwen2"] {
                assert_eq!(serde_json::json!(pieces(name, text)), case[name], "{name}: {text:?}");
            }
        }
    }

    #[test]
    fn longest_runs_do_not_exhaust_the_pattern() {
        let text = " ".repeat(MAX_WHITESPACE) + "x";
        for name in ["smollm", "qwen2"] {
            let pieces = pieces(name, &text);
            assert_eq!(pieces, [&text[1..MAX_WHITESPACE], " x"], "{name}");
        }
        assert_eq!(long_run(&text), None);
        assert_eq!(long_run(&format!("ab {text}")), Some((2, MAX_WHITESPACE + 1)));
    }

    #[test]
    fn names_are_distinct() {
        let names = PreTokenizer::names();
        let mut names: Vec<&str> = names.split(", ").collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(PreTokenizer::of_gguf("unknown").is_none());
    }
}
