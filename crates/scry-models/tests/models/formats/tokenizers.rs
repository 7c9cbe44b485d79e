//! Tokenizers: the ids of the libraries tokenizers and transformers, and decoding.

use scry_models::{EncodeOptions, ErrorKind, Message, Tokenizer, Weights};
use serde_json::Value;

use super::expected::expected;
use crate::support::{MINILM, SMOLLM2, ok, real_file};

/// Texts with the ids that other libraries return.
fn cases(name: &str) -> Vec<Value> {
    let text = ok(std::fs::read(expected(name)));
    ok(serde_json::from_slice(&text))
}

fn ids(case: &Value) -> Vec<u32> {
    ok(serde_json::from_value(case["ids"].clone()))
}

/// Returns the text of ids that arrive one by one.
fn streamed(tokenizer: &Tokenizer, ids: &[u32]) -> String {
    let mut stream = tokenizer.decode_stream();
    let parts: Vec<String> = ids.iter().map(|id| ok(stream.push(*id))).collect();
    parts.concat() + &ok(stream.finish())
}

#[test]
fn smollm2_agrees_with_tokenizers() {
    let Some(path) = real_file(SMOLLM2) else { return };
    let tokenizer = ok(Tokenizer::from_metadata(ok(Weights::open(path)).metadata()));
    assert_eq!(
        (tokenizer.vocab_size(), tokenizer.bos_id(), tokenizer.eos_id()),
        (49152, Some(1), Some(2))
    );
    assert!(
        tokenizer.is_end_of_generation(2)
            && tokenizer.is_end_of_generation(0)
            && !tokenizer.is_end_of_generation(1)
    );
    for case in cases("smollm2.json") {
        let text = case["text"].as_str().unwrap();
        let found = ok(tokenizer.encode(text));
        assert_eq!(found, ids(&case), "{text:?}");
        let without_special = ["<|im_start|>", "<|im_end|>", "<|endoftext|>"]
            .iter()
            .fold(text.to_owned(), |text, token| text.replace(token, ""));
        assert_eq!(ok(tokenizer.decode(&found)), without_special);
        assert_eq!(streamed(&tokenizer, &found), without_special);
        let literal = EncodeOptions::new().parse_special(false);
        assert_eq!(ok(tokenizer.decode(&ok(tokenizer.encode_with(text, literal)))), text);
    }
    // Any ids, of which many are parts of characters.
    let mixed: Vec<u32> = (0..2000).map(|n| n * 7919 % 49152).collect();
    assert_eq!(streamed(&tokenizer, &mixed), ok(tokenizer.decode(&mixed)));
}

#[test]
fn smollm2_has_a_chat_template() {
    let Some(path) = real_file(SMOLLM2) else { return };
    let tokenizer = ok(Tokenizer::from_metadata(ok(Weights::open(path)).metadata()));
    let template = tokenizer.chat_template().unwrap();
    let messages = [Message::new("user", "What is a GPU?")];
    let text = "<|im_start|>system\n\
        You are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n\
        <|im_start|>user\nWhat is a GPU?<|im_end|>\n<|im_start|>assistant\n";
    assert_eq!(ok(template.render(&messages, true)), text);
    assert_eq!(ok(tokenizer.encode(text))[..3], [1, 9690, 198]);
}

#[test]
fn minilm_agrees_with_transformers() {
    let Some(path) = real_file(MINILM) else { return };
    let tokenizer = ok(Tokenizer::from_file(path));
    assert_eq!(
        (tokenizer.vocab_size(), tokenizer.pad_id(), tokenizer.unk_id()),
        (30522, Some(0), Some(100))
    );
    assert!(tokenizer.chat_template().is_none());
    for case in cases("minilm.json") {
        let text = case["text"].as_str().unwrap();
        let found = ok(tokenizer.encode(text));
        assert_eq!(found, ids(&case), "{text:?}");
        assert_eq!(ok(tokenizer.decode(&found)), case["decoded"].as_str().unwrap());
        assert_eq!(streamed(&tokenizer, &found), case["decoded"].as_str().unwrap());
    }
    let short = EncodeOptions::new().max_length(5);
    assert_eq!(
        ok(tokenizer.encode_with("one two three four five", short)),
        [101, 2028, 2048, 2093, 102]
    );
    let none = EncodeOptions::new().max_length(1);
    assert_eq!(tokenizer.encode_with("one", none).unwrap_err().kind(), ErrorKind::Value);
}
