//! The encoder: vectors, mixed lengths, submissions, and kernels.

use std::path::Path;

use scry_gpu::testing;
use scry_models::{DType, Device, Encoder, ErrorKind};
use scry_tensor::compiled_kernels;
use scry_test_support::on_each_device;

use crate::bert::{Bert, HIDDEN, VOCABULARY};
use crate::support::{Random, distance, ok, supports};

/// Writes a tiny model.
fn model() -> (tempfile::TempDir, Bert) {
    let folder = ok(tempfile::tempdir());
    let bert = Bert::random(7);
    bert.write(folder.path());
    (folder, bert)
}

fn load(folder: &Path, gpu: &Device, dtype: DType) -> Encoder {
    ok(Encoder::options().dtype(dtype).load(folder, gpu))
}

/// Returns texts of random lengths, by the tokens that they become.
fn tokens(random: &mut Random, count: usize, longest: usize) -> Vec<Vec<u32>> {
    let text = |_| {
        let length = 1 + random.below(longest);
        (0..length).map(|_| random.below(VOCABULARY) as u32).collect()
    };
    (0..count).map(text).collect()
}

/// Returns the largest difference of vectors to those of the host.
fn most_distant(encoder: &Encoder, bert: &Bert, texts: &[Vec<u32>]) -> f64 {
    let found = ok(ok(encoder.embed_tokens(texts)).to_vec::<f32>());
    assert_eq!(found.len(), texts.len() * HIDDEN);
    let pairs = found.chunks_exact(HIDDEN).zip(texts);
    pairs.map(|(found, text)| distance(found, &bert.vector(text))).fold(0.0, f64::max)
}

#[test]
fn vectors_agree_with_host() {
    let (folder, bert) = model();
    on_each_device(|gpu| {
        let mut random = Random(3);
        // Mixed lengths in one batch: padding must not matter.
        let texts = tokens(&mut random, 9, 20);
        let encoder = load(folder.path(), gpu, DType::F32);
        let error = most_distant(&encoder, &bert, &texts);
        assert!(error < 2e-5, "{error}");
        for text in &texts[..2] {
            let error = most_distant(&encoder, &bert, std::slice::from_ref(text));
            assert!(error < 2e-5, "{error}");
        }
        // Lengths that are no multiples of what kernels compute at a time.
        let encoder = ok(Encoder::options().max_length(18).load(folder.path(), gpu));
        let longest: Vec<u32> = (0..18).collect();
        let error =
            most_distant(&encoder, &bert, &[tokens(&mut random, 2, 18), vec![longest]].concat());
        assert!(error < 2e-5, "{error}");
    });
}

#[test]
fn sixteen_bit_vectors_are_close() {
    let (folder, bert) = model();
    on_each_device(|gpu| {
        let texts = tokens(&mut Random(4), 5, 20);
        for (dtype, bound) in [(DType::F16, 5e-3), (DType::BF16, 4e-2)] {
            if !supports(gpu, dtype) {
                println!("skipped {dtype} on {}, which lacks it", gpu.name());
                continue;
            }
            let encoder = load(folder.path(), gpu, dtype);
            let error = most_distant(&encoder, &bert, &texts);
            assert!(error < bound, "{dtype}: {error}");
        }
    });
}

