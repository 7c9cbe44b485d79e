//! Tests with valid kernels that are truncated, or in which a byte or a word is changed.

use std::fs;
use std::path::Path;

use scry_ir::ShaderErrorKind;

use crate::{KERNEL, RICH, compile, compile_error, compile_to_all};

#[test]
fn kernel_prefixes_are_handled() {
    for end in (0..KERNEL.len()).filter(|end| KERNEL.is_char_boundary(*end)) {
        if let Err(error) = compile(&KERNEL[..end]) {
            let may_lack_location = error.kind == ShaderErrorKind::EntryPoint;
            assert!(may_lack_location || error.location.is_some(), "{error}");
        }
    }
}

#[test]
fn flipped_bytes_are_handled() {
    for at in 0..KERNEL.len() {
        for flip in [0x01, 0x08, 0x20, 0x80, 0xff] {
            let mut bytes = KERNEL.as_bytes().to_vec();
            bytes[at] ^= flip;
            let _ = compile(&String::from_utf8_lossy(&bytes));
        }
    }
}

#[test]
fn unusual_characters_are_handled() {
    for mark in ["\0", "\u{feff}", "\u{fffd}", "\u{202e}", "\u{10ffff}", "\r", "\u{1b}[31m", "´"] {
        compile_error(&format!("{mark}{KERNEL}$"));
        compile_error(&format!("{KERNEL}\n{mark}$"));
        let _ = compile(&format!("{KERNEL}{mark}"));
        let _ = compile(mark);
        let _ = compile(&KERNEL.replace(' ', mark));
    }
    let _ = compile("");
}

/// A deterministic pseudo-random number generator.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}

/// Returns the kernels in the top folder of the repository's corpus.
fn corpus() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    let mut paths: Vec<_> = fs::read_dir(folder)
        .expect("the corpus is there")
        .map(|entry| entry.expect("it can be listed").path())
        .filter(|path| path.extension().is_some_and(|e| e == "wgsl"))
        .collect();
    paths.sort();
    assert!(!paths.is_empty());
    let read = |path| fs::read_to_string(path).expect("a kernel is text");
    paths.into_iter().map(read).collect()
}

/// Splits a kernel into words and punctuation.
fn pieces(kernel: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let (mut found, mut rest) = (Vec::new(), kernel);
    while let Some(first) = rest.chars().next() {
        let len = if is_word(first) {
            rest.find(|c| !is_word(c)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        found.push(&rest[..len]);
        rest = &rest[len..];
    }
    found
}

/// Words that the kernels do not contain.
const EXTRA: &[&str] = &[
    "0",
    "-1",
    "4294967295u",
    "2147483648",
    "1e38f",
    "1li",
    "1.0lf",
    "0x1p-149",
    "f16",
    "i64",
    "f64",
    "atomic<i64>",
    "mat4x4<f32>",
    "ptr<function, f32>",
    "texture_2d<f32>",
    "sampler",
    "@size(4294967295)",
    "@align(0)",
    "@align(2147483648)",
    "array<u32>",
    "array<u32, 0>",
    "_",
    "&",
    "*",
    "--",
    "discard",
    "return",
    "const_assert",
    "workgroupUniformLoad",
    "subgroupShuffle",
    "textureLoad",
    "modf",
    "frexp",
    "ldexp",
    "extractBits",
    "dot4I8Packed",
];

#[test]
fn shuffled_tokens_are_handled() {
    let seeds: u64 =
        std::env::var("SCRY_FUZZ_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(3_000);
    let mut sources = corpus();
    sources.extend([KERNEL.to_owned(), RICH.to_owned()]);
    let kernels: Vec<Vec<&str>> = sources.iter().map(|source| pieces(source)).collect();
    for seed in 0..seeds {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut tokens = kernels[seed as usize % kernels.len()].clone();
        for _ in 0..=random.below(4) {
            let (a, b) = (random.below(tokens.len()), random.below(tokens.len()));
            match random.below(5) {
                0 => tokens.swap(a, b),
                1 => tokens[a] = tokens[b],
                2 => tokens.insert(a, tokens[b]),
                3 => drop(tokens.remove(a)),
                _ => tokens[a] = EXTRA[random.below(EXTRA.len())],
            }
        }
        let source = tokens.concat();
        if let Err(error) = compile_to_all(&source) {
            assert_ne!(error.kind, ShaderErrorKind::Compiler, "seed {seed}: {error}\n{source}");
        }
    }
}
