//! The configuration of a sentence encoder: config.json and the files of sentence-transformers.

use std::path::Path;

use crate::error::{Error, ErrorKind, Result};
use crate::json_file::JsonFile;

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
    /// The maximum number of tokens of a text.
    pub(super) max_length: usize,
    pub(super) pooling: Pooling,
    pub(super) is_normalised: bool,
}

impl Config {
    /// Reads the files of a folder: `config.json`, and those of sentence-transformers if there are
    /// any.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let mut config = Self::of_bert(&JsonFile::open(CALL, folder.join("config.json"))?)?;
        let settings = folder.join("sentence_bert_config.json");
        if let Some(file) = JsonFile::find(CALL, settings)?
            && let Some(length) = file.find_size("max_seq_length")?
        {
            config.max_length = config.max_length.min(length.max(2));
        }
        if let Some(file) = JsonFile::find(CALL, folder.join("1_Pooling").join("config.json"))? {
            config.pooling = pooling(&file)?;
        }
        if let Some(file) = JsonFile::find(CALL, folder.join("modules.json"))? {
            config.is_normalised = is_normalised(&file)?;
        }
        Ok(config)
    }

    fn of_bert(file: &JsonFile) -> Result<Self> {
        let model = file.find_text("model_type")?.unwrap_or("bert");
        if model != "bert" {
            let problem = format!("`model_type` is `{model}`, but `Encoder` supports only `bert`");
            return Err(file.error(problem, "use an encoder of the BERT family"));
        }
        let position = file.find_text("position_embedding_type")?.unwrap_or("absolute");
        if position != "absolute" {
            let problem = format!("`position_embedding_type` is `{position}`");
            return Err(file.error(problem, "use a model with `absolute` positions"));
        }
        let activation = match file.find_text("hidden_act")?.unwrap_or("gelu") {
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
        let epsilon = file.find_number(&file.json, "layer_norm_eps")?.unwrap_or(1e-12);
        let config = Self {
            hidden: file.size("hidden_size")?,
            layers: file.size("num_hidden_layers")?,
            heads: file.size("num_attention_heads")?,
            intermediate: file.size("intermediate_size")?,
            vocabulary: file.size("vocab_size")?,
            positions,
            types: file.find_size("type_vocab_size")?.unwrap_or(2),
            epsilon: epsilon as f32,
            activation,
            max_length: positions,
            pooling: Pooling::Mean,
            is_normalised: false,
        };
        if !config.hidden.is_multiple_of(config.heads) {
            let (hidden, heads) = (config.hidden, config.heads);
            let problem = format!(
                "`hidden_size` is {hidden}, not a multiple of `num_attention_heads`, {heads}"
            );
            return Err(file.error(problem, "use the config.json that belongs to the weights"));
        }
        if positions < 2 {
            let problem = format!("`max_position_embeddings` is {positions}");
            return Err(file.error(problem, "texts have two tokens at least, [CLS] and [SEP]"));
        }
        Ok(config)
    }

    /// Checks that there are not more layers than tensors.
    pub(super) fn check_layers(&self, folder: &Path, tensors: usize) -> Result<()> {
        if self.layers <= tensors {
            return Ok(());
        }
        let problem = format!(
            "`num_hidden_layers` is {}, but the file has only {tensors} tensors",
            self.layers
        );
        let help = "use the config.json that belongs to these weights";
        Err(Error::new(CALL, ErrorKind::Format, problem, help).in_file(folder))
    }

    /// Returns the tensors that the model needs, without a prefix of their names.
    pub(super) fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        let (hidden, wide) = (self.hidden, self.intermediate);
        let mut all = Vec::new();
        let mut add = |name: String, shape: &[usize]| all.push((name, shape.to_vec()));
        let tables =
            [("word", self.vocabulary), ("position", self.positions), ("token_type", self.types)];
        for (name, rows) in tables {
            add(format!("embeddings.{name}_embeddings.weight"), &[rows, hidden]);
        }
        let mut norms = vec!["embeddings".to_owned()];
        for layer in 0..self.layers {
            let path = format!("encoder.layer.{layer}");
            for (name, [rows, columns]) in [
                ("attention.self.query", [hidden, hidden]),
                ("attention.self.key", [hidden, hidden]),
                ("attention.self.value", [hidden, hidden]),
                ("attention.output.dense", [hidden, hidden]),
                ("intermediate.dense", [wide, hidden]),
                ("output.dense", [hidden, wide]),
            ] {
                add(format!("{path}.{name}.weight"), &[rows, columns]);
                add(format!("{path}.{name}.bias"), &[rows]);
            }
            norms.extend([format!("{path}.attention.output"), format!("{path}.output")]);
        }
        for norm in norms {
            add(format!("{norm}.LayerNorm.weight"), &[hidden]);
            add(format!("{norm}.LayerNorm.bias"), &[hidden]);
        }
        all
    }

    /// Returns the columns of a head.
    pub(super) fn head_size(&self) -> usize {
        self.hidden / self.heads
    }
}

const CALL: &str = "Encoder::load";

/// Returns which of the ways to pool is set, by sentence-transformers' names.
fn pooling(file: &JsonFile) -> Result<Pooling> {
    let keys = file.json.as_object().into_iter().flatten();
    let set = keys
        .filter(|(key, value)| key.starts_with("pooling_mode_") && value.as_bool().unwrap_or(true));
    let set: Vec<&str> = set.map(|(key, _)| key.as_str()).collect();
    match set[..] {
        ["pooling_mode_mean_tokens"] => Ok(Pooling::Mean),
        ["pooling_mode_cls_token"] => Ok(Pooling::First),
        _ => {
            let problem = format!("pooling by {set:?} is not supported");
            let help = "supported is either `pooling_mode_mean_tokens` or `pooling_mode_cls_token`";
            Err(file.error(problem, help))
        }
    }
}

/// Returns whether the length of vectors becomes 1. Modules that would change them otherwise are
/// rejected.
fn is_normalised(file: &JsonFile) -> Result<bool> {
    let Some(modules) = file.json.as_array() else {
        return Err(file.error("is not an array of modules", "download the file again"));
    };
    let mut is_normalised = false;
    for module in modules {
        let name = module["type"].as_str().unwrap_or_default();
        match name.rsplit('.').next().unwrap_or_default() {
            "Transformer" | "Pooling" => {}
            "Normalize" => is_normalised = true,
            _ => {
                let problem = format!("the module {} is not supported", module["type"]);
                return Err(file.error(problem, "supported are Transformer, Pooling, Normalize"));
            }
        }
    }
    Ok(is_normalised)
}
