//! The decoder: scores, the cache, sampling, and how generation ends.

use std::path::PathBuf;

use scry_gpu::BackendKind;
use scry_models::{DType, Decoder, Device, ErrorKind, Message, Sampling, StopReason};
use scry_test_support::on_each_device;

use crate::files::Stored;
use crate::llama::{END, Llama, VOCABULARY};
use crate::support::{Random, distance, ok, supports};

/// A tiny model in a GGUF file.
pub(crate) struct Model {
    _folder: tempfile::TempDir,
    pub(crate) path: PathBuf,
    pub(crate) host: Llama,
}

pub(crate) fn model(stored: Stored) -> Model {
    mixed_model([stored, if stored == Stored::Q4_1 { Stored::Q8_0 } else { stored }])
}

/// Returns a model with layers and embeddings of two types.
fn mixed_model(stored: [Stored; 2]) -> Model {
    let folder = ok(tempfile::tempdir());
    let path = folder.path().join("model.gguf");
    let host = Llama::write_gguf(11, stored, &path);
    Model { _folder: folder, path, host }
}

pub(crate) fn cpu() -> Device {
    ok(Device::open("cpu"))
}

pub(crate) fn load(model: &Model, gpu: &Device) -> Decoder {
    let options = Decoder::options().capacity(96).cache_dtype(DType::F32);
    ok(options.load(&model.path, gpu))
}

pub(crate) fn tokens(seed: u64, count: usize) -> Vec<u32> {
    let mut random = Random(seed);
    (0..count).map(|_| random.below(256) as u32).collect()
}

/// Returns the tokens after a prompt that are the most likely ones on the host.
pub(crate) fn greedy(host: &Llama, prompt: &[u32], count: usize) -> Vec<u32> {
    let mut all = prompt.to_vec();
    for _ in 0..count {
        let logits = host.logits(&all);
        let (mut best, mut most) = (0, f64::NEG_INFINITY);
        for (token, score) in logits.iter().enumerate() {
            if *score > most {
                (best, most) = (token as u32, *score);
            }
        }
        all.push(best);
    }
    all.split_off(prompt.len())
}

/// Returns the tokens that a decoder adds to a prompt.
pub(crate) fn generated(
    decoder: &mut Decoder,
    prompt: &[u32],
    options: &Sampling,
) -> (Vec<u32>, StopReason) {
    let mut generation = ok(decoder.complete_tokens(prompt, options));
    generation.by_ref().for_each(|piece| drop(ok(piece)));
    let reason = generation.stop_reason().expect("the end has a reason");
    drop(generation);
    (decoder.context()[prompt.len()..].to_vec(), reason)
}

/// Per layer: a norm with the residual before it, queries with keys and values, RoPE with the write
/// of the cache, attention, the projection, a norm, gate with up, SwiGLU, and down, with which CUDA
/// computes SwiGLU.
#[test]
fn steps_have_nine_kernels_per_layer() {
    let model = mixed_model([Stored::Q4_1, Stored::Q8_0]);
    on_each_device(|gpu| {
        let mut decoder = load(&model, gpu);
        let sampling = Sampling::new().temperature(0.5).repetition_penalty(1.2);
        let wanted = if gpu.backend_kind() == BackendKind::Cuda { 8 } else { 9 };
        for (options, most) in [(Sampling::new(), 8), (sampling, 23)] {
            let report = ok(ok(decoder.step_plan(&options, 20)).explain());
            // Those of the last layer may be merged with operations after it.
            let count = report.kernels.iter().filter(|it| it.scope == "layer.0").count();
            assert_eq!(count, wanted, "on {}: {report}", gpu.name());
            let others = report.kernels.len() - 2 * wanted;
            assert!(others <= most, "{others} others on {}: {report}", gpu.name());
        }
    });
}

