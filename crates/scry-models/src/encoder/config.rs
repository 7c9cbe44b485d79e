//! The description of a sentence encoder: the JSON files beside its weights.

use std::path::Path;

use serde_json::Value;

use crate::error::{Error, ErrorKind, Result};

/// How the vectors of tokens become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pooling {
    /// Their mean.
    Mean,
    /// That of the first token, `[CLS]`.
    First,
}

/// The activation of the feed-forward layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activation {
    Gelu,
    GeluTanh,
    Relu,
    Silu,
}

/// The sizes of a BERT encoder, and what follows it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Config {
    pub(super) hidden: usize,
    pub(super) layers: usize,
    pub(super) heads: usize,
    pub(super) intermediate: usize,
    pub(super) vocabulary: usize,
    pub(super) positions: usize,
    pub(super) types: usize,
    pub(super) epsilon: f32,
    pub(super) activation: Activation,
    /// The most tokens of a text.
    pub(super) max_length: usize,
    pub(super) pooling: Pooling,
    pub(super) is_normalised: bool,
}

impl Config {
    /// Reads the files of a folder: `config.json`, and those of sentence-transformers if there are
    /// any.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let path = folder.join("config.json");
        let json = read_json(&path)?.ok_or_else(|| {
            let error = std::io::Error::from(std::io::ErrorKind::NotFound);
            Error::io(CALL, &path, error)
        })?;
        let mut config = Self::of_bert(&File { path: &path, json: &json })?;
        let path = folder.join("sentence_bert_config.json");
        if let Some(json) = read_json(&path)? {
            let file = File { path: &path, json: &json };
            if let Some(length) = file.find_size("max_seq_length")? {
                config.max_length = config.max_length.min(length.max(2));
            }
        }
        let path = folder.join("1_Pooling").join("config.json");
        if let Some(json) = read_json(&path)? {
            config.pooling = pooling(&File { path: &path, json: &json })?;
        }
        if let Some(Value::Array(modules)) = read_json(&folder.join("modules.json"))? {
            let is_norm = |module: &Value| {
                module["type"].as_str().is_some_and(|name| name.ends_with(".Normalize"))
            };
            config.is_normalised = modules.iter().any(is_norm);
        }
        Ok(config)
    }

    fn of_bert(file: &File<'_>) -> Result<Self> {
        let model = file.json["model_type"].as_str().unwrap_or("bert");
        if model != "bert" {
            let problem = format!("`model_type` is `{model}`, and `Encoder` computes `bert`");
            return Err(file.error(problem, "use an encoder of the BERT family"));
        }
        let position = file.json["position_embedding_type"].as_str().unwrap_or("absolute");
        if position != "absolute" {
            let problem = format!("`position_embedding_type` is `{position}`");
            return Err(file.error(problem, "use a model with `absolute` positions"));
        }
        let activation = match file.json["hidden_act"].as_str().unwrap_or("gelu") {
            "gelu" => Activation::Gelu,
            "gelu_new" | "gelu_pytorch_tanh" => Activation::GeluTanh,
            "relu" => Activation::Relu,
            "silu" | "swish" => Activation::Silu,
            other => {
                let problem = format!("`hidden_act` is `{other}`");
                return Err(file.error(problem, "supported are gelu, gelu_new, relu and silu"));
            }
        };
        let positions = file.size("max_position_embeddings")?;
        let config = Self {
            hidden: file.size("hidden_size")?,
            layers: file.size("num_hidden_layers")?,
            heads: file.size("num_attention_heads")?,
            intermediate: file.size("intermediate_size")?,
            vocabulary: file.size("vocab_size")?,
            positions,
            types: file.find_size("type_vocab_size")?.unwrap_or(2),
            epsilon: file.json["layer_norm_eps"].as_f64().unwrap_or(1e-12) as f32,
            activation,
            max_length: positions,
            pooling: Pooling::Mean,
            is_normalised: false,
        };
        if !config.hidden.is_multiple_of(config.heads) {
            let (hidden, heads) = (config.hidden, config.heads);
            let problem = format!("`hidden_size` is {hidden}, no multiple of {heads} heads");
            return Err(file.error(problem, "the file contradicts itself"));
        }
        Ok(config)
    }

    /// Returns the columns of a head.
    pub(super) fn head_size(&self) -> usize {
        self.hidden / self.heads
    }
}

const CALL: &str = "Encoder::load";

/// The largest number that a size may have, so that products of two fit.
const MAX_SIZE: u64 = 1 << 24;

struct File<'f> {
    path: &'f Path,
    json: &'f Value,
}

impl File<'_> {
    fn error(&self, problem: String, help: &str) -> Error {
        Error::new(CALL, ErrorKind::Format, problem, help).in_file(self.path)
    }

    fn find_size(&self, key: &str) -> Result<Option<usize>> {
        let value = &self.json[key];
        if value.is_null() {
            return Ok(None);
        }
        match value.as_u64().filter(|size| (1..=MAX_SIZE).contains(size)) {
            Some(size) => Ok(Some(size as usize)),
            None => {
                let problem = format!("`{key}` is {value}");
                Err(self.error(problem, "sizes are integers from 1 to 2^24"))
            }
        }
    }

    fn size(&self, key: &str) -> Result<usize> {
        let missing = || self.error(format!("`{key}` is missing"), "use the file of a BERT model");
        self.find_size(key)?.ok_or_else(missing)
    }
}

/// Returns the content of a file; `None` if there is none.
fn read_json(path: &Path) -> Result<Option<Value>> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io(CALL, path, error)),
    };
    serde_json::from_str(&text).map(Some).map_err(|error| {
        let problem = format!("is not JSON: {error}");
        Error::new(CALL, ErrorKind::Format, problem, "check the file").in_file(path)
    })
}

fn pooling(file: &File<'_>) -> Result<Pooling> {
    let is_set = |key: &str| file.json[key].as_bool().unwrap_or(false);
    let others = ["pooling_mode_max_tokens", "pooling_mode_mean_sqrt_len_tokens"];
    if let Some(other) = others.into_iter().find(|key| is_set(key)) {
        let problem = format!("`{other}` is set");
        return Err(file.error(problem, "supported are the mean and the first token"));
    }
    match (is_set("pooling_mode_mean_tokens"), is_set("pooling_mode_cls_token")) {
        (true, false) => Ok(Pooling::Mean),
        (false, true) => Ok(Pooling::First),
        (mean, first) => {
            let problem = format!("the mean is {mean}, and the first token {first}");
            Err(file.error(problem, "one of them must be set"))
        }
    }
}
