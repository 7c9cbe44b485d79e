//! A tiny Llama with random weights: its files, and plain loops that compute it.

use std::path::Path;

use serde_json::json;

use crate::files::{Gguf, Named, Stored, write_safetensors};
use crate::support::{Matrix, Random, add, attend};

const HIDDEN: usize = 64;
const HEADS: usize = 4;
const KV_HEADS: usize = 2;
const COLUMNS: usize = HIDDEN / HEADS;
const LAYERS: usize = 2;
const INTERMEDIATE: usize = 96;
/// All bytes, and special tokens.
pub(crate) const VOCABULARY: usize = 256 + 4;
pub(crate) const END: u32 = 257;
const EPSILON: f32 = 1e-5;
const THETA: f32 = 100.0;

/// A model as it was written: its weights by their names in PyTorch.
pub(crate) struct Llama {
    weights: Vec<(String, Matrix)>,
    is_interleaved: bool,
}

/// Weights in the order of both formats: the names of PyTorch and of GGUF, and the shape.
fn weights() -> Vec<(String, String, Vec<usize>)> {
    let table = vec![VOCABULARY, HIDDEN];
    let mut all = vec![("model.embed_tokens".to_owned(), "token_embd".to_owned(), table)];
    let kv = KV_HEADS * COLUMNS;
    let parts = [
        ("self_attn.q_proj", "attn_q", vec![HIDDEN, HIDDEN]),
        ("self_attn.k_proj", "attn_k", vec![kv, HIDDEN]),
        ("self_attn.v_proj", "attn_v", vec![kv, HIDDEN]),
        ("self_attn.o_proj", "attn_output", vec![HIDDEN, HIDDEN]),
        ("mlp.gate_proj", "ffn_gate", vec![INTERMEDIATE, HIDDEN]),
        ("mlp.up_proj", "ffn_up", vec![INTERMEDIATE, HIDDEN]),
        ("mlp.down_proj", "ffn_down", vec![HIDDEN, INTERMEDIATE]),
        ("input_layernorm", "attn_norm", vec![HIDDEN]),
        ("post_attention_layernorm", "ffn_norm", vec![HIDDEN]),
    ];
    for layer in 0..LAYERS {
        for (name, gguf, shape) in &parts {
            let path = format!("model.layers.{layer}.{name}");
            all.push((path, format!("blk.{layer}.{gguf}"), shape.clone()));
        }
    }
    all.push(("model.norm".to_owned(), "output_norm".to_owned(), vec![HIDDEN]));
    all
}

fn random_weight(random: &mut Random, shape: &[usize]) -> Vec<f32> {
    let count = shape.iter().product();
    match shape.len() {
        1 => random.numbers(count, 0.2).iter().map(|it| it + 1.0).collect(),
        _ => random.numbers(count, 0.3),
    }
}

impl Llama {
    /// Writes a GGUF file with layers and embeddings of two types.
    pub(crate) fn write_gguf(seed: u64, stored: [Stored; 2], path: &Path) -> Self {
        Self::write_gguf_with(seed, stored, path, |_| {})
    }

    /// As [`write_gguf`](Self::write_gguf), with more metadata.
    pub(crate) fn write_gguf_with(
        seed: u64,
        [layers, table]: [Stored; 2],
        path: &Path,
        more: impl FnOnce(&mut Gguf),
    ) -> Self {
        let mut file = Gguf::default();
        file.text("general.architecture", "llama");
        for (key, value) in [
            ("embedding_length", HIDDEN),
            ("block_count", LAYERS),
            ("attention.head_count", HEADS),
            ("attention.head_count_kv", KV_HEADS),
            ("feed_forward_length", INTERMEDIATE),
            ("context_length", 4096),
            ("rope.dimension_count", COLUMNS),
        ] {
            file.number(&format!("llama.{key}"), value as u32);
        }
        file.float("llama.attention.layer_norm_rms_epsilon", EPSILON);
        file.float("llama.rope.freq_base", THETA);
        write_tokenizer(&mut file);
        more(&mut file);
        let mut random = Random(seed);
        let mut kept = Vec::new();
        for (name, gguf, shape) in weights() {
            let numbers = random_weight(&mut random, &shape);
            let stored = match shape.len() {
                1 => Stored::F32,
                _ if gguf == "token_embd" => table,
                _ => layers,
            };
            let (columns, name_in_file) = (shape[shape.len() - 1], format!("{gguf}.weight"));
            let read = file.tensor(stored, &Named { name: name_in_file, shape, numbers });
            kept.push((name, Matrix::new(columns, &read)));
        }
        file.write(path);
        Self { weights: kept, is_interleaved: true }
    }