#[test]
fn scores_agree_with_host() {
    use Stored::{BF16, F16, F32, Q4_1, Q8_0};
    for stored in [[F32, F32], [Q4_1, Q8_0], [Q8_0, Q8_0], [F16, F16], [BF16, BF16], [Q4_1, F16]] {
        let model = mixed_model(stored);
        on_each_device(|gpu| {
            let mut decoder = load(&model, gpu);
            let tokens = tokens(1, 21);
            // Products with quantised weights round the activations on NVIDIA GPUs.
            let error = distance(&ok(decoder.logits(&tokens)), &model.host.logits(&tokens));
            assert!(error < 2e-2, "{stored:?} on {}: {error}", gpu.name());
            if gpu.backend_kind() == BackendKind::Cpu {
                assert!(error < 1e-4, "{stored:?}: {error}");
            }
        });
    }
}

#[test]
fn caches_of_16_bits_are_close() {
    let model = model(Stored::Q8_0);
    on_each_device(|gpu| {
        for (dtype, bound) in [(DType::F16, 1e-2), (DType::BF16, 8e-2)] {
            if !supports(gpu, dtype) {
                println!("skipped {dtype} on {}, which lacks it", gpu.name());
                continue;
            }
            let options = Decoder::options().capacity(96).cache_dtype(dtype);
            let mut decoder = ok(options.load(&model.path, gpu));
            let tokens = tokens(13, 40);
            ok(decoder.logits(&tokens[..39]));
            let error = distance(&ok(decoder.logits(&tokens)), &model.host.logits(&tokens));
            assert!(error < bound, "{dtype} on {}: {error}", gpu.name());
        }
    });
}

#[test]
fn long_prompts_are_computed_in_parts() {
    let model = model(Stored::Q8_0);
    let gpu = cpu();
    let mut decoder = ok(Decoder::options().capacity(600).load(&model.path, &gpu));
    let tokens = tokens(14, 513);
    // 256 rows at a time: two parts, and one after cached ones.
    for count in [300, 513] {
        let prompt = &tokens[..count];
        let error = distance(&ok(decoder.logits(prompt)), &model.host.logits(prompt));
        assert!(error < 1e-4, "{count} tokens: {error}");
    }
    ok(decoder.clear());
    // Three parts.
    let (found, _) = generated(&mut decoder, &tokens, &Sampling::new().max_tokens(2));
    assert_eq!(found, greedy(&model.host, &tokens, 2));
}

#[test]
fn scaled_positions_are_errors() {
    let folder = ok(tempfile::tempdir());
    let path = folder.path().join("model.gguf");
    let load = |more: &dyn Fn(&mut crate::files::Gguf)| {
        Llama::write_gguf_with(11, [Stored::Q8_0; 2], &path, more);
        Decoder::load(&path, &cpu()).map(drop)
    };
    let scaled = |more: &dyn Fn(&mut crate::files::Gguf)| load(more).unwrap_err().to_string();
    let error = scaled(&|file| file.text("llama.rope.scaling.type", "yarn"));
    assert!(error.contains("`llama.rope.scaling.type` is `yarn`"), "{error}");
    let error = scaled(&|file| file.float("llama.rope.scale_linear", 4.0));
    assert!(error.contains("`llama.rope.scale_linear` is 4"), "{error}");
    ok(load(&|file| file.text("llama.rope.scaling.type", "none")));
}

#[test]
fn safetensors_agree_with_host() {
    let folder = ok(tempfile::tempdir());
    let host = Llama::write_safetensors(12, folder.path());
    on_each_device(|gpu| {
        let options = Decoder::options().capacity(64).cache_dtype(DType::F32);
        let mut decoder = ok(options.load(folder.path(), gpu));
        let tokens = tokens(2, 9);
        let error = distance(&ok(decoder.logits(&tokens)), &host.logits(&tokens));
        assert!(error < 2e-3, "{error}");
    });
}

