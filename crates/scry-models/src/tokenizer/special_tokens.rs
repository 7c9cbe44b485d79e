//! Tokens with a meaning to models.

/// Texts of tokens that end a text or a turn, whatever the metadata states.
const ENDS: [&str; 10] = [
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end_of_text|>",
    "<|end|>",
    "<|return|>",
    "<end_of_turn>",
    "<|end_of_turn|>",
    "</s>",
];

/// The ids of tokens with a meaning to models.
#[derive(Debug, Clone, Default)]
pub(super) struct SpecialTokens {
    pub(super) bos: Option<u32>,
    pub(super) eos: Option<u32>,
    pub(super) unk: Option<u32>,
    pub(super) pad: Option<u32>,
    /// Tokens that end generated text, sorted.
    pub(super) ends: Vec<u32>,
}

impl SpecialTokens {
    /// Collects the tokens that end generated text: the stated ones, and those of well-known texts,
    /// if they are special.
    pub(super) fn set_ends(
        &mut self,
        engine: &tokenizers::Tokenizer,
        stated: impl IntoIterator<Item = u32>,
    ) {
        let added = engine.get_added_vocabulary();
        let known = ENDS.iter().filter(|text| added.is_special_token(text));
        self.ends = self.eos.into_iter().chain(stated).collect();
        self.ends.extend(known.filter_map(|text| engine.token_to_id(text)));
        self.ends.sort_unstable();
        self.ends.dedup();
    }
}
