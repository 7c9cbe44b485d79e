//! A tiny BERT with random weights: its files, and plain loops that compute it.

use std::path::Path;

use serde_json::json;

use crate::files::{Named, write_safetensors};
use crate::support::{Matrix, Random, add, attend};

pub(crate) const HIDDEN: usize = 32;
const HEADS: usize = 4;
const LAYERS: usize = 2;
const INTERMEDIATE: usize = 48;
pub(crate) const VOCABULARY: usize = 40;
pub(crate) const POSITIONS: usize = 24;
const EPSILON: f64 = 1e-12;

/// The weights by name.
pub(crate) struct Bert {
    tensors: Vec<Named>,
}

impl Bert {
    pub(crate) fn random(seed: u64) -> Self {
        let mut random = Random(seed);
        let mut tensors = Vec::new();
        let mut matrix = |name: &str, shape: &[usize], scale: f32, shift: f32| {
            let numbers = random.numbers(shape.iter().product(), scale);
            let numbers = numbers.iter().map(|it| it + shift).collect();
            tensors.push(Named { name: name.to_owned(), shape: shape.to_vec(), numbers });
        };
        let tables = [("word", VOCABULARY), ("position", POSITIONS), ("token_type", 2)];
        for (table, rows) in tables {
            matrix(&format!("embeddings.{table}_embeddings.weight"), &[rows, HIDDEN], 1.0, 0.0);
        }
        let mut norms = vec!["embeddings.LayerNorm".to_owned()];
        for layer in 0..LAYERS {
            let path = format!("encoder.layer.{layer}");
            let square = ["self.query", "self.key", "self.value", "output.dense"];
            for name in square {
                let path = format!("{path}.attention.{name}");
                matrix(&format!("{path}.weight"), &[HIDDEN, HIDDEN], 0.4, 0.0);
                matrix(&format!("{path}.bias"), &[HIDDEN], 0.3, 0.0);
            }
            for (name, [rows, columns]) in
                [("intermediate", [INTERMEDIATE, HIDDEN]), ("output", [HIDDEN, INTERMEDIATE])]
            {
                let path = format!("{path}.{name}.dense");
                matrix(&format!("{path}.weight"), &[rows, columns], 0.3, 0.0);
                matrix(&format!("{path}.bias"), &[rows], 0.3, 0.0);
            }
            norms.push(format!("{path}.attention.output.LayerNorm"));
            norms.push(format!("{path}.output.LayerNorm"));
        }
        for norm in norms {
            matrix(&format!("{norm}.weight"), &[HIDDEN], 0.2, 1.0);
            matrix(&format!("{norm}.bias"), &[HIDDEN], 0.2, 0.0);
        }
        // Models have it, and encoders do not need it.
        matrix("pooler.dense.weight", &[HIDDEN, HIDDEN], 1.0, 0.0);
        Self { tensors }
    }

    /// Writes the files of a model.
    pub(crate) fn write(&self, folder: &Path) {
        write_safetensors(&folder.join("model.safetensors"), &self.tensors);
        let write = |name: &str, value: serde_json::Value| {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a writable folder");
            std::fs::write(path, value.to_string()).expect("a writable folder");
        };
        write(
            "config.json",
            json!({
                "model_type": "bert", "hidden_size": HIDDEN, "num_hidden_layers": LAYERS,
                "num_attention_heads": HEADS, "intermediate_size": INTERMEDIATE,
                "vocab_size": VOCABULARY, "max_position_embeddings": POSITIONS,
                "type_vocab_size": 2, "hidden_act": "gelu", "layer_norm_eps": EPSILON,
            }),
        );
        write("sentence_bert_config.json", json!({"max_seq_length": 20}));
        write("1_Pooling/config.json", json!({"pooling_mode_mean_tokens": true}));
        let norm = "sentence_transformers.models.Normalize";
        write("modules.json", json!([{"idx": 0, "type": norm}]));
        write("tokenizer.json", tokenizer());
    }

    fn get(&self, name: &str) -> Matrix {
        let found = self.tensors.iter().find(|tensor| tensor.name == name);
        let tensor = found.expect("a weight of this name");
        Matrix::new(tensor.shape[tensor.shape.len() - 1], &tensor.numbers)
    }

    fn linear(&self, name: &str, x: &[f64]) -> Vec<f64> {
        let bias = self.get(&format!("{name}.bias"));
        add(&self.get(&format!("{name}.weight")).times(x), &bias.numbers)
    }

