//! Files of weights and tokenizers: reading, damaged files, loading by path, and real models.

mod allocations;
mod files;
mod gguf;
mod hostile;
mod real_files;
mod safetensors;
mod state_dict;
mod support;
mod tokenizers;