#[test]
fn cached_prompt_equals_one_pass() {
    let model = model(Stored::Q4_1);
    on_each_device(|gpu| {
        let tokens = tokens(3, 80);
        let whole = ok(load(&model, gpu).logits(&tokens));
        let mut decoder = load(&model, gpu);
        // Parts of several sizes, and single tokens, some of which need more of the cache.
        for end in [1, 2, 40, 41, 63, 64, 65, 66, 80] {
            ok(decoder.logits(&tokens[..end]));
        }
        let cached = ok(decoder.logits(&tokens));
        let wanted: Vec<f64> = whole.iter().map(|it| f64::from(*it)).collect();
        let error = distance(&cached, &wanted);
        assert!(error < 2e-2, "{error}");
        // A shorter prompt, and another one with the same beginning.
        let shorter = ok(decoder.logits(&tokens[..30]));
        let error = distance(&shorter, &model.host.logits(&tokens[..30]));
        assert!(error < 2e-2, "{error}");
        let mut other = tokens.clone();
        other[20] = 5;
        let error = distance(&ok(decoder.logits(&other)), &model.host.logits(&other));
        assert!(error < 2e-2, "{error}");
    });
}

#[test]
fn steps_generate_likeliest_tokens() {
    let model = model(Stored::Q8_0);
    on_each_device(|gpu| {
        let mut decoder = load(&model, gpu);
        let prompt = tokens(4, 7);
        let options = Sampling::new().max_tokens(20);
        let (found, reason) = generated(&mut decoder, &prompt, &options);
        let mut wanted = greedy(&model.host, &prompt, 20);
        if let Some(end) = wanted.iter().position(|token| *token == END) {
            wanted.truncate(end);
        }
        assert_eq!(found, wanted);
        let is_ended = found.len() < 20;
        assert_eq!(reason, if is_ended { StopReason::EndOfText } else { StopReason::MaxTokens });
    });
}

#[test]
fn interruption_keeps_cache_valid() {
    let model = model(Stored::Q4_1);
    let gpu = cpu();
    let prompt = tokens(5, 10);
    let options = Sampling::new().max_tokens(30);
    let (whole, _) = generated(&mut load(&model, &gpu), &prompt, &options);
    let mut decoder = load(&model, &gpu);
    // Dropped after a few pieces, with steps in flight.
    let mut generation = ok(decoder.complete_tokens(&prompt, &options));
    for _ in 0..3 {
        ok(generation.next().expect("there is more text"));
    }
    drop(generation);
    let context = decoder.context().to_vec();
    assert!(context.len() < prompt.len() + whole.len());
    assert_eq!(context[prompt.len()..], whole[..context.len() - prompt.len()]);
    // Continued, as if it had not been interrupted: all but the last token is cached.
    let generation = ok(decoder.complete_tokens(&context, &options));
    assert_eq!(generation.reused_tokens(), context.len() - 1);
    drop(generation);
    let (rest, _) = generated(&mut decoder, &context, &options);
    let known = context.len() - prompt.len();
    assert_eq!(rest[..whole.len() - known], whole[known..]);
    let error = distance(&ok(decoder.logits(&context)), &model.host.logits(&context));
    assert!(error < 1e-4, "{error}");
}

#[test]
fn context_ends_generation() {
    let model = model(Stored::Q4_1);
    let gpu = cpu();
    let mut decoder = ok(Decoder::options().capacity(12).load(&model.path, &gpu));
    assert_eq!(decoder.capacity(), 12);
    let prompt = tokens(6, 9);
    let (found, reason) = generated(&mut decoder, &prompt, &Sampling::new());
    // The last token needs no place: it is not read.
    assert_eq!((found, reason), (greedy(&model.host, &prompt, 4), StopReason::ContextFull));
    let long = tokens(6, 13);
    let error = decoder.complete_tokens(&long, &Sampling::new()).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Context);
    assert_eq!(
        error.to_string(),
        "Decoder::complete_tokens: the prompt has 13 tokens, but the context holds 12; help: \
         shorten the prompt, or load the model with a larger context: \
         `Decoder::options().capacity(…)`, or `--context` of `scry model generate`"
    );
    assert_eq!(decoder.logits(&[]).unwrap_err().kind(), ErrorKind::Value);
    let beyond = decoder.logits(&[VOCABULARY as u32]).unwrap_err();
    assert!(beyond.to_string().contains("token 260 is beyond the vocabulary"), "{beyond}");
    let (none, reason) = generated(&mut decoder, &prompt, &Sampling::new().max_tokens(0));
    assert_eq!((none.len(), reason), (0, StopReason::MaxTokens));
}