    fn norm(&self, name: &str, x: &[f64]) -> Vec<f64> {
        let count = x.len() as f64;
        let mean = x.iter().sum::<f64>() / count;
        let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
        let (weight, bias) =
            (self.get(&format!("{name}.weight")), self.get(&format!("{name}.bias")));
        let scaled = x.iter().map(|x| (x - mean) / (variance + EPSILON).sqrt());
        let weighted: Vec<f64> = scaled.zip(&weight.numbers).map(|(x, w)| x * w).collect();
        add(&weighted, &bias.numbers)
    }

    /// Returns the vector of tokens, with length 1.
    pub(crate) fn vector(&self, tokens: &[u32]) -> Vec<f64> {
        let mean = self.pooled(tokens, true);
        let length = mean.iter().map(|x| x * x).sum::<f64>().sqrt();
        mean.iter().map(|x| x / length).collect()
    }

    /// Returns the mean of the vectors of tokens, or that of the first one.
    pub(crate) fn pooled(&self, tokens: &[u32], is_mean: bool) -> Vec<f64> {
        let table = |name: &str| self.get(&format!("embeddings.{name}_embeddings.weight"));
        let [words, positions, types] = ["word", "position", "token_type"].map(table);
        let embed = |(position, token): (usize, &u32)| {
            let sum = add(words.row(*token as usize), positions.row(position));
            self.norm("embeddings.LayerNorm", &add(&sum, types.row(0)))
        };
        let mut rows: Vec<Vec<f64>> = tokens.iter().enumerate().map(embed).collect();
        for layer in 0..LAYERS {
            rows = self.layer(&format!("encoder.layer.{layer}"), &rows);
        }
        if !is_mean {
            return rows.remove(0);
        }
        let mut sum = vec![0.0; HIDDEN];
        rows.iter().for_each(|row| sum = add(&sum, row));
        sum.iter().map(|x| x / rows.len() as f64).collect()
    }

    fn layer(&self, path: &str, rows: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let all = |name: &str| -> Vec<Vec<f64>> {
            let path = format!("{path}.attention.self.{name}");
            rows.iter().map(|row| self.linear(&path, row)).collect()
        };
        let [q, k, v] = ["query", "key", "value"].map(all);
        let columns = HIDDEN / HEADS;
        let mut next = Vec::new();
        for (row, query) in rows.iter().zip(&q) {
            let head = |head: usize| {
                let part = head * columns..(head + 1) * columns;
                let keys: Vec<&[f64]> = k.iter().map(|row| &row[part.clone()]).collect();
                let values: Vec<&[f64]> = v.iter().map(|row| &row[part.clone()]).collect();
                attend(&query[part.clone()], &keys, &values)
            };
            let seen: Vec<f64> = (0..HEADS).flat_map(head).collect();
            let seen = self.linear(&format!("{path}.attention.output.dense"), &seen);
            let row = self.norm(&format!("{path}.attention.output.LayerNorm"), &add(row, &seen));
            let up = self.linear(&format!("{path}.intermediate.dense"), &row);
            let up: Vec<f64> = up.iter().map(|x| gelu(*x)).collect();
            let down = self.linear(&format!("{path}.output.dense"), &up);
            next.push(self.norm(&format!("{path}.output.LayerNorm"), &add(&row, &down)));
        }
        next
    }
}

fn gelu(x: f64) -> f64 {
    x * (1.0 + erf(x / std::f64::consts::SQRT_2)) / 2.0
}

/// The error function, by its series: arguments are small.
fn erf(x: f64) -> f64 {
    let (mut sum, mut term) = (x, x);
    for n in 1..200 {
        let n = f64::from(n);
        term *= -x * x / n;
        sum += term / (2.0 * n + 1.0);
    }
    sum * 2.0 / std::f64::consts::PI.sqrt()
}

/// A tokenizer of words `w0`, `w1`, ….
fn tokenizer() -> serde_json::Value {
    let mut vocabulary = json!({"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3});
    for id in 4..VOCABULARY {
        vocabulary[format!("w{id}")] = json!(id);
    }
    let special = |name: &str, id: usize| json!({"id": name, "ids": [id], "tokens": [name]});
    let token = |name: &str| json!({"SpecialToken": {"id": name, "type_id": 0}});
    let text = json!({"Sequence": {"id": "A", "type_id": 0}});
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
        "normalizer": null, "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [token("[CLS]"), text, token("[SEP]")],
            "pair": [token("[CLS]"), text, token("[SEP]")],
            "special_tokens": {"[CLS]": special("[CLS]", 2), "[SEP]": special("[SEP]", 3)},
        },
        "decoder": null,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
    })
}
