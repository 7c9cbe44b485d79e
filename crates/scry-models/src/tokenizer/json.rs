//! Tokenizers of `tokenizer.json` files.

use std::fs;
use std::path::Path;

use serde_json::Value as Json;

use super::Tokenizer;
use super::chat_template::{ChatTemplate, TemplateTokens};
use super::special_tokens::SpecialTokens;
use crate::error::{Error, ErrorKind, Result};

const CALL: &str = "Tokenizer::from_file";

/// The tokenizer, in the format of the crate `tokenizers`.
const FILE: &str = "tokenizer.json";
/// Names of special tokens, and the chat template.
const CONFIG: &str = "tokenizer_config.json";
/// The chat template, in a file of its own.
const TEMPLATE: &str = "chat_template.jinja";
/// The largest file, in bytes.
const MAX_BYTES: u64 = 256 << 20;

impl Tokenizer {
    /// Opens a `tokenizer.json`, or a folder with one. Special tokens and the chat template are
    /// read from `tokenizer_config.json` and `chat_template.jinja` beside it, if these exist.
    /// Padding and truncation of the file are not applied.
    ///
    /// ```no_run
    /// let tokenizer = scry_models::Tokenizer::from_file("models/all-MiniLM-L6-v2")?;
    /// assert_eq!(tokenizer.vocab_size(), 30522);
    /// # Ok::<(), scry_models::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Io`]; [`ErrorKind::Format`] if a file is not valid; [`ErrorKind::Template`] if
    /// the chat template is not valid.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let path = if path.is_dir() { path.join(FILE) } else { path.to_owned() };
        let engine = tokenizers::Tokenizer::from_bytes(read(&path)?).map_err(|problem| {
            let problem = format!("the file is not a valid tokenizer.json: {problem}");
            let help = "use the tokenizer.json of a model, as the library transformers saves it";
            Error::new(CALL, ErrorKind::Format, problem, help).in_file(&path)
        })?;
        let config_path = path.with_file_name(CONFIG);
        let config = match config_path.is_file() {
            true => serde_json::from_slice(&read(&config_path)?).map_err(|problem| {
                let problem = format!("the file is not valid JSON: {problem}");
                let help = "download the file again, or remove it";
                Error::new(CALL, ErrorKind::Format, problem, help).in_file(&config_path)
            })?,
            false => Json::Null,
        };
        let id = |name: &str| token(&config, name).and_then(|token| engine.token_to_id(&token));
        let mut special = SpecialTokens {
            bos: id("bos_token"),
            eos: id("eos_token"),
            unk: id("unk_token"),
            pad: id("pad_token"),
            ends: Vec::new(),
        };
        special.set_ends(&engine, []);
        let text = |name: &str| token(&config, name).unwrap_or_default();
        let tokens = TemplateTokens {
            bos: text("bos_token"),
            eos: text("eos_token"),
            unk: text("unk_token"),
            pad: text("pad_token"),
        };
        let template = template(&path.with_file_name(TEMPLATE), &config)?;
        let template = template.map(|source| ChatTemplate::with_tokens(CALL, &source, tokens));
        Ok(Self::new(engine, special, [None, None], template.transpose()?))
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    let io = |error| Error::io(CALL, path, error);
    let size = fs::metadata(path).map_err(io)?.len();
    if size > MAX_BYTES {
        let problem = format!("the file has {size} bytes, more than the limit of {MAX_BYTES}");
        let help = "use the tokenizer.json of a model";
        return Err(Error::new(CALL, ErrorKind::Format, problem, help).in_file(path));
    }
    fs::read(path).map_err(io)
}

/// Returns a special token: a string, or an object with its content.
fn token(config: &Json, name: &str) -> Option<String> {
    let token = &config[name];
    token.as_str().or_else(|| token["content"].as_str()).map(str::to_owned)
}

/// Returns the source of the chat template: a file, a string, or the default one of a list.
fn template(path: &Path, config: &Json) -> Result<Option<String>> {
    if path.is_file() {
        return Ok(Some(String::from_utf8_lossy(&read(path)?).into_owned()));
    }
    let template = &config["chat_template"];
    let of_list = || {
        let named = template.as_array()?.iter().find(|it| it["name"] == "default")?;
        named["template"].as_str()
    };
    Ok(template.as_str().or_else(of_list).map(str::to_owned))
}