    /// Writes a folder of safetensors.
    pub(crate) fn write_safetensors(seed: u64, folder: &Path) -> Self {
        let mut random = Random(seed);
        let (mut tensors, mut kept) = (Vec::new(), Vec::new());
        for (name, _, shape) in weights() {
            let numbers = random_weight(&mut random, &shape);
            kept.push((name.clone(), Matrix::new(shape[shape.len() - 1], &numbers)));
            tensors.push(Named { name: format!("{name}.weight"), shape, numbers });
        }
        write_safetensors(&folder.join("model.safetensors"), &tensors);
        let config = json!({
            "model_type": "llama", "hidden_size": HIDDEN, "num_hidden_layers": LAYERS,
            "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS,
            "intermediate_size": INTERMEDIATE, "vocab_size": VOCABULARY,
            "max_position_embeddings": 4096, "rms_norm_eps": EPSILON, "rope_theta": THETA,
            "tie_word_embeddings": true,
        });
        let write = |name: &str, value: serde_json::Value| {
            std::fs::write(folder.join(name), value.to_string()).expect("a writable folder");
        };
        write("config.json", config);
        let mut vocabulary = json!({});
        (0..VOCABULARY).for_each(|id| vocabulary[format!("t{id}")] = json!(id));
        write(
            "tokenizer.json",
            json!({
                "version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
                "normalizer": null, "pre_tokenizer": {"type": "Whitespace"},
                "post_processor": null, "decoder": null,
                "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "t0"},
            }),
        );
        Self { weights: kept, is_interleaved: false }
    }

    fn get(&self, name: &str) -> &Matrix {
        let found = self.weights.iter().find(|(own, _)| own == name);
        &found.expect("a weight of this name").1
    }

    fn norm(&self, name: &str, x: &[f64]) -> Vec<f64> {
        let mean = x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64;
        let scale = 1.0 / (mean + f64::from(EPSILON)).sqrt();
        x.iter().zip(&self.get(name).numbers).map(|(x, w)| x * scale * w).collect()
    }

    /// Rotates the pairs of columns of a head.
    fn rotate(&self, head: &[f64], position: usize) -> Vec<f64> {
        let half = COLUMNS / 2;
        let mut rotated = head.to_vec();
        for pair in 0..half {
            let angle = position as f64 * f64::from(THETA).powf(-(pair as f64) / half as f64);
            let (a, b) = match self.is_interleaved {
                true => (2 * pair, 2 * pair + 1),
                false => (pair, pair + half),
            };
            rotated[a] = head[a] * angle.cos() - head[b] * angle.sin();
            rotated[b] = head[b] * angle.cos() + head[a] * angle.sin();
        }
        rotated
    }

    /// Returns the scores of the next token.
    pub(crate) fn logits(&self, tokens: &[u32]) -> Vec<f64> {
        let table = self.get("model.embed_tokens");
        let mut rows: Vec<Vec<f64>> =
            tokens.iter().map(|token| table.row(*token as usize).to_vec()).collect();
        for layer in 0..LAYERS {
            rows = self.layer(&format!("model.layers.{layer}"), &rows);
        }
        table.times(&self.norm("model.norm", &rows[rows.len() - 1]))
    }