/// Computes what the device samples, from the host's scores: the candidates and their
/// probabilities.
fn candidates(logits: &[f64], options: [f64; 4], recent: &[u32]) -> Vec<(u32, f64)> {
    let [temperature, top_p, min_p, penalty] = options;
    let mut scores: Vec<(u32, f64)> = (0u32..).zip(logits.iter().copied()).collect();
    for token in recent {
        let score = &mut scores[*token as usize].1;
        let original = logits[*token as usize];
        *score = if original > 0.0 { original / penalty } else { original * penalty };
    }
    scores.sort_by(|a, b| b.1.total_cmp(&a.1));
    scores.truncate(40);
    let sum: f64 = scores.iter().map(|it| (it.1 / temperature).exp()).sum();
    let all = scores.iter().map(|it| (it.0, (it.1 / temperature).exp() / sum));
    let mut before = 0.0;
    let mut kept: Vec<(u32, f64)> = Vec::new();
    for (token, probability) in all {
        let least = kept.first().map_or(0.0, |first| first.1 * min_p);
        if !kept.is_empty() && (before >= top_p || probability < least) {
            break;
        }
        before += probability;
        kept.push((token, probability));
    }
    let sum: f64 = kept.iter().map(|it| it.1).sum();
    kept.iter().map(|it| (it.0, it.1 / sum)).collect()
}

#[test]
fn samples_follow_probabilities() {
    let model = model(Stored::F32);
    let gpu = cpu();
    let mut decoder = load(&model, &gpu);
    let prompt = tokens(7, 5);
    let logits = model.host.logits(&prompt);
    let base = Sampling::new().max_tokens(1);
    let cases = [
        (base.clone().temperature(1.0), [1.0, 1.0, 0.0, 1.0]),
        (base.clone().temperature(1.0).top_p(0.6), [1.0, 0.6, 0.0, 1.0]),
        (base.clone().temperature(1.5).min_p(0.3), [1.5, 1.0, 0.3, 1.0]),
        (base.temperature(1.0).repetition_penalty(1.8).top_p(0.8), [1.0, 0.8, 0.0, 1.8]),
    ];
    const COUNT: u32 = 300;
    for (options, numbers) in cases {
        let recent = if numbers[3] == 1.0 { &[][..] } else { &prompt };
        let wanted = candidates(&logits, numbers, recent);
        assert!(wanted.len() > 3, "{options:?} has {} candidates", wanted.len());
        let mut counts = vec![0u32; wanted.len()];
        for seed in 0..COUNT {
            let (found, _) = generated(&mut decoder, &prompt, &options.clone().seed(seed));
            // The end of the text is not a token of it.
            let token = found.first().copied().unwrap_or(END);
            let place = wanted.iter().position(|it| it.0 == token);
            let place = place.unwrap_or_else(|| panic!("{options:?}: {token} is no candidate"));
            counts[place] += 1;
        }
        // Candidates are counted together until at least 5 are expected.
        let mut bins: Vec<(f64, f64)> = vec![(0.0, 0.0)];
        for (count, (_, probability)) in counts.iter().zip(&wanted) {
            if bins[bins.len() - 1].1 >= 5.0 {
                bins.push((0.0, 0.0));
            }
            let bin = bins.len() - 1;
            bins[bin].0 += f64::from(*count);
            bins[bin].1 += probability * f64::from(COUNT);
        }
        let statistic: f64 =
            bins.iter().map(|(count, it)| (count - it).powi(2) / it.max(1.0)).sum();
        let freedom = bins.len() as f64 - 1.0;
        let bound = freedom + 5.0 * (2.0 * freedom).sqrt();
        assert!(freedom > 2.0 && statistic < bound, "{options:?}: {statistic}, {bins:?}");
    }
    // Extremes choose the most likely token.
    let first = candidates(&logits, [1.0, 1.0, 0.0, 1.0], &[])[0].0;
    let one = || Sampling::new().max_tokens(1).temperature(1.0).seed(5);
    for options in [
        one().top_p(0.0),
        one().min_p(1.0),
        one().top_k(1),
        one().temperature(1e-38),
        one().temperature(-0.0),
    ] {
        assert_eq!(generated(&mut decoder, &prompt, &options).0, [first], "{options:?}");
    }
    // As many candidates as possible, more than there are tokens.
    let (all, _) = generated(&mut decoder, &prompt, &one().top_k(0));
    assert_eq!(all.len(), 1);
}

