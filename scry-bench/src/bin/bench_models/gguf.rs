//! A GGUF file of SmolLM2's shape with random weights.

use std::path::Path;

use anyhow::Result;

const HIDDEN: usize = 576;
const KV: usize = 192;
const INTERMEDIATE: usize = 1536;
pub const VOCABULARY: usize = 49152;

/// The types of tensors, by their numbers in the format.
const F32: u32 = 0;
const Q4_1: u32 = 3;
const Q8_0: u32 = 8;

/// Writes the file: layers of `Q4_1`, norms of `f32`, and embeddings of `Q8_0`.
pub fn write(path: &Path, layers: usize) -> Result<()> {
    let mut file = File { random: 1, ..File::default() };
    file.text("general.architecture", "llama");
    for (key, value) in [
        ("embedding_length", HIDDEN),
        ("block_count", layers),
        ("attention.head_count", 9),
        ("attention.head_count_kv", 3),
        ("feed_forward_length", INTERMEDIATE),
        ("context_length", 8192),
    ] {
        file.key(&format!("llama.{key}"), 4, &(value as u32).to_le_bytes());
    }
    file.key("llama.attention.layer_norm_rms_epsilon", 6, &1e-5f32.to_le_bytes());
    file.key("llama.rope.freq_base", 6, &1e5f32.to_le_bytes());
    file.text("tokenizer.ggml.model", "gpt2");
    file.text("tokenizer.ggml.pre", "gpt-2");
    let tokens: Vec<String> = (0..VOCABULARY).map(|id| format!("t{id}")).collect();
    file.texts("tokenizer.ggml.tokens", &tokens);
    file.texts("tokenizer.ggml.merges", &[]);
    file.tensor("token_embd.weight", &[VOCABULARY, HIDDEN], Q8_0);
    file.tensor("output_norm.weight", &[HIDDEN], F32);
    for layer in 0..layers {
        for (name, shape) in [
            ("attn_q", [HIDDEN, HIDDEN]),
            ("attn_k", [KV, HIDDEN]),
            ("attn_v", [KV, HIDDEN]),
            ("attn_output", [HIDDEN, HIDDEN]),
            ("ffn_gate", [INTERMEDIATE, HIDDEN]),
            ("ffn_up", [INTERMEDIATE, HIDDEN]),
            ("ffn_down", [HIDDEN, INTERMEDIATE]),
        ] {
            file.tensor(&format!("blk.{layer}.{name}.weight"), &shape, Q4_1);
        }
        for name in ["attn_norm", "ffn_norm"] {
            file.tensor(&format!("blk.{layer}.{name}.weight"), &[HIDDEN], F32);
        }
    }
    file.write(path)
}

#[derive(Default)]
struct File {
    metadata: Vec<u8>,
    keys: u64,
    infos: Vec<u8>,
    tensors: u64,
    data: Vec<u8>,
    random: u32,
}

impl File {
    fn key(&mut self, key: &str, kind: u32, value: &[u8]) {
        put(&mut self.metadata, key);
        self.metadata.extend(kind.to_le_bytes());
        self.metadata.extend(value);
        self.keys += 1;
    }

    fn text(&mut self, key: &str, value: &str) {
        let mut bytes = Vec::new();
        put(&mut bytes, value);
        self.key(key, 8, &bytes);
    }

    fn texts(&mut self, key: &str, values: &[String]) {
        let mut bytes = 8u32.to_le_bytes().to_vec();
        bytes.extend((values.len() as u64).to_le_bytes());
        values.iter().for_each(|value| put(&mut bytes, value));
        self.key(key, 9, &bytes);
    }

    fn bits(&mut self) -> u32 {
        self.random = self.random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.random >> 8
    }

    fn tensor(&mut self, name: &str, shape: &[usize], kind: u32) {
        put(&mut self.infos, name);
        self.infos.extend((shape.len() as u32).to_le_bytes());
        self.infos.extend(shape.iter().rev().flat_map(|size| (*size as u64).to_le_bytes()));
        self.infos.extend(kind.to_le_bytes());
        self.infos.extend((self.data.len() as u64).to_le_bytes());
        self.tensors += 1;
        let count: usize = shape.iter().product();
        let half = |x: f32| half::f16::from_f32(x).to_le_bytes();
        match kind {
            F32 => self.data.extend((0..count).flat_map(|_| 1f32.to_le_bytes())),
            _ => {
                // Weights are about as large as those of a trained model.
                let (scales, bytes) = match kind {
                    Q4_1 => ([half(0.01), half(-0.075)].concat(), 16),
                    _ => (half(0.0005).to_vec(), 32),
                };
                for _ in 0..count / 32 {
                    self.data.extend(&scales);
                    for _ in 0..bytes {
                        let byte = self.bits() as u8;
                        self.data.push(byte);
                    }
                }
            }
        }
        self.data.resize(self.data.len().next_multiple_of(32), 0);
    }

    fn write(self, path: &Path) -> Result<()> {
        let mut file = b"GGUF".to_vec();
        file.extend(3u32.to_le_bytes());
        file.extend(self.tensors.to_le_bytes());
        file.extend(self.keys.to_le_bytes());
        file.extend(self.metadata);
        file.extend(self.infos);
        file.resize(file.len().next_multiple_of(32), 0);
        file.extend(self.data);
        Ok(std::fs::write(path, file)?)
    }
}

fn put(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend((text.len() as u64).to_le_bytes());
    bytes.extend(text.bytes());
}
