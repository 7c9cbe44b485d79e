//! Tests of `scry model`.

use crate::support::Workplace;

#[cfg(not(feature = "models"))]
#[test]
fn builds_without_models_say_how_to_get_it() {
    let place = Workplace::without_driver();
    let failed = place.scry(&["model", "info", "x.gguf"]).exits_with(2);
    failed.prints(&["feature `models`", "`cargo install scry-cli --features models`"]);
    // The command is known to every build.
    place.scry(&["model", "info", "--help"]).exits_with(0).prints(&["safetensors or GGUF"]);
}

/// Returns a GGUF file with a tensor of 64 weights of 8 bits.
#[cfg(feature = "models")]
fn gguf() -> Vec<u8> {
    let text = |text: &str| [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat();
    let mut file = b"GGUF\x03\0\0\0".to_vec();
    file.extend([1u64.to_le_bytes(), 1u64.to_le_bytes()].concat());
    file.extend([text("general.architecture"), vec![8, 0, 0, 0], text("llama")].concat());
    file.extend([text("w"), vec![2, 0, 0, 0]].concat());
    file.extend([32u64.to_le_bytes(), 2u64.to_le_bytes()].concat());
    file.extend([vec![8, 0, 0, 0], vec![0; 8]].concat());
    file.resize(file.len().next_multiple_of(32), 0);
    file.extend([0; 68]);
    file
}

#[cfg(feature = "models")]
#[test]
fn gguf_files_are_described() {
    let place = Workplace::without_driver();
    place.write("m.gguf", gguf());
    place.scry(&["model", "info", "m.gguf"]).exits_with(0).prints(&[
        "format        gguf\n",
        "architecture  llama\n",
        "parameters    64, 68 bytes\n",
        "tokenizer     none found\n",
        "q8_0  1        64          68 bytes\n",
        "  general.architecture  \"llama\"\n",
        "  w  [2, 32]  q8_0  68 bytes\n",
    ]);
    let document = place.scry(&["model", "info", "m.gguf", "--json"]).exits_with(0).json();
    let result = &document["result"];
    assert_eq!(result["tensors"][0]["shape"], serde_json::json!([2, 32]));
    assert_eq!((&result["architecture"], &result["bytes"]), (&"llama".into(), &68.into()));
    assert!(result["tokenizer"].is_null());
}

#[cfg(feature = "models")]
#[test]
fn control_characters_of_files_are_escaped() {
    let place = Workplace::without_driver();
    let mut file = gguf();
    let at = file.windows(5).position(|it| it == b"llama").expect("the architecture");
    file[at..at + 5].copy_from_slice(b"\x1b[2J\n");
    place.write("m.gguf", file);
    let outcome = place.scry(&["model", "info", "m.gguf"]).exits_with(0);
    assert!(!outcome.stdout.contains('\x1b'), "{outcome:?}");
    outcome.prints(&["architecture  \\u{1b}[2J\\n\n"]);
}

#[cfg(feature = "models")]
#[test]
fn safetensors_files_are_described() {
    let place = Workplace::without_driver();
    let header = br#"{"x":{"dtype":"F16","shape":[4],"data_offsets":[0,8]}}"#;
    let file = [&(header.len() as u64).to_le_bytes(), header.as_slice(), &[0; 8]].concat();
    place.write("model.safetensors", file);
    place.write("config.json", br#"{"architectures":["BertModel"]}"#);
    place.write("tokenizer.json", b"{}");
    let printed = place.scry(&["model", "info", "."]).exits_with(0);
    printed.prints(&[
        "architecture  BertModel\n",
        "not a valid tokenizer.json",
        "x  [4]  f16  8 bytes",
    ]);
}

#[cfg(feature = "models")]
#[test]
fn damaged_files_fail_with_the_offset() {
    let place = Workplace::without_driver();
    place.write("m.gguf", &gguf()[..100]);
    place.scry(&["model", "info", "m.gguf"]).exits_with(1).prints(&["offset", "truncated"]);
    place.scry(&["model", "info", "none.gguf"]).exits_with(1).prints(&["check the path"]);
}

#[cfg(feature = "models")]
#[test]
fn search_and_generation_report_what_fails() {
    let place = Workplace::without_driver();
    place.write("empty.txt", b"\n\n");
    let search = |file: &str| place.scry(&["model", "search", ".", file, "query"]);
    search("none.txt").exits_with(1).prints(&["none.txt: "]);
    search("empty.txt").exits_with(1).prints(&["has no text to search"]);
    place.write("lines.txt", b"a\nb\n");
    search("lines.txt").exits_with(1).prints(&["Encoder::load", "config.json", "check the path"]);
    place.write("m.gguf", gguf());
    let generate = |more: &[&str]| {
        let arguments = [&["model", "generate", "m.gguf", "prompt"], more].concat();
        place.scry(&arguments)
    };
    // The model lacks all that describes it.
    generate(&[]).exits_with(1).prints(&["llama.embedding_length"]);
    generate(&["--temperature", "hot"]).exits_with(2).prints(&["--temperature"]);
    let failed = generate(&["--json"]).exits_with(1).json();
    assert_eq!((&failed["ok"], &failed["command"]), (&false.into(), &"model".into()));
    place.scry(&["model", "search", "--help"]).exits_with(0).prints(&["--count", "Long lines"]);
}