#[test]
fn seeds_repeat_texts() {
    let model = model(Stored::Q4_1);
    on_each_device(|gpu| {
        let mut decoder = load(&model, gpu);
        let prompt = tokens(8, 6);
        let options = |seed| Sampling::new().temperature(1.2).seed(seed).max_tokens(16);
        let (first, _) = generated(&mut decoder, &prompt, &options(1));
        let (other, _) = generated(&mut decoder, &prompt, &options(2));
        let (again, _) = generated(&mut decoder, &prompt, &options(1));
        assert_eq!(first, again);
        assert_ne!(first, other);
        let penalised = options(1).repetition_penalty(1.5).penalty_window(8);
        let (penalised_first, _) = generated(&mut decoder, &prompt, &penalised);
        ok(decoder.clear());
        assert_eq!(generated(&mut decoder, &prompt, &penalised).0, penalised_first);
        let greedy = Sampling::new().repetition_penalty(1.3).max_tokens(16);
        assert_eq!(
            generated(&mut decoder, &prompt, &greedy),
            generated(&mut decoder, &prompt, &greedy)
        );
    });
}

#[test]
fn penalty_counts_recent_tokens() {
    let model = model(Stored::F32);
    let gpu = cpu();
    let mut decoder = load(&model, &gpu);
    let prompt = tokens(9, 12);
    let options = Sampling::new().repetition_penalty(4.0).penalty_window(5).max_tokens(14);
    let (found, _) = generated(&mut decoder, &prompt, &options);
    let mut all = prompt.clone();
    for token in &found {
        let recent = &all[all.len() - 5..];
        let wanted = candidates(&model.host.logits(&all), [1.0, 1.0, 0.0, 4.0], recent);
        assert_eq!(*token, wanted[0].0, "after {all:?}");
        all.push(*token);
    }
}

#[test]
fn stop_texts_end_generation() {
    let model = model(Stored::Q4_1);
    let gpu = cpu();
    let mut decoder = load(&model, &gpu);
    let prompt = tokens(10, 6);
    let text = |decoder: &mut Decoder, options: &Sampling| -> (String, StopReason) {
        let mut generation = ok(decoder.complete_tokens(&prompt, options));
        let text = generation.by_ref().map(ok).collect();
        (text, generation.stop_reason().expect("the end has a reason"))
    };
    let options = Sampling::new().max_tokens(24);
    let (whole, _) = text(&mut decoder, &options);
    let characters: Vec<char> = whole.chars().collect();
    let stop: String = characters[6..9].iter().collect();
    let start = whole.find(&stop).expect("it is a part of the text");
    // Another one comes later, and one never.
    let later: String = characters[10..12].iter().collect();
    for stops in [vec![&stop], vec![&later, &stop]] {
        let options = stops.iter().fold(options.clone(), |it, stop| it.stop(*stop)).stop("never");
        let (before, reason) = text(&mut decoder, &options);
        assert_eq!((before.as_str(), reason), (&whole[..start], StopReason::StopText));
    }
}

