//! Damaged descriptions of models: errors, without panic and large allocations.

use std::path::Path;

use scry_models::{Decoder, Encoder, Error, Weights};
use serde_json::{Value, json};

use crate::allocations::largest_allocation;
use crate::bert::Bert;
use crate::decoding::{cpu, model};
use crate::files::Stored;
use crate::llama::Llama;
use crate::support::{Random, ok};

/// Numbers that break careless arithmetic.
const NUMBERS: [u64; 9] =
    [0, 1, 3, 255, (1 << 24) - 1, 1 << 31, (1 << 32) - 1, 1 << 63, u64::MAX - 31];

/// Loads a model, and compares its largest allocation with that of the undamaged one.
fn check(load: impl FnOnce() -> Result<(), Error>, undamaged: usize, damage: &dyn std::fmt::Debug) {
    let (result, largest) = largest_allocation(load);
    assert!(largest <= 4 * undamaged, "{largest} bytes instead of {undamaged}: {damage:?}");
    if let Err(error) = result {
        let text = error.to_string();
        assert!(text.contains("::load") && text.contains("help: "), "{damage:?}: {text}");
    }
}

#[test]
fn damaged_gguf_models_do_no_harm() {
    let (model, gpu) = (model(Stored::Q8_0), cpu());
    let file = ok(std::fs::read(&model.path));
    let weights = ok(Weights::open(&model.path));
    let header = weights.tensors().map(|it| it.offset()).min().expect("tensors") as usize;
    drop(weights);
    let load = || Decoder::options().capacity(8).load(&model.path, &gpu).map(drop);
    let (undamaged, largest) = largest_allocation(load);
    ok(undamaged);
    let mut random = Random(31);
    for _ in 0..300 {
        let mut file = file.clone();
        let (at, number) = (random.below(header - 8), NUMBERS[random.below(NUMBERS.len())]);
        let width = [1, 4, 8][random.below(3)];
        file[at..at + width].copy_from_slice(&number.to_le_bytes()[..width]);
        ok(std::fs::write(&model.path, &file));
        check(load, largest, &(at, width, number));
    }
}

/// Replaces each value of a JSON file by others, and loads the model.
fn damage_json(path: &Path, largest: usize, load: impl Fn() -> Result<(), Error> + Copy) {
    let text = ok(std::fs::read_to_string(path));
    let original: Value = ok(serde_json::from_str(&text));
    let others = [
        json!(0),
        json!(1),
        json!(-1),
        json!(7),
        json!(1 << 24),
        json!(u64::MAX),
        json!(1e300),
        json!("x"),
        json!([1]),
        json!({"a": 1}),
        json!(null),
    ];
    for key in original.as_object().expect("an object").keys() {
        for other in &others {
            let mut damaged = original.clone();
            damaged[key] = other.clone();
            ok(std::fs::write(path, damaged.to_string()));
            check(load, largest, &(key, other));
        }
    }
    ok(std::fs::write(path, text));
}

#[test]
fn damaged_descriptions_do_no_harm() {
    let gpu = cpu();
    let folder = ok(tempfile::tempdir());
    Llama::write_safetensors(12, folder.path());
    let load = || Decoder::options().capacity(8).load(folder.path(), &gpu).map(drop);
    let (undamaged, largest) = largest_allocation(load);
    ok(undamaged);
    damage_json(&folder.path().join("config.json"), largest, load);

    let folder = ok(tempfile::tempdir());
    Bert::random(7).write(folder.path());
    let load = || Encoder::load(folder.path(), &gpu).map(drop);
    let (undamaged, largest) = largest_allocation(load);
    ok(undamaged);
    for name in ["config.json", "sentence_bert_config.json", "1_Pooling/config.json"] {
        damage_json(&folder.path().join(name), largest, load);
    }
}