    fn layer(&self, path: &str, rows: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let product = |name: &str, x: &[f64]| self.get(&format!("{path}.{name}")).times(x);
        let norm = |name: &str, x: &[f64]| self.norm(&format!("{path}.{name}"), x);
        let normed: Vec<Vec<f64>> = rows.iter().map(|row| norm("input_layernorm", row)).collect();
        let rotated = |name: &str| -> Vec<Vec<f64>> {
            let heads = |(position, row): (usize, &Vec<f64>)| {
                let row = product(name, row);
                let rotate = |head: &[f64]| self.rotate(head, position);
                row.chunks_exact(COLUMNS).flat_map(rotate).collect()
            };
            normed.iter().enumerate().map(heads).collect()
        };
        let (q, k) = (rotated("self_attn.q_proj"), rotated("self_attn.k_proj"));
        let v: Vec<Vec<f64>> = normed.iter().map(|row| product("self_attn.v_proj", row)).collect();
        let mut next = Vec::new();
        for (position, row) in rows.iter().enumerate() {
            let head = |head: usize| {
                let own = head * COLUMNS..(head + 1) * COLUMNS;
                let kv = head / (HEADS / KV_HEADS);
                let shared = kv * COLUMNS..(kv + 1) * COLUMNS;
                let seen = |all: &'_ [Vec<f64>]| -> Vec<Vec<f64>> {
                    all[..=position].iter().map(|row| row[shared.clone()].to_vec()).collect()
                };
                let (keys, values) = (seen(&k), seen(&v));
                let keys: Vec<&[f64]> = keys.iter().map(Vec::as_slice).collect();
                let values: Vec<&[f64]> = values.iter().map(Vec::as_slice).collect();
                attend(&q[position][own], &keys, &values)
            };
            let seen: Vec<f64> = (0..HEADS).flat_map(head).collect();
            let row = add(row, &product("self_attn.o_proj", &seen));
            let x = norm("post_attention_layernorm", &row);
            let (gate, up) = (product("mlp.gate_proj", &x), product("mlp.up_proj", &x));
            let silu = |x: &f64| x / (1.0 + (-x).exp());
            let gated: Vec<f64> = gate.iter().map(silu).zip(&up).map(|(a, b)| a * b).collect();
            next.push(add(&row, &product("mlp.down_proj", &gated)));
        }
        next
    }
}

/// Writes a tokenizer of single bytes, and special tokens.
fn write_tokenizer(file: &mut Gguf) {
    file.text("tokenizer.ggml.model", "gpt2");
    file.text("tokenizer.ggml.pre", "gpt-2");
    let mut tokens: Vec<String> = (0..=255).map(|byte| byte_character(byte).to_string()).collect();
    tokens.extend(["<|start|>", "<|end|>", "<|user|>", "<|other|>"].map(str::to_owned));
    let kinds: Vec<i32> = (0..VOCABULARY).map(|id| if id < 256 { 1 } else { 3 }).collect();
    file.texts("tokenizer.ggml.tokens", &tokens);
    file.numbers("tokenizer.ggml.token_type", &kinds);
    file.texts("tokenizer.ggml.merges", &[]);
    file.number("tokenizer.ggml.bos_token_id", 256);
    file.number("tokenizer.ggml.eos_token_id", END);
    let template = "{% for m in messages %}<|{{ 'user' if m.role == 'user' else 'other' }}|>\
                    {{ m.content }}<|end|>{% endfor %}\
                    {% if add_generation_prompt %}<|other|>{% endif %}";
    file.text("tokenizer.chat_template", template);
}

/// Returns the character that GPT-2's tokenizers write for a byte.
pub(crate) fn byte_character(byte: u8) -> char {
    let is_printed = |byte: u8| matches!(byte, 33..=126 | 161..=172 | 174..=255);
    match is_printed(byte) {
        true => char::from(byte),
        false => {
            let others = (0..byte).filter(|byte| !is_printed(*byte)).count() as u32;
            char::from_u32(256 + others).expect("a character")
        }
    }
}
