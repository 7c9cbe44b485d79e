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
    /// Semantic search: print the lines of a text file that are most similar in meaning to a query.
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
    /// safetensors or GGUF file, or a folder with one.
    pub file: PathBuf,
}

/// Arguments of `scry model search`.
#[derive(Debug, Args)]
pub struct ModelSearch {
    /// Folder of a text embedding model of the BERT family: config.json, tokenizer.json and
    /// safetensors.
    pub model: PathBuf,
    /// Text file, searched line by line.
    pub file: PathBuf,
    /// What to search for.
    pub query: String,
    /// Maximum number of lines to print.
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
    /// Maximum number of tokens to generate.
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 256)]
    pub max_tokens: usize,
    /// Sampling temperature; 0 is greedy decoding.
    #[arg(long, value_name = "NUMBER", default_value_t = 0.0)]
    pub temperature: f32,
    /// Top-k: sample among the COUNT most likely tokens, at most 1024.
    #[arg(long, value_name = "COUNT", default_value_t = 40)]
    pub top_k: usize,
    /// Top-p (nucleus sampling): keep the most likely tokens whose probabilities add up to P; 1
    /// keeps all.
    #[arg(long, value_name = "P", default_value_t = 1.0)]
    pub top_p: f32,
    /// Min-p: drop tokens less likely than P times the most likely one; 0 keeps all.
    #[arg(long, value_name = "P", default_value_t = 0.0)]
    pub min_p: f32,
    /// Repetition penalty: divides the logits of recent tokens; 1 disables it.
    #[arg(long, value_name = "NUMBER", default_value_t = 1.0)]
    pub repetition_penalty: f32,
    /// Seed of the random number generator.
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub seed: u32,
    /// Stop string: generation ends before it; can be repeated.
    #[arg(long, value_name = "TEXT")]
    pub stop: Vec<String>,
    /// Size of the context (KV cache) in tokens, for prompt and reply together; by default 2048, or
    /// that of the model if it is smaller.
    #[arg(long, visible_alias = "ctx-size", value_name = "COUNT")]
    pub context: Option<usize>,
    /// The device.
    #[command(flatten)]
    pub device: DeviceSelection,
}
