//! GGUF files: what is read, and how damaged files are rejected.

use scry_models::{Array, DType, ErrorKind, FileFormat, Tensor, Value, Weights};
use scry_test_support::{golden, on_each_device};

use super::expected::expected;
use super::files::{Gguf, floats, small_gguf, text};
use crate::support::ok;

#[test]
fn metadata_is_read() {
    let weights = ok(Weights::from_bytes(small_gguf().build()));
    let metadata = weights.metadata();
    assert_eq!((weights.format(), metadata.len()), (FileFormat::Gguf, 8));
    assert_eq!(ok(metadata.require::<usize>("test.layers")), 3);
    assert_eq!(ok(metadata.require::<f32>("test.scale")), 0.5);
    assert!(ok(metadata.require::<bool>("test.is_causal")));
    assert_eq!(ok(metadata.require::<u64>("test.big")), u64::MAX);
    assert_eq!(ok(metadata.require::<i64>("test.small")), -7);
    assert_eq!(ok(metadata.require::<&[String]>("test.words")), ["a", "", "日本"]);
    let inner = Array::U32(vec![7, 8]);
    assert_eq!(metadata.get("test.nested"), Some(&Value::Array(Array::Array(vec![inner]))));
    assert_eq!(ok(metadata.find::<u32>("test.other")), None);
    let texts = [
        metadata.require::<u32>("test.other").unwrap_err(),
        metadata.require::<u32>("test.big").unwrap_err(),
        metadata.require::<&str>("test.layers").unwrap_err(),
    ];
    assert_eq!(texts[0].kind(), ErrorKind::Keys);
    assert_eq!(
        texts[1].to_string(),
        "Metadata::require (memory): `test.big` is 18446744073709551615 (type u64), but must be an \
         integer from 0 to 2^32 - 1; help: read the key as another type, or convert the model to \
         GGUF again"
    );
    assert_eq!(texts[2].kind(), ErrorKind::DType);
}

