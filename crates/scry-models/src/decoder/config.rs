//! The sizes of a Llama model: from the metadata of a GGUF file, or `config.json`.

use std::path::Path;

use serde_json::Value;

use crate::error::{Error, ErrorKind, Result};
use crate::weights::{FileFormat, Metadata, Weights};

/// The sizes of a model of the Llama family.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Config {
    pub(super) hidden: usize,
    pub(super) layers: usize,
    pub(super) heads: usize,
    /// Heads of keys and values.
    pub(super) kv_heads: usize,
    /// Columns of a head.
    pub(super) columns: usize,
    pub(super) intermediate: usize,
    pub(super) vocabulary: usize,
    /// The most tokens that the model was trained for.
    pub(super) context: usize,
    pub(super) epsilon: f32,
    /// The base of the angles of positions.
    pub(super) theta: f64,
    /// Whether columns `2 i` and `2 i + 1` are rotated, instead of `i` and `i + columns / 2`.
    pub(super) is_interleaved: bool,
}

const CALL: &str = "Decoder::load";

/// The largest number that a size may have, so that products of two fit.
const MAX_SIZE: usize = 1 << 24;

impl Config {
    /// Reads the sizes of a file of weights, or of `config.json` beside it.
    pub(super) fn read(path: &Path, weights: &Weights) -> Result<Self> {
        let config = match weights.format() {
            FileFormat::Gguf => Self::of_metadata(weights),
            FileFormat::Safetensors => Self::of_folder(path),
        };
        let config = config.map_err(|error| error.in_call(CALL))?;
        config.check(path)?;
        Ok(config)
    }

    fn of_metadata(weights: &Weights) -> Result<Self> {
        let metadata = weights.metadata();
        let architecture = metadata.require::<&str>("general.architecture")?;
        if architecture != "llama" {
            let problem = format!("the architecture is `{architecture}`");
            let help = "`Decoder` computes models of the architecture `llama`";
            return Err(Error::new(CALL, ErrorKind::Format, problem, help));
        }
        let key = |name: &str| format!("llama.{name}");
        let size = |name: &str| metadata.require::<usize>(&key(name));
        let (hidden, heads) = (size("embedding_length")?, size("attention.head_count")?);
        let columns = find(metadata, "attention.key_length")?;
        let columns = columns.unwrap_or(hidden / heads.max(1));
        let rotated = find(metadata, "rope.dimension_count")?.unwrap_or(columns);
        if rotated != columns {
            let problem = format!("{rotated} of {columns} columns of a head are rotated");
            let help = "`Decoder` rotates all columns";
            return Err(Error::new(CALL, ErrorKind::Format, problem, help));
        }
        let embedding = weights.info("token_embd.weight").map(|info| info.shape()[0]);
        Ok(Self {
            hidden,
            layers: size("block_count")?,
            heads,
            kv_heads: find(metadata, "attention.head_count_kv")?.unwrap_or(heads),
            columns,
            intermediate: size("feed_forward_length")?,
            vocabulary: embedding.map_or_else(|| size("vocab_size"), Ok)?,
            context: size("context_length")?,
            epsilon: metadata.require::<f32>(&key("attention.layer_norm_rms_epsilon"))?,
            theta: metadata.find::<f64>(&key("rope.freq_base"))?.unwrap_or(10_000.0),
            is_interleaved: true,
        })
    }

    fn of_folder(path: &Path) -> Result<Self> {
        let folder = if path.is_dir() { path } else { path.parent().unwrap_or(path) };
        let path = folder.join("config.json");
        let error = |problem: String, help: &str| {
            Error::new(CALL, ErrorKind::Format, problem, help).in_file(&path)
        };
        let text = std::fs::read_to_string(&path).map_err(|it| Error::io(CALL, &path, it))?;
        let json: Value = serde_json::from_str(&text)
            .map_err(|it| error(format!("is not JSON: {it}"), "check the file"))?;
        let model = json["model_type"].as_str().unwrap_or("llama");
        if model != "llama" {
            let problem = format!("`model_type` is `{model}`");
            return Err(error(problem, "`Decoder` computes models of the type `llama`"));
        }
        if !json["rope_scaling"].is_null() {
            let problem = format!("`rope_scaling` is {}", json["rope_scaling"]);
            return Err(error(problem, "`Decoder` computes positions without scaling"));
        }
        let find = |key: &str| json[key].as_u64().map(|size| size as usize);
        let size = |key: &str| {
            find(key).ok_or_else(|| error(format!("`{key}` is missing"), "use a Llama model"))
        };
        let (hidden, heads) = (size("hidden_size")?, size("num_attention_heads")?);
        Ok(Self {
            hidden,
            layers: size("num_hidden_layers")?,
            heads,
            kv_heads: find("num_key_value_heads").unwrap_or(heads),
            columns: find("head_dim").unwrap_or(hidden / heads.max(1)),
            intermediate: size("intermediate_size")?,
            vocabulary: size("vocab_size")?,
            context: size("max_position_embeddings")?,
            epsilon: json["rms_norm_eps"].as_f64().unwrap_or(1e-6) as f32,
            theta: json["rope_theta"].as_f64().unwrap_or(10_000.0),
            is_interleaved: false,
        })
    }

    /// Returns the sizes of the columns of a head as pairs.
    pub(super) fn pairs(&self) -> [usize; 2] {
        let half = self.columns / 2;
        if self.is_interleaved { [half, 2] } else { [2, half] }
    }

    fn check(&self, path: &Path) -> Result<()> {
        let sizes = [
            ("columns of tokens", self.hidden),
            ("layers", self.layers),
            ("heads", self.heads),
            ("heads of keys", self.kv_heads),
            ("columns of a head", self.columns),
            ("columns between layers", self.intermediate),
            ("tokens", self.vocabulary),
            ("positions", self.context),
        ];
        let error = |problem: String| {
            let help = "the description of the model contradicts itself";
            Err(Error::new(CALL, ErrorKind::Format, problem, help).in_file(path))
        };
        if let Some((what, size)) = sizes.iter().find(|(_, it)| !(1..=MAX_SIZE).contains(it)) {
            return error(format!("the model has {size} {what}"));
        }
        if !self.heads.is_multiple_of(self.kv_heads) || !self.columns.is_multiple_of(2) {
            let Self { heads, kv_heads, columns, .. } = self;
            return error(format!(
                "{heads} heads of {columns} columns do not share {kv_heads} heads of keys"
            ));
        }
        if !(self.theta.is_finite() && self.theta > 0.0) {
            return error(format!("the base of the positions is {}", self.theta));
        }
        Ok(())
    }
}

fn find(metadata: &Metadata, name: &str) -> Result<Option<usize>> {
    metadata.find::<usize>(&format!("llama.{name}"))
}
