//! Files of weights and tokenizers: reading, damaged files, loading by path, and real models.

mod expected;
mod files;
mod gguf;
mod hostile;
mod real_files;
mod safetensors;
mod state_dict;
mod tokenizers;
