//! How decoders are loaded: tokenizers, templates and ends of other files, errors, and the cache of
//! earlier prompts.

use std::path::Path;

use scry_models::{Decoder, Encoder, ErrorKind, Message, Sampling, StopReason, Tokenizer, Weights};
use scry_tensor::Tensor;
use scry_test_support::on_each_device;

use crate::decoding::{cpu, generated, greedy, load, model, tokens};
use crate::files::{Gguf, Stored};
use crate::llama::{Llama, VOCABULARY, byte_character};
use crate::support::{distance, ok};

/// Replaces the first occurrence of some bytes of a file by as many others.
fn replace(path: &Path, from: &[u8], to: &[u8]) {
    let mut file = ok(std::fs::read(path));
    let at = file.windows(from.len()).position(|it| it == from).expect("the file has it");
    file[at..at + to.len()].copy_from_slice(to);
    ok(std::fs::write(path, file));
}

/// Returns a tokenizer whose tokens are the second byte of `é`, a number, and its first byte.
fn tokenizer_of_halves(folder: &Path) -> Tokenizer {
    let path = folder.join("tokenizer.gguf");
    let token = |n| {
        let number = format!("{n:03}");
        let bytes = [&[0xa9], number.as_bytes(), &[0xc3]].concat();
        bytes.iter().map(|byte| byte_character(*byte)).collect::<String>()
    };
    let mut file = Gguf::default();
    file.text("tokenizer.ggml.model", "gpt2");
    file.text("tokenizer.ggml.pre", "gpt-2");
    file.texts("tokenizer.ggml.tokens", &(0..VOCABULARY).map(token).collect::<Vec<_>>());
    file.texts("tokenizer.ggml.merges", &[]);
    file.write(&path);
    ok(Tokenizer::from_metadata(ok(Weights::open(path)).metadata()))
}

#[test]
fn tokenizers_and_templates_are_replaced() {
    let (model, gpu) = (model(Stored::Q8_0), cpu());
    let tokenizer = ok(Tokenizer::from_metadata(ok(Weights::open(&model.path)).metadata()));
    replace(&model.path, b"gpt2", b"bert");
    let error = Decoder::load(&model.path, &gpu).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DType);
    let text = error.to_string();
    assert!(text.starts_with("Decoder::load (") && text.contains("kind `bert`"), "{text}");
    assert!(text.contains("`DecoderOptions::tokenizer`"), "{text}");
    let options = Decoder::options().capacity(64).tokenizer(tokenizer.clone());
    let mut decoder = ok(options.clone().load(&model.path, &gpu));
    let messages = [Message::new("user", "Hi")];
    drop(ok(decoder.chat(&messages, &Sampling::new().max_tokens(0))));
    // <|user|> H i <|end|> <|other|>
    assert_eq!(decoder.context(), [258, 72, 105, 257, 259]);
    // A template with the special tokens of the tokenizer.
    let source = "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}";
    let mut decoder = ok(options.clone().chat_template(source).load(&model.path, &gpu));
    drop(ok(decoder.generate_with("Hi", &Sampling::new().max_tokens(0))));
    assert_eq!(decoder.context(), [256, 72, 105, 257]);
    assert_eq!(decoder.chat_template().map(|it| it.source()), Some(source));
    let error = options.chat_template("{% for %}").load(&model.path, &gpu).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Template);
    assert!(error.to_string().starts_with("Decoder::load: the chat template"), "{error}");
}

#[test]
fn errors_name_the_call() {
    let gpu = cpu();
    let folder = ok(tempfile::tempdir());
    let error = Decoder::load(folder.path(), &gpu).map(drop).unwrap_err().to_string();
    assert!(error.starts_with("Decoder::load ("), "{error}");
    let error = Encoder::load(folder.path(), &gpu).map(drop).unwrap_err().to_string();
    assert!(error.starts_with("Encoder::load ("), "{error}");
    let model = model(Stored::Q8_0);
    let mut decoder = load(&model, &gpu);
    let blanks = format!("a{}b", " ".repeat(1_200_000));
    let new = Sampling::new;
    let errors = [
        ("Decoder::generate: ", decoder.generate(&blanks).map(drop)),
        ("Decoder::generate_with: ", decoder.generate_with(&blanks, &new()).map(drop)),
        ("Decoder::complete: ", decoder.complete(&blanks, &new()).map(drop)),
        ("Decoder::chat: ", decoder.chat(&[Message::new("user", &blanks)], &new()).map(drop)),
    ];
    for (call, result) in errors {
        let error = result.unwrap_err().to_string();
        assert!(
            error.starts_with(call) && error.contains("whitespace characters"),
            "{call}{error}"
        );
    }
    // A key of another type, and one that is missing.
    replace(&model.path, b"llama.block_count", b"llama.block_coun_");
    let error = Decoder::load(&model.path, &gpu).map(drop).unwrap_err().to_string();
    assert!(error.starts_with("Decoder::load (") && error.contains("no key `llama.b"), "{error}");
    replace(&model.path, b"llama.block_coun_", b"general.alignment");
    let error = Weights::open(&model.path).map(drop).unwrap_err().to_string();
    assert!(error.starts_with("Weights::open (") && error.contains("alignment"), "{error}");
}