#[test]
fn tensors_are_read_on_each_device() {
    let weights = ok(Weights::from_bytes(small_gguf().build()));
    on_each_device(|gpu| {
        let values = |name: &str| {
            let tensor = ok(weights.tensor_as(name, DType::F32, gpu));
            ok(tensor.to_vec::<f32>())
        };
        assert_eq!(values("x"), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(values("h"), [1.0, 2.0, -3.0]);
        assert_eq!(values("b"), [1.5]);
        assert_eq!(values("q"), [2.0; 32]);
        let types = ["x", "h", "b", "q"].map(|name| ok(weights.tensor(name, gpu)).dtype());
        assert_eq!(types, [DType::F32, DType::F16, DType::BF16, DType::Q8_0]);
        assert_eq!(*ok(weights.tensor("x", gpu)).shape(), [2, 3]);
    });
}

#[test]
fn quantised_types_are_not_converted() {
    let gpu = ok(scry_models::Device::open("cpu"));
    let types = [
        (2, DType::Q4_0, 32, 18),
        (3, DType::Q4_1, 32, 20),
        (8, DType::Q8_0, 32, 34),
        (12, DType::Q4K, 256, 144),
        (13, DType::Q5K, 256, 176),
        (14, DType::Q6K, 256, 210),
    ];
    for (number, dtype, len, bytes) in types {
        // Small scales, wherever the type has them, and weights that differ.
        let blocks: Vec<u8> =
            (0..3 * bytes).map(|n| if n % 2 == 1 { 0x20 } else { n as u8 }).collect();
        let file = Gguf::default().tensor("w", &[3, len], number, &blocks).build();
        let weights = ok(Weights::from_bytes(file));
        let tensor = ok(weights.tensor("w", &gpu));
        assert_eq!(tensor.dtype(), dtype);
        let wanted = ok(Tensor::from_blocks(&blocks, dtype, [3, len as usize], &gpu));
        let values = |tensor: &Tensor| ok(ok(tensor.cast(DType::F32)).to_vec::<f32>());
        assert_eq!(values(&tensor), values(&wanted), "{dtype}");
        assert_eq!(values(&ok(weights.tensor_as("w", DType::F32, &gpu))), values(&wanted));
    }
}

/// Returns the text of the error of a file.
fn rejection(file: impl Into<Box<[u8]>>) -> String {
    let error = Weights::from_bytes(file).expect_err("the file is damaged");
    assert_eq!(error.kind(), ErrorKind::Format, "{error}");
    assert!(error.offset().is_some() && !error.help().is_empty(), "{error}");
    error.to_string()
}

#[test]
fn every_truncation_is_rejected() {
    let file = small_gguf().build();
    // The last bytes are padding.
    for len in 9..file.len() - 30 {
        rejection(&file[..len]);
    }
}

#[test]
fn damage_is_described() {
    let file = small_gguf().build();
    let with = |at: usize, bytes: &[u8]| {
        let mut file = file.clone();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        file
    };
    let array = |ty: u32, len: u64| [ty.to_le_bytes().as_slice(), &len.to_le_bytes()].concat();
    let pair = |ty: u32, value: &[u8]| Gguf::default().pair("k", ty, value).build();
    let deep = [array(9, 1), array(9, 1), array(9, 1), array(9, 1), array(9, 1), array(4, 0)];
    let data = floats(&[0.0; 8]);
    let tensor = |shape: &[u64], ty| Gguf::default().tensor("w", shape, ty, &data).build();
    let placed = |offset| Gguf::default().tensor_at("w", &[8], 0, &data, offset).build();
    let two = |a: &str, b: &str, at| {
        Gguf::default().tensor(a, &[8], 0, &data).tensor_at(b, &[8], 0, &data, at).build()
    };
    let texts = [
        rejection(with(4, &1u32.to_le_bytes())),
        rejection(with(4, &4u32.to_le_bytes())),
        rejection(with(4, &3u32.to_be_bytes())),
        rejection(with(8, &u64::MAX.to_le_bytes())),
        rejection(with(16, &(1u64 << 61).to_le_bytes())),
        rejection(with(24, &(1u64 << 63).to_le_bytes())),
        rejection(with(32, &[0xff])),
        rejection(small_gguf().string("test.scale", "again").build()),
        rejection(pair(13, &[0; 8])),
        rejection(pair(7, &[2])),
        rejection(pair(8, &(1u64 << 40).to_le_bytes())),
        rejection(pair(9, &array(10, 1 << 62))),
        rejection(pair(9, &array(8, 1 << 30))),
        rejection(pair(9, &array(99, 1))),
        rejection(pair(9, &deep.concat())),
        rejection(Gguf::default().pair("general.alignment", 4, &12u32.to_le_bytes()).build()),
        rejection(Gguf::default().pair("split.count", 2, &3u16.to_le_bytes()).build()),
        rejection(tensor(&[1; 5], 0)),
        rejection(tensor(&[u64::MAX, 2], 0)),
        rejection(tensor(&[1 << 62], 0)),
        rejection(tensor(&[31], 8)),
        rejection(tensor(&[8], 4)),
        rejection(tensor(&[8], 77)),
        rejection(placed(8)),
        rejection(placed(32)),
        rejection(placed(u64::MAX - 31)),
        rejection(two("a", "b", 0)),
        rejection(two("a", "a", 32)),
        rejection(*b"GGUF\x03\0\0\0\0\0"),
    ];
    golden::compare_file(&expected("gguf_errors.txt"), &(texts.join("\n") + "\n"));
}

#[test]
fn alignment_of_the_file_is_used() {
    let gpu = ok(scry_models::Device::open("cpu"));
    let file = Gguf::default()
        .pair("general.alignment", 4, &8u32.to_le_bytes())
        .tensor_at("w", &[2], 0, &floats(&[1.0, 2.0]), 0)
        .build();
    // The builder aligns to 32 bytes; the description ends elsewhere.
    let end = 24 + text("general.alignment").len() + 8 + text("w").len() + 4 + 8 + 4 + 8;
    let mut aligned = file[..end].to_vec();
    aligned.resize(end.next_multiple_of(8), 0);
    aligned.extend(floats(&[1.0, 2.0]));
    let weights = ok(Weights::from_bytes(aligned));
    assert_eq!(ok(ok(weights.tensor("w", &gpu)).to_vec::<f32>()), [1.0, 2.0]);
}

#[test]
fn unsupported_types_are_named() {
    let gpu = ok(scry_models::Device::open("cpu"));
    let file = Gguf::default().tensor("w", &[256], 10, &[0; 84]).build();
    let weights = ok(Weights::from_bytes(file));
    assert_eq!(weights.info("w").unwrap().stored_type().name(), "q2_k");
    let error = weights.tensor("w", &gpu).unwrap_err();
    assert_eq!((error.kind(), error.tensor()), (ErrorKind::DType, Some("w")));
    assert!(error.to_string().contains("the type q2_k is not supported"), "{error}");
}

/// A sparse file is as long as it says, but has no data.
#[test]
fn strings_of_sparse_files_are_limited() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("sparse.gguf");
    let mut bytes = b"GGUF\x03\0\0\0".to_vec();
    bytes.extend([0u64.to_le_bytes(), 1u64.to_le_bytes(), 1u64.to_le_bytes()].concat());
    bytes.extend([b"k".as_slice(), &8u32.to_le_bytes(), &(1u64 << 39).to_le_bytes()].concat());
    std::fs::write(&path, bytes).expect("there is space");
    let file = std::fs::File::options().write(true).open(&path).expect("it was written");
    if file.set_len(1 << 40).is_err() {
        return println!("skipped: the file system has no sparse files of 1 TiB");
    }
    let error = Weights::open(&path).map(drop).expect_err("it is too long");
    assert!(
        error.to_string().contains("549755813888 bytes long; the limit is 67108864"),
        "{error}"
    );
}
