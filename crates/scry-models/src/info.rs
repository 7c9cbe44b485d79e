//! What a file of a model has, for tools.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use crate::error::Result;
use crate::tokenizer::Tokenizer;
use crate::weights::{FileFormat, StoredType, Weights};

/// The file beside safetensors files that describes the model.
const CONFIG: &str = "config.json";
/// The file beside safetensors files that has the tokenizer.
const TOKENIZER: &str = "tokenizer.json";
/// The maximum size of a configuration file in bytes.
const MAX_CONFIG_BYTES: u64 = 16 << 20;

/// What the files of a model have: architecture, sizes, types and tokenizer. The data of tensors is
/// not read.
///
/// ```no_run
/// let info = scry_models::ModelInfo::open("models/SmolLM2-135M-Instruct.Q4_1.gguf")?;
/// assert_eq!(info.architecture.as_deref(), Some("llama"));
/// println!("{} parameters in {} bytes", info.parameters, info.bytes);
/// # Ok::<(), scry_models::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct ModelInfo {
    /// The weights, opened.
    pub weights: Weights,
    /// The architecture: of GGUF, `general.architecture`; of safetensors, that of `config.json`
    /// beside the file.
    pub architecture: Option<String>,
    /// The name of the model, of GGUF files.
    pub name: Option<String>,
    /// The number of elements of all tensors.
    pub parameters: u64,
    /// The size of the data of all tensors in bytes.
    pub bytes: u64,
    /// The element types, the one with most bytes first.
    pub types: Vec<TypeSummary>,
    /// The tokenizer, in the file or beside it; an error if it is not supported.
    pub tokenizer: Option<Result<Tokenizer>>,
}

/// The tensors of one type.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct TypeSummary {
    /// The type.
    pub stored_type: StoredType,
    /// The number of tensors.
    pub tensors: usize,
    /// The number of elements of these tensors.
    pub parameters: u64,
    /// Their size in bytes.
    pub bytes: u64,
}

impl ModelInfo {
    /// Opens weights as [`Weights::open`] does, and the tokenizer.
    ///
    /// ```no_run
    /// let info = scry_models::ModelInfo::open("model.safetensors")?;
    /// for summary in &info.types {
    ///     println!("{} tensors of {}", summary.tensors, summary.stored_type);
    /// }
    /// # Ok::<(), scry_models::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Weights::open`]. What is beside the weights and cannot be read is left out; an error of
    /// the tokenizer is in [`tokenizer`](Self::tokenizer).
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let weights = Weights::open(path)?;
        let metadata = weights.metadata();
        let folder = weights.files().next().and_then(Path::parent).map(Path::to_owned);
        let text = |key: &str| metadata.find::<&str>(key).ok().flatten().map(str::to_owned);
        let (architecture, name, tokenizer) = match weights.format() {
            FileFormat::Gguf => {
                let has_tokenizer = metadata.get("tokenizer.ggml.model").is_some();
                let tokenizer = has_tokenizer.then(|| Tokenizer::from_metadata(metadata));
                (text("general.architecture"), text("general.name"), tokenizer)
            }
            FileFormat::Safetensors => {
                let folder = folder.unwrap_or_default();
                let path = Some(folder.join(TOKENIZER)).filter(|path| path.is_file());
                (architecture(folder.join(CONFIG)), None, path.map(Tokenizer::from_file))
            }
        };
        let types = types(&weights);
        let parameters = types.iter().map(|it| it.parameters).sum();
        let bytes = types.iter().map(|it| it.bytes).sum();
        Ok(Self { weights, architecture, name, parameters, bytes, types, tokenizer })
    }
}

/// Returns the architecture that a description states.
fn architecture(path: PathBuf) -> Option<String> {
    fs::metadata(&path).ok().filter(|file| file.is_file() && file.len() <= MAX_CONFIG_BYTES)?;
    let config: Json = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
    let name = config["architectures"][0].as_str().or_else(|| config["model_type"].as_str());
    name.map(str::to_owned)
}

/// Returns the types of tensors.
fn types(weights: &Weights) -> Vec<TypeSummary> {
    let mut types: Vec<TypeSummary> = Vec::new();
    for tensor in weights.tensors() {
        let stored_type = tensor.stored_type();
        let position = types.iter().position(|it| it.stored_type == stored_type);
        let position = position.unwrap_or_else(|| {
            types.push(TypeSummary { stored_type, tensors: 0, parameters: 0, bytes: 0 });
            types.len() - 1
        });
        let summary = &mut types[position];
        summary.tensors += 1;
        summary.parameters += tensor.shape().iter().map(|size| *size as u64).product::<u64>();
        summary.bytes += tensor.byte_size();
    }
    types.sort_by_key(|it| std::cmp::Reverse(it.bytes));
    types
}