#[test]
fn generation_config_ends_text() {
    let folder = ok(tempfile::tempdir());
    let host = Llama::write_safetensors(12, folder.path());
    let gpu = cpu();
    let load = || Decoder::options().capacity(64).load(folder.path(), &gpu);
    let prompt = tokens(4, 7);
    let options = Sampling::new().max_tokens(8);
    let wanted = greedy(&host, &prompt, 8);
    assert_eq!(generated(&mut ok(load()), &prompt, &options).0, wanted);
    let write = |ids: &str| {
        let text = format!("{{\"eos_token_id\": {ids}}}");
        ok(std::fs::write(folder.path().join("generation_config.json"), text));
    };
    let first = wanted.iter().position(|token| *token == wanted[3]).expect("one of them");
    for ids in [format!("{}", wanted[3]), format!("[259, {}]", wanted[3])] {
        write(&ids);
        let mut decoder = ok(load());
        assert!(decoder.is_end_of_generation(wanted[3]));
        let found = generated(&mut decoder, &prompt, &options);
        assert_eq!(found, (wanted[..first].to_vec(), StopReason::EndOfText));
        let found = generated(&mut decoder, &prompt, &options.clone().ignore_eos(true));
        assert_eq!(found, (wanted.clone(), StopReason::MaxTokens));
    }
    write("[3, \"x\"]");
    let error = load().map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Format);
    assert!(error.to_string().contains("generation_config.json): `eos_token_id` is ["), "{error}");
}

#[test]
fn nan_of_earlier_prompts_is_forgotten() {
    let model = model(Stored::Q8_0);
    on_each_device(|gpu| {
        let mut decoder = load(&model, gpu);
        // Rows of an earlier prompt, of which plans read 64.
        let earlier = tokens(20, 50);
        ok(decoder.logits(&earlier));
        let plan = ok(decoder.step_plan(&Sampling::new(), 50));
        for layer in 0..2 {
            let name = format!("layer.{layer}.cache");
            let cache = ok(plan.state(&name));
            let row: usize = cache.shape()[1..].iter().product();
            let mut numbers = ok(cache.to_vec::<f32>());
            // The first three tokens remain.
            numbers[3 * row..50 * row].fill(f32::NAN);
            let shape = cache.shape().to_vec();
            ok(plan.set_state(&name, &ok(Tensor::from_slice(&numbers, shape, gpu))));
        }
        let prompt = [&earlier[..3], &tokens(21, 6)].concat();
        let error = distance(&ok(decoder.logits(&prompt)), &model.host.logits(&prompt));
        assert!(error < 2e-2, "{error}");
        let (found, _) = generated(&mut decoder, &prompt, &Sampling::new().max_tokens(4));
        assert!(greedy(&model.host, &prompt, 4).starts_with(&found), "{found:?}");
    });
}

#[test]
fn split_characters_are_whole_in_text() {
    let folder = ok(tempfile::tempdir());
    let (model, gpu) = (model(Stored::Q8_0), cpu());
    let options = Decoder::options().capacity(64).tokenizer(tokenizer_of_halves(folder.path()));
    let mut decoder = ok(options.load(&model.path, &gpu));
    let prompt = tokens(22, 5);
    let mut text = |options: &Sampling| -> (Vec<String>, Option<StopReason>) {
        let mut generation = ok(decoder.complete_tokens(&prompt, options));
        (generation.by_ref().map(ok).collect(), generation.stop_reason())
    };
    let limited = Sampling::new().max_tokens(8);
    let numbers: Vec<String> =
        greedy(&model.host, &prompt, 8).iter().map(|token| format!("{token:03}")).collect();
    let (pieces, reason) = text(&limited);
    assert_eq!(reason, Some(StopReason::MaxTokens));
    // Bytes without their other half become U+FFFD.
    let whole = format!("\u{fffd}{}\u{fffd}", numbers.join("é"));
    assert_eq!(pieces.concat(), whole);
    // The stop text begins and ends within characters of tokens, and has those of three tokens.
    let stop = format!("é{}é{}é", numbers[2], numbers[3]);
    let start = whole.find(&stop).expect("a part of the text");
    let (pieces, reason) = text(&limited.clone().stop("never").stop(&stop));
    assert_eq!((pieces.concat().as_str(), reason), (&whole[..start], Some(StopReason::StopText)));
    // The beginning of a stop text that does not follow is part of the text.
    let (pieces, reason) = text(&limited.stop(format!("é{}é!", numbers[2])));
    assert_eq!((pieces.concat(), reason), (whole, Some(StopReason::MaxTokens)));
}