/// Models whose vectors are means, and those of `[CLS]`, have other lengths.
#[test]
fn vectors_without_norm_agree_with_host() {
    let (folder, bert) = model();
    ok(std::fs::remove_file(folder.path().join("modules.json")));
    let pooling = folder.path().join("1_Pooling/config.json");
    on_each_device(|gpu| {
        let texts = tokens(&mut Random(9), 4, 20);
        for (key, is_mean) in [("mean_tokens", true), ("cls_token", false)] {
            ok(std::fs::write(&pooling, format!(r#"{{"pooling_mode_{key}": true}}"#)));
            let encoder = load(folder.path(), gpu, DType::F32);
            let found = ok(ok(encoder.embed_tokens(&texts)).to_vec::<f32>());
            for (found, text) in found.chunks_exact(HIDDEN).zip(&texts) {
                let wanted = bert.pooled(text, is_mean);
                assert!(distance(found, &wanted) < 5e-5, "{key}");
            }
        }
    });
}

#[test]
fn texts_keep_their_order() {
    let (folder, bert) = model();
    let gpu = ok(Device::open("cpu"));
    let encoder = load(folder.path(), &gpu, DType::F32);
    // More than a batch: sorted by length, and put back.
    let texts = tokens(&mut Random(5), 150, 20);
    let error = most_distant(&encoder, &bert, &texts);
    assert!(error < 2e-5, "{error}");
}

#[test]
fn async_forms_compute_the_same_vectors() {
    let (folder, _) = model();
    let gpu = ok(Device::open("cpu"));
    let encoder = ok(pollster::block_on(Encoder::load_async(folder.path(), &gpu)));
    let texts = tokens(&mut Random(11), 150, 9);
    for texts in [&texts[..], &texts[..3], &[]] {
        let found = ok(pollster::block_on(encoder.embed_tokens_async(texts)));
        let read = ok(pollster::block_on(found.to_vec_async::<f32>()));
        assert_eq!(read, ok(ok(encoder.embed_tokens(texts)).to_vec::<f32>()));
    }
    let texts = ["a cat", "the stock market"];
    let found = ok(pollster::block_on(encoder.embed_async(&texts)));
    assert_eq!(found, ok(encoder.embed(&texts)));
}

#[test]
fn texts_become_tokens() {
    let (folder, bert) = model();
    let gpu = ok(Device::open("cpu"));
    let encoder = load(folder.path(), &gpu, DType::F32);
    assert_eq!(ok(encoder.tokens("w5 w4 other")), [2, 5, 4, 1, 3]);
    // An empty text is what the model adds to each.
    let texts = ["w5 w4 other", "", "w39"];
    let vectors = ok(encoder.embed(&texts));
    for (vector, tokens) in vectors.iter().zip([&[2, 5, 4, 1, 3][..], &[2, 3], &[2, 39, 3]]) {
        assert!(distance(vector, &bert.vector(tokens)) < 2e-5);
    }
    // Longer texts are truncated, and end as others do.
    let long = "w9 ".repeat(50);
    let tokens = ok(encoder.tokens(&long));
    assert_eq!((tokens.len(), encoder.max_length()), (20, 20));
    assert_eq!((tokens[0], tokens[18], tokens[19]), (2, 9, 3));
    assert!(distance(&ok(encoder.embed(&[long]))[0], &bert.vector(&tokens)) < 2e-5);
    assert_eq!(ok(encoder.embed::<&str>(&[])), Vec::<Vec<f32>>::new());
    assert_eq!(*ok(encoder.embed_tensor::<&str>(&[])).shape(), [0, HIDDEN]);
}

#[test]
fn batch_is_one_submission() {
    let (folder, _) = model();
    let faults = testing::FaultPlan::new(testing::Fault::DeviceLost, u64::MAX);
    let gpu = testing::open_with_faults("cpu", &faults).expect("the CPU device");
    let encoder = load(folder.path(), &gpu, DType::F32);
    let kernels = ok(encoder.plan().explain()).kernels.len();
    for count in [1, 30] {
        let texts = tokens(&mut Random(6), count, 16);
        // The second run of sizes records, and later ones replay.
        for _ in 0..2 {
            drop(ok(encoder.embed_tokens(&texts)));
        }
        let before = faults.calls();
        drop(ok(encoder.embed_tokens(&texts)));
        // Memory for tokens, parameters and vectors, what the host writes to it, and a submission.
        let calls = faults.calls() - before;
        assert!(kernels >= 20 && calls <= 8, "{calls} calls for {kernels} kernels");
    }
}

#[test]
fn few_kernels_serve_all_sizes() {
    let (folder, _) = model();
    let gpu = ok(Device::with_backend(scry_gpu::BackendKind::Cpu));
    let encoder = load(folder.path(), &gpu, DType::F32);
    let mut random = Random(8);
    let mut run = || {
        let (batch, length) = (1 + random.below(64), 1 + random.below(20));
        let texts = vec![vec![5u32; length]; batch];
        drop(ok(encoder.embed_tokens(&texts)));
        compiled_kernels(&gpu)
    };
    let first = run();
    let mut tenth = 0;
    let mut last = 0;
    for n in 1..200 {
        last = run();
        if n == 9 {
            tenth = last;
        }
    }
    assert_eq!(tenth, last, "no kernel is compiled after the tenth run");
    assert!(last <= 2 * first, "{first} kernels for one size, {last} for 200");
    assert!(encoder.plan().compiled_kernels() <= last);
}

#[test]
fn bad_tokens_are_errors() {
    let (folder, _) = model();
    let gpu = ok(Device::open("cpu"));
    let encoder = load(folder.path(), &gpu, DType::F32);
    let error = |text: &[u32]| encoder.embed_tokens(&[&[4], text]).unwrap_err();
    assert_eq!(error(&[]).kind(), ErrorKind::Value);
    assert_eq!(
        error(&[40]).to_string(),
        "Encoder::embed_tokens: text 1 has token 40, of a vocabulary of 40; help: use the tokens \
         of this model's tokenizer"
    );
    assert_eq!(
        error(&[4; 21]).to_string(),
        "Encoder::embed_tokens: text 1 has 21 tokens, not 1 to 20; help: use the tokens of \
         `Encoder::tokens`, which truncates"
    );
    let integers = Encoder::options().dtype(DType::I32).load(folder.path(), &gpu);
    assert_eq!(integers.map(drop).unwrap_err().kind(), ErrorKind::DType);
}

#[test]
fn bad_folders_are_errors() {
    let (folder, _) = model();
    let gpu = ok(Device::open("cpu"));
    let load = || Encoder::load(folder.path(), &gpu).map(drop).unwrap_err();
    let path = folder.path().join("config.json");
    let config = ok(std::fs::read_to_string(&path));
    let change = |from: &str, to: &str| {
        assert!(config.contains(from));
        ok(std::fs::write(&path, config.replace(from, to)));
        load()
    };
    let error = change("\"bert\"", "\"t5\"");
    assert!(error.to_string().contains("`model_type` is `t5`"), "{error}");
    assert_eq!(error.path(), Some(&*path));
    let error = change("\"hidden_size\":32", "\"hidden_size\":-1");
    assert!(error.to_string().contains("`hidden_size` is -1"), "{error}");
    let error = change("\"num_hidden_layers\":2", "\"num_hidden_layers\":3");
    assert_eq!((error.kind(), error.missing().len()), (ErrorKind::Keys, 16));
    let error = change("\"num_hidden_layers\":2", "\"num_hidden_layers\":1");
    assert_eq!(error.unexpected().len(), 16);
    let error = change("\"intermediate_size\":48", "\"intermediate_size\":64");
    assert_eq!(error.kind(), ErrorKind::Shape);
    let error = change("\"max_position_embeddings\":24", "\"max_position_embeddings\":1");
    assert!(error.to_string().contains("`max_position_embeddings` is 1"), "{error}");
    let error = change("\"num_hidden_layers\":2", "\"num_hidden_layers\":1000");
    let expected = "`num_hidden_layers` is 1000, but the file has only 38 tensors";
    assert!(error.to_string().contains(expected), "{error}");
    ok(std::fs::write(&path, &config));
    let long = Encoder::options().max_length(25).load(folder.path(), &gpu);
    assert_eq!(long.map(drop).unwrap_err().kind(), ErrorKind::Value);
    let modules = folder.path().join("modules.json");
    ok(std::fs::write(&modules, r#"[{"type": "sentence_transformers.models.Dense"}]"#));
    assert!(load().to_string().contains("models.Dense\" is not supported"), "{}", load());
    ok(std::fs::remove_file(&modules));
    let pooling = folder.path().join("1_Pooling/config.json");
    let both = r#"{"pooling_mode_mean_tokens": true, "pooling_mode_lasttoken": true}"#;
    ok(std::fs::write(&pooling, both));
    assert!(load().to_string().contains("pooling by"), "{}", load());
    ok(std::fs::remove_file(&path));
    let missing = load();
    assert_eq!(missing.kind(), ErrorKind::Io);
    assert!(missing.to_string().contains("nothing is downloaded"), "{missing}");
}
