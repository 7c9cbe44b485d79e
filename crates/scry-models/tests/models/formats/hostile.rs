//! Random damage: no panic, no large allocation, and what opens can be loaded.

use proptest::prelude::*;
use proptest::test_runner::Config;
use scry_models::{Device, ErrorKind, Tokenizer, Weights};
use scry_test_support::env_number;

use super::files::{Gguf, safetensors, small_gguf};
use crate::allocations::largest_allocation;
use crate::support::ok;

/// Numbers that break careless arithmetic.
const NUMBERS: [u64; 10] =
    [0, 1, 255, 1 << 31, (1 << 32) - 1, 1 << 32, 1 << 61, 1 << 63, u64::MAX - 31, u64::MAX];

/// A change of a file.
#[derive(Debug, Clone)]
enum Damage {
    Byte(usize, u8),
    Word(usize, usize),
    Number(usize, usize),
    Truncate(usize),
    Remove(usize, usize),
    Repeat(usize, usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<usize>;
    prop_oneof![
        (at(), any::<u8>()).prop_map(|(at, byte)| Damage::Byte(at, byte)),
        (at(), at()).prop_map(|(at, number)| Damage::Word(at, number)),
        (at(), at()).prop_map(|(at, number)| Damage::Number(at, number)),
        at().prop_map(Damage::Truncate),
        (at(), 1..40usize).prop_map(|(at, len)| Damage::Remove(at, len)),
        (at(), 1..40usize).prop_map(|(at, len)| Damage::Repeat(at, len)),
    ]
}

impl Damage {
    fn apply(&self, file: &mut Vec<u8>) {
        if file.is_empty() {
            return;
        }
        let len = file.len();
        let mut write = |at: usize, bytes: &[u8]| {
            let start = at % len;
            let end = len.min(start + bytes.len());
            file[start..end].copy_from_slice(&bytes[..end - start]);
        };
        match *self {
            Self::Byte(at, byte) => write(at, &[byte]),
            Self::Word(at, number) => {
                write(at, &(NUMBERS[number % NUMBERS.len()] as u32).to_le_bytes());
            }
            Self::Number(at, number) => write(at, &NUMBERS[number % NUMBERS.len()].to_le_bytes()),
            Self::Truncate(at) => file.truncate(at % len),
            Self::Remove(at, count) => {
                let start = at % len;
                file.drain(start..len.min(start + count));
            }
            Self::Repeat(at, count) => {
                let start = at % len;
                let part = file[start..len.min(start + count)].to_vec();
                file.splice(start..start, part);
            }
        }
    }
}

/// Opens a file and loads what it has. Fails the test on large allocations.
fn check(file: &[u8], gpu: &Device) {
    let (opened, largest) = largest_allocation(|| Weights::from_bytes(file.to_vec()));
    // A window of the file; texts of errors; an element of a vector for a few bytes of the file.
    let limit = (128 << 10) + 8 * file.len();
    assert!(largest <= limit, "an allocation of {largest} bytes for a file of {}", file.len());
    let weights = match opened {
        Ok(weights) => weights,
        Err(error) => {
            assert!(matches!(error.kind(), ErrorKind::Format | ErrorKind::DType), "{error}");
            assert!(error.to_string().contains("; help: "), "{error}");
            return;
        }
    };
    for info in weights.tensors() {
        assert!(info.offset() + info.byte_size() <= file.len() as u64);
        if let Ok(tensor) = weights.tensor(info.name(), gpu) {
            assert_eq!(tensor.shape(), info.shape());
        }
    }
    let _ = Tokenizer::from_metadata(weights.metadata()).map(|it| it.encode("a b"));
}

/// A GGUF file with a tokenizer.
fn gguf() -> Vec<u8> {
    with_tokenizer("smollm").build()
}

/// A GGUF file with a tokenizer that splits texts as a name of a pre-tokenizer states.
fn with_tokenizer(pre: &str) -> Gguf {
    let (ty, len) = (5u32.to_le_bytes(), 5u64.to_le_bytes());
    let kinds: Vec<u8> = [3i32, 1, 1, 1, 1].iter().flat_map(|kind| kind.to_le_bytes()).collect();
    let kinds = [ty.as_slice(), &len, &kinds].concat();
    small_gguf()
        .string("tokenizer.ggml.model", "gpt2")
        .string("tokenizer.ggml.pre", pre)
        .strings("tokenizer.ggml.tokens", &["<|end|>", "a", "b", "Ġ", "Ġb"])
        .strings("tokenizer.ggml.merges", &["Ġ b"])
        .pair("tokenizer.ggml.token_type", 9, &kinds)
        .pair("tokenizer.ggml.eos_token_id", 4, &[0; 4])
        .string("tokenizer.chat_template", "{% for m in messages %}{{ m.content }}{% endfor %}")
}

fn valid_safetensors() -> Vec<u8> {
    let header = r#"{"__metadata__":{"format":"pt"},
        "x":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},
        "y":{"dtype":"I64","shape":[1],"data_offsets":[24,32]}}"#;
    safetensors(header, &[0; 32])
}

