//! The files of real models.

use scry_models::{DType, FileFormat, Weights};

use crate::support::{MINILM, SMOLLM2, ok, real_file};

#[test]
fn minilm_is_loaded() {
    let Some(path) = real_file(MINILM) else { return };
    let gpu = ok(scry_models::Device::open("cpu"));
    let weights = ok(Weights::open(path));
    assert_eq!((weights.format(), weights.tensors().len()), (FileFormat::Safetensors, 104));
    let dict = weights.state_dict(&gpu);
    dict.ignore("embeddings.position_ids");
    dict.ignore("pooler");
    let table = ok(dict.get("embeddings.word_embeddings.weight", [30522, 384]));
    assert_eq!(table.dtype(), DType::F32);
    let half = ok(dict.get_as("embeddings.word_embeddings.weight", [30522, 384], DType::F16));
    let row = ok(half.i(1000)).cast(DType::F32);
    let error = ok(ok(row).sub(ok(table.i(1000))));
    assert!(ok(ok(error.abs()).max(..)).item::<f32>().is_ok_and(|it| it < 1e-3));
    let error = dict.finish().unwrap_err();
    assert_eq!((error.missing().len(), error.unexpected().len()), (0, 100));
}

#[test]
fn smollm2_is_loaded() {
    let Some(path) = real_file(SMOLLM2) else { return };
    let gpu = ok(scry_models::Device::open("cpu"));
    let weights = ok(Weights::open(path));
    assert_eq!((weights.format(), weights.tensors().len()), (FileFormat::Gguf, 272));
    let metadata = weights.metadata();
    assert_eq!(ok(metadata.require::<usize>("llama.block_count")), 30);
    // Those outside of layers, and the first layer.
    let is_tested = |name: &str| !name.starts_with("blk.") || name.starts_with("blk.0.");
    let tested: Vec<_> = weights.tensors().filter(|info| is_tested(info.name())).collect();
    assert_eq!(tested.len(), 11);
    for info in tested {
        let tensor = ok(weights.tensor(info.name(), &gpu));
        assert_eq!(Some(tensor.dtype()), info.stored_type().dtype());
        let largest = ok(ok(ok(ok(tensor.cast(DType::F32)).abs()).max(..)).item::<f32>());
        assert!(largest > 0.01 && largest < 100.0, "{}: {largest}", info.name());
    }
}