#[test]
fn conversations_use_template_and_cache() {
    let model = model(Stored::Q4_1);
    let gpu = cpu();
    let mut decoder = load(&model, &gpu);
    let options = Sampling::new().max_tokens(5);
    let reply: String =
        ok(ok(decoder.generate_with("Hi", &options)).collect::<Result<String, _>>());
    // <|user|> H i <|end|> <|other|>
    let h = [b'H', b'i'].map(u32::from);
    assert_eq!(decoder.context()[..5], [258, h[0], h[1], END, 259]);
    assert!(decoder.context().len() <= 10);
    let messages =
        [Message::new("user", "Hi"), Message::new("assistant", &reply), Message::new("user", "x")];
    let again = ok(decoder.chat(&messages, &options));
    assert!(again.prompt_tokens() > 8 && again.reused_tokens() >= 5);
    drop(again);
    assert_eq!(decoder.context()[..5], [258, h[0], h[1], END, 259]);
}

#[test]
fn bad_options_are_errors() {
    let model = model(Stored::Q4_1);
    let gpu = cpu();
    let mut decoder = load(&model, &gpu);
    let new = Sampling::new;
    for (options, name) in [
        (new().temperature(-1.0), "temperature"),
        (new().temperature(f32::NAN), "temperature"),
        (new().top_k(2000), "top_k"),
        (new().top_p(f32::NAN), "top_p"),
        (new().top_p(1.5), "top_p"),
        (new().min_p(1.5), "min_p"),
        (new().repetition_penalty(0.0), "repetition_penalty"),
    ] {
        let error = decoder.generate_with("x", &options).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Value);
        assert!(error.to_string().contains(&format!("`{name}` is ")), "{error}");
    }
    let integers = Decoder::options().cache_dtype(DType::I32).load(&model.path, &gpu);
    assert_eq!(integers.map(drop).unwrap_err().kind(), ErrorKind::DType);
    let missing = Decoder::load(model.path.with_extension("none"), &gpu).map(drop).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::Io);
}

#[test]
fn damaged_descriptions_are_errors() {
    let folder = ok(tempfile::tempdir());
    Llama::write_safetensors(12, folder.path());
    let gpu = cpu();
    let path = folder.path().join("config.json");
    let config = ok(std::fs::read_to_string(&path));
    let change = |from: &str, to: &str| {
        assert!(config.contains(from));
        ok(std::fs::write(&path, config.replace(from, to)));
        Decoder::load(folder.path(), &gpu).map(drop).unwrap_err().to_string()
    };
    assert!(change("\"llama\"", "\"gpt\"").contains("`model_type` is `gpt`"));
    let error = change("\"num_key_value_heads\":2", "\"num_key_value_heads\":3");
    assert!(error.contains("`num_attention_heads` is 4, not a multiple of"), "{error}");
    assert!(change("\"hidden_size\":64", "\"hidden_size\":0").contains("`hidden_size` is 0"));
    let error = change("\"num_hidden_layers\":2", "\"num_hidden_layers\":1000000");
    assert!(error.contains("1000000 layers, but the file has only 20 tensors"), "{error}");
    let error =
        change("\"num_attention_heads\":4", "\"num_attention_heads\":4000,\"head_dim\":200");
    assert!(error.contains("shape mismatch"), "{error}");
    let error = change("\"rope_theta\":100.0", "\"rope_theta\":\"many\"");
    assert!(error.contains("`rope_theta` is \"many\""), "{error}");
    let error = change("\"rope_theta\":100.0", "\"rope_parameters\":{\"rope_type\":\"yarn\"}");
    assert!(error.contains("RoPE is scaled"), "{error}");
    let error = change("\"model_type\"", "\"hidden_act\":\"gelu\",\"model_type\"");
    assert!(error.contains("`hidden_act` is `gelu`"), "{error}");
    let error = change("\"tie_word_embeddings\":true", "\"tie_word_embeddings\":false");
    assert!(error.contains("`lm_head.weight`"), "{error}");
    let error = change("\"num_hidden_layers\":2", "\"num_hidden_layers\":3");
    assert!(error.contains("missing (9)"), "{error}");
}
