//! The command line of `scry model`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::DeviceSelection;
use crate::help;

/// Actions of `scry model`.
#[derive(Debug, Subcommand)]
pub enum Model {
    /// Print architecture, element types, sizes and tokenizer of a model, and its tensors.
    #[command(help_template = help::TEMPLATE)]
    #[command(before_help = help::MODEL_INFO_EXAMPLES, after_help = help::MODEL_INFO)]
    Info(ModelInfo),
    /// Print the lines of a text file whose meaning is the most similar to a query.
    #[command(help_template = help::TEMPLATE)]
    #[command(before_help = help::MODEL_SEARCH_EXAMPLES, after_help = help::MODEL_SEARCH)]
    Search(ModelSearch),
    /// Print the reply of a language model to a prompt, and its speed.
    #[command(help_template = help::TEMPLATE)]
    #[command(before_help = help::MODEL_GENERATE_EXAMPLES, after_help = help::MODEL_GENERATE)]
    Generate(ModelGenerate),
}

/// Arguments of `scry model info`.
#[derive(Debug, Args)]
pub struct ModelInfo {
    /// File in the format safetensors or GGUF, or a folder with one.
    pub file: PathBuf,
}

/// Arguments of `scry model search`.
#[derive(Debug, Args)]
pub struct ModelSearch {
    /// Folder of a sentence encoder of the BERT family.
    pub model: PathBuf,
    /// Text file.
    pub file: PathBuf,
    /// What to search for.
    pub query: String,
    /// The most lines to print.
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 5)]
    pub count: usize,
    /// The device.
    #[command(flatten)]
    pub device: DeviceSelection,
}

/// Arguments of `scry model generate`.
#[derive(Debug, Args)]
pub struct ModelGenerate {
    /// GGUF file of a model of the Llama family, or a folder with safetensors.
    pub file: PathBuf,
    /// The prompt.
    pub prompt: String,
    /// Continue the prompt itself, without the chat template.
    #[arg(long)]
    pub raw: bool,
    /// The most tokens to generate.
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 256)]
    pub max_tokens: usize,
    /// Temperature; 0 chooses the most likely tokens.
    #[arg(long, value_name = "NUMBER", default_value_t = 0.0)]
    pub temperature: f32,
    /// Number of candidates, the most likely tokens.
    #[arg(long, value_name = "COUNT", default_value_t = 40)]
    pub top_k: usize,
    /// Sum of the probabilities of the candidates that remain.
    #[arg(long, value_name = "SUM", default_value_t = 1.0)]
    pub top_p: f32,
    /// Least probability of candidates that remain, as a part of the largest.
    #[arg(long, value_name = "PART", default_value_t = 0.0)]
    pub min_p: f32,
    /// By how much recent tokens become less likely; 1 is not at all.
    #[arg(long, value_name = "NUMBER", default_value_t = 1.0)]
    pub repetition_penalty: f32,
    /// Seed of random numbers.
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub seed: u32,
    /// Text at which generation ends; can be repeated.
    #[arg(long, value_name = "TEXT")]
    pub stop: Vec<String>,
    /// The most tokens of prompt and text.
    #[arg(long, value_name = "COUNT")]
    pub context: Option<usize>,
    /// The device.
    #[command(flatten)]
    pub device: DeviceSelection,
}
