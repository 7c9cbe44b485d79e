//! The sizes of a Llama model: from the metadata of a GGUF file, or `config.json`.

use std::path::Path;

use crate::error::{Error, ErrorKind, Result};
use crate::json_file::{JsonFile, MAX_SIZE};
use crate::weights::{FileFormat, Metadata, Weights};

/// The sizes of a model of the Llama family.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Config {
    pub(super) hidden: usize,
    pub(super) layers: usize,
    pub(super) heads: usize,
    /// KV heads: those of keys and values.
    pub(super) kv_heads: usize,
    /// The columns of a head: `head_dim`.
    pub(super) columns: usize,
    pub(super) intermediate: usize,
    pub(super) vocabulary: usize,
    /// The most tokens that the model was trained for.
    pub(super) context: usize,
    pub(super) epsilon: f32,
    /// The base of the frequencies of RoPE.
    pub(super) theta: f64,
    /// Whether columns `2 i` and `2 i + 1` are rotated, instead of `i` and `i + columns / 2`.
    pub(super) is_interleaved: bool,
    /// Whether the embeddings are the weights of the LM head, too; `None` if they are where it has
    /// none of its own.
    pub(super) is_tied: Option<bool>,
}

const CALL: &str = "Decoder::load";

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
            let help = "`Decoder` supports the architecture `llama` only";
            return Err(Error::new(CALL, ErrorKind::Format, problem, help));
        }
        let key = |name: &str| format!("llama.{name}");
        let size = |name: &str| metadata.require::<usize>(&key(name));
        let (hidden, heads) = (size("embedding_length")?, size("attention.head_count")?);
        let columns = find(metadata, "attention.key_length")?;
        let columns = columns.unwrap_or(hidden / heads.max(1));
        let rotated = find(metadata, "rope.dimension_count")?.unwrap_or(columns);
        if rotated != columns {
            let problem = format!(
                "partial RoPE is not supported: it rotates {rotated} of {columns} columns of each \
                 head"
            );
            let help = "use a model of the Llama family";
            return Err(Error::new(CALL, ErrorKind::Format, problem, help));
        }
        check_scaling(metadata)?;
        let embedding = weights.info("token_embd.weight");
        let embedding = embedding.and_then(|info| info.shape().first().copied());
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
            is_tied: None,
        })
    }

    fn of_folder(path: &Path) -> Result<Self> {
        let file = JsonFile::open(CALL, folder(path).join("config.json"))?;
        let model = file.find_text("model_type")?.unwrap_or("llama");
        if model != "llama" {
            let problem = format!("`model_type` is `{model}`");
            return Err(file.error(problem, "`Decoder` supports `model_type` `llama` only"));
        }
        let activation = file.find_text("hidden_act")?.unwrap_or("silu");
        if activation != "silu" {
            let problem = format!("`hidden_act` is `{activation}`");
            return Err(file.error(problem, "only `silu` is supported"));
        }
        // Newer files have the parameters of positions in one object.
        let parameters = &file.json["rope_parameters"];
        for part in [parameters, &file.json["rope_scaling"]] {
            let kind = part["rope_type"].as_str().or_else(|| part["type"].as_str());
            if !part.is_null() && kind != Some("default") {
                let help = "scaled RoPE is not supported: use a model without `rope_scaling`";
                return Err(file.error(format!("RoPE is scaled: {part}"), help));
            }
        }
        let theta = file.find_number(&file.json, "rope_theta")?;
        let theta =
            theta.map_or_else(|| file.find_number(parameters, "rope_theta"), |it| Ok(Some(it)))?;
        let (hidden, heads) = (file.size("hidden_size")?, file.size("num_attention_heads")?);
        let epsilon = file.find_number(&file.json, "rms_norm_eps")?.unwrap_or(1e-6);
        Ok(Self {
            hidden,
            layers: file.size("num_hidden_layers")?,
            heads,
            kv_heads: file.find_size("num_key_value_heads")?.unwrap_or(heads),
            columns: file.find_size("head_dim")?.unwrap_or(hidden / heads),
            intermediate: file.size("intermediate_size")?,
            vocabulary: file.size("vocab_size")?,
            context: file.size("max_position_embeddings")?,
            epsilon: epsilon as f32,
            theta: theta.unwrap_or(10_000.0),
            is_interleaved: false,
            is_tied: Some(file.json["tie_word_embeddings"].as_bool().unwrap_or(false)),
        })
    }

    /// Returns the sizes of the columns of a head as pairs.
    pub(super) fn pairs(&self) -> [usize; 2] {
        let half = self.columns / 2;
        if self.is_interleaved { [half, 2] } else { [2, half] }
    }

    fn check(&self, path: &Path) -> Result<()> {
        let sizes = [
            ("hidden_size", self.hidden),
            ("num_hidden_layers", self.layers),
            ("num_attention_heads", self.heads),
            ("num_key_value_heads", self.kv_heads),
            ("head_dim", self.columns),
            ("intermediate_size", self.intermediate),
            ("vocab_size", self.vocabulary),
            ("max_position_embeddings", self.context),
        ];
        let error = |problem: String| {
            let help = "config.json, or the metadata of the GGUF file, is inconsistent: download \
                        the model again";
            Err(Error::new(CALL, ErrorKind::Format, problem, help).in_file(path))
        };
        if let Some((what, size)) = sizes.iter().find(|(_, it)| !(1..=MAX_SIZE).contains(it)) {
            return error(format!("`{what}` is {size}, not 1 to 2^24"));
        }
        let Self { heads, kv_heads, columns, .. } = self;
        if !heads.is_multiple_of(*kv_heads) {
            return error(format!(
                "`num_attention_heads` is {heads}, not a multiple of `num_key_value_heads`, \
                 {kv_heads}"
            ));
        }
        if !columns.is_multiple_of(2) || *columns > 256 {
            return error(format!("`head_dim` is {columns}, not an even number up to 256"));
        }
        if !(self.theta.is_finite() && self.theta > 0.0) {
            return error(format!("`rope_theta` is {}, not a positive number", self.theta));
        }
        Ok(())
    }
}

/// Returns the folder of a model: of a file, the folder that it is in.
pub(super) fn folder(path: &Path) -> &Path {
    if path.is_dir() { path } else { path.parent().unwrap_or(path) }
}

fn find(metadata: &Metadata, name: &str) -> Result<Option<usize>> {
    metadata.find::<usize>(&format!("llama.{name}"))
}

/// Rejects positions that are scaled, except by a factor of 1.
fn check_scaling(metadata: &Metadata) -> Result<()> {
    let key = |name: &str| format!("llama.rope.{name}");
    let error = |problem: String| {
        let help = "scaled RoPE is not supported: use a file without `llama.rope.scaling`";
        Err(Error::new(CALL, ErrorKind::Format, problem, help))
    };
    if let Some(kind) = metadata.find::<&str>(&key("scaling.type"))?
        && kind != "none"
    {
        return error(format!("`{}` is `{kind}`", key("scaling.type")));
    }
    for name in ["scaling.factor", "scale_linear"] {
        if let Some(factor) = metadata.find::<f64>(&key(name))?
            && factor != 1.0
            && factor != 0.0
        {
            return error(format!("`{}` is {factor}", key(name)));
        }
    }
    Ok(())
}
