//! Tokenizers of GGUF files, whose metadata has the vocabulary and the merges.

use tokenizers::AddedToken;
use tokenizers::decoders::byte_level::ByteLevel;
use tokenizers::models::bpe::{BPE, Vocab};

use super::Tokenizer;
use super::chat_template::{ChatTemplate, TemplateTokens};
use super::pre_tokenizer::PreTokenizer;
use super::special_tokens::SpecialTokens;
use crate::error::{ErrorKind, Result};
use crate::weights::Metadata;

const CALL: &str = "Tokenizer::from_metadata";

/// The kinds of tokens that are no ordinary text.
const UNKNOWN: i64 = 2;
const CONTROL: i64 = 3;
const USER_DEFINED: i64 = 4;

impl Tokenizer {
    /// Builds the tokenizer of a GGUF file: byte pair encoding of bytes, as GPT-2's
    /// (`tokenizer.ggml.model` is `gpt2`), with the pre-tokenizer that `tokenizer.ggml.pre` names.
    ///
    /// ```no_run
    /// let weights = scry_models::Weights::open("models/SmolLM2-135M-Instruct.Q4_1.gguf")?;
    /// let tokenizer = scry_models::Tokenizer::from_metadata(weights.metadata())?;
    /// assert_eq!(tokenizer.encode("Hello")?, [19556]);
    /// # Ok::<(), scry_models::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Keys`] if a key is missing; [`ErrorKind::DType`] for other kinds of
    /// tokenizers; [`ErrorKind::Format`] if the vocabulary, the merges or the special tokens are
    /// inconsistent; [`ErrorKind::Template`] if the chat template is not valid.
    pub fn from_metadata(metadata: &Metadata) -> Result<Self> {
        Self::of(metadata).map_err(|error| error.for_call(CALL))
    }

    fn of(metadata: &Metadata) -> Result<Self> {
        let pre_tokenizer = pre_tokenizer(metadata)?;
        let tokens: &[String] = metadata.require("tokenizer.ggml.tokens")?;
        let merges: &[String] = metadata.require("tokenizer.ggml.merges")?;
        let format = |problem: String| {
            let help = "convert the model to GGUF again, with current tools";
            metadata.error(CALL, ErrorKind::Format, problem, help)
        };
        let mut engine = engine(tokens, merges, pre_tokenizer).map_err(format)?;
        add_tokens(&mut engine, metadata, tokens).map_err(format)?;

        let id = |key: &str| -> Result<Option<u32>> {
            let key = format!("tokenizer.ggml.{key}");
            let Some(id) = metadata.find::<u32>(&key)? else { return Ok(None) };
            match (id as usize) < tokens.len() {
                true => Ok(Some(id)),
                false => {
                    Err(format(format!("`{key}` is {id}, but there are {} tokens", tokens.len())))
                }
            }
        };
        let mut special = SpecialTokens {
            bos: id("bos_token_id")?,
            eos: id("eos_token_id")?,
            unk: id("unknown_token_id")?,
            pad: id("padding_token_id")?,
            ends: Vec::new(),
        };
        special.set_ends(&engine, [id("eot_token_id")?, id("eom_token_id")?].into_iter().flatten());
        let added = |key: &str, default: bool| -> Result<bool> {
            Ok(metadata.find::<bool>(&format!("tokenizer.ggml.{key}"))?.unwrap_or(default))
        };
        let adds_bos = added("add_bos_token", pre_tokenizer.adds_bos())?;
        let adds_eos = added("add_eos_token", false)?;
        let around = [special.bos.filter(|_| adds_bos), special.eos.filter(|_| adds_eos)];
        let text = |id: Option<u32>| id.map(|id| tokens[id as usize].clone()).unwrap_or_default();
        let template = metadata.find::<&str>("tokenizer.chat_template")?.map(|source| {
            let tokens = TemplateTokens {
                bos: text(special.bos),
                eos: text(special.eos),
                unk: text(special.unk),
                pad: text(special.pad),
            };
            ChatTemplate::with_tokens(CALL, source, tokens)
        });
        Ok(Self::new(engine, special, around, template.transpose()?))
    }
}

/// Returns the pre-tokenizer of a tokenizer of byte pairs.
fn pre_tokenizer(metadata: &Metadata) -> Result<PreTokenizer> {
    let model: &str = metadata.require("tokenizer.ggml.model")?;
    if model != "gpt2" {
        let problem = format!("the tokenizer is of the kind `{model}`; only `gpt2` is supported");
        let help = "load the tokenizer.json of the model with `Tokenizer::from_file`, and pass it \
                    to `DecoderOptions::tokenizer`";
        return Err(metadata.error(CALL, ErrorKind::DType, problem, help));
    }
    // Files without the key are of the first versions of llama.cpp, whose split was GPT-2's.
    let name = metadata.find::<&str>("tokenizer.ggml.pre")?.unwrap_or("gpt-2");
    PreTokenizer::of_gguf(name).ok_or_else(|| {
        let problem = format!("the pre-tokenizer `{name}` is not supported");
        let help = format!(
            "load the tokenizer.json of the model with `Tokenizer::from_file`, and pass it to \
             `DecoderOptions::tokenizer`; supported here: {}",
            PreTokenizer::names()
        );
        metadata.error(CALL, ErrorKind::DType, problem, help)
    })
}

/// Builds the model of byte pairs.
fn engine(
    tokens: &[String],
    merges: &[String],
    pre_tokenizer: PreTokenizer,
) -> Result<tokenizers::Tokenizer, String> {
    let mut vocabulary = Vocab::with_capacity(tokens.len());
    for (id, token) in (0u32..).zip(tokens) {
        if let Some(other) = vocabulary.insert(token.clone(), id) {
            return Err(format!("the token `{token}` has the ids {other} and {id}"));
        }
    }
    let pair = |merge: &String| {
        let pair = merge.split_once(' ').map(|(a, b)| (a.to_owned(), b.to_owned()));
        pair.ok_or_else(|| format!("the merge `{merge}` is not two tokens separated by a space"))
    };
    let merges = merges.iter().map(pair).collect::<Result<Vec<_>, String>>()?;
    let text = |error: tokenizers::Error| error.to_string();
    let model = BPE::builder()
        .vocab_and_merges(vocabulary, merges)
        .ignore_merges(pre_tokenizer.ignores_merges())
        .build()
        .map_err(text)?;
    let mut engine = tokenizers::Tokenizer::new(model);
    engine.with_pre_tokenizer(Some(pre_tokenizer.build().map_err(text)?));
    engine.with_decoder(Some(ByteLevel::default()));
    Ok(engine)
}

/// Registers the tokens that are found in texts before these are split.
fn add_tokens(
    engine: &mut tokenizers::Tokenizer,
    metadata: &Metadata,
    tokens: &[String],
) -> Result<(), String> {
    const KEY: &str = "tokenizer.ggml.token_type";
    let kinds = metadata.find::<Vec<i64>>(KEY).map_err(|error| error.to_string())?;
    let Some(kinds) = kinds else { return Ok(()) };
    if kinds.len() != tokens.len() {
        return Err(format!("`{KEY}` has {} kinds for {} tokens", kinds.len(), tokens.len()));
    }
    let added: Vec<AddedToken> = kinds
        .iter()
        .zip(tokens)
        .filter(|(kind, _)| [UNKNOWN, CONTROL, USER_DEFINED].contains(kind))
        .map(|(kind, token)| {
            AddedToken::from(token.clone(), *kind != USER_DEFINED).normalized(false)
        })
        .collect();
    engine.add_tokens(&added);
    Ok(())
}