/// Damages a file in many ways.
fn damage_files(cases: u32) {
    let gpu = ok(Device::open("cpu"));
    let files = [gguf(), valid_safetensors()];
    files.iter().for_each(|file| assert!(Weights::from_bytes(file.clone()).is_ok()));
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    proptest!(config, |(which in 0..2usize, damages in proptest::collection::vec(damage(), 1..5))| {
        let mut file = files[which].clone();
        damages.iter().for_each(|damage| damage.apply(&mut file));
        check(&file, &gpu);
    });
}

#[test]
fn the_undamaged_tokenizer_works() {
    let weights = ok(Weights::from_bytes(gguf()));
    let tokenizer = ok(Tokenizer::from_metadata(weights.metadata()));
    assert_eq!(ok(tokenizer.encode("a b<|end|>")), [1, 4, 0]);
    assert_eq!(ok(tokenizer.decode(&[1, 4, 0])), "a b");
    assert!(tokenizer.is_end_of_generation(0));
    let error = tokenizer.encode(&("a".to_owned() + &" ".repeat(1_200_000) + "b")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Tokenizer);
    assert!(
        error
            .to_string()
            .contains("1200000 whitespace characters in a row, at byte 1 of the text,"),
        "{error}"
    );
}

#[test]
fn added_tokens_are_those_of_the_file() {
    let id = |key: &str, file: Gguf| file.pair(key, 4, &4u32.to_le_bytes());
    let ids = |file: Gguf| {
        let weights = ok(Weights::from_bytes(file.build()));
        ok(ok(Tokenizer::from_metadata(weights.metadata())).encode("a"))
    };
    let bos = "tokenizer.ggml.bos_token_id";
    // Files with Llama 3's pre-tokenizer may leave out that texts begin with a token.
    assert_eq!(ids(id(bos, with_tokenizer("smollm"))), [1]);
    assert_eq!(ids(id(bos, with_tokenizer("llama-bpe"))), [4, 1]);
    let stated = |value| {
        let file = id(bos, with_tokenizer("llama-bpe"));
        file.pair("tokenizer.ggml.add_bos_token", 7, &[value]).pair(
            "tokenizer.ggml.add_eos_token",
            7,
            &[1],
        )
    };
    assert_eq!(ids(stated(0)), [1, 0]);
    assert_eq!(ids(stated(1)), [4, 1, 0]);
    let weights = ok(Weights::from_bytes(with_tokenizer("other").build()));
    let error = Tokenizer::from_metadata(weights.metadata()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DType);
    assert!(error.to_string().contains("pre-tokenizer `other` is not supported"), "{error}");
}

#[test]
fn damaged_files_do_no_harm() {
    damage_files(2000);
}

/// Writes a number at every place of files: of those at a position modulo `of`, one.
fn overwrite_every_place(of: usize) {
    let gpu = ok(Device::open("cpu"));
    for file in [gguf(), valid_safetensors()] {
        for at in 0..file.len() - 8 {
            for number in NUMBERS.iter().skip(at % of).step_by(of) {
                let mut file = file.clone();
                file[at..at + 8].copy_from_slice(&number.to_le_bytes());
                check(&file, &gpu);
            }
        }
    }
}

#[test]
fn numbers_at_every_place_do_no_harm() {
    overwrite_every_place(NUMBERS.len());
}

#[test]
#[ignore = "minutes: `cargo xtask full`"]
fn many_damaged_files_do_no_harm() {
    overwrite_every_place(1);
    damage_files(env_number("SCRY_FUZZ_SEEDS").unwrap_or(200_000) as u32);
}
