//! safetensors files: types, conversions, folders of several files, damaged files.

use std::fs;

use scry_models::{DType, Device, ErrorKind, FileFormat, Weights};
use scry_test_support::{golden, on_each_device};

use super::expected::expected;
use super::files::{floats, safetensors};
use crate::support::ok;

/// Returns a file with one tensor `x`.
fn file(ty: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let len = data.len();
    let header = format!(r#"{{"x":{{"dtype":"{ty}","shape":{shape},"data_offsets":[0,{len}]}}}}"#);
    safetensors(&header, data)
}

fn weights(ty: &str, shape: &str, data: &[u8]) -> Weights {
    ok(Weights::from_bytes(file(ty, shape, data)))
}

#[test]
fn types_are_read_on_each_device() {
    on_each_device(|gpu| {
        let x = weights("F16", "[3]", &[0, 0x3c, 0, 0x40, 0, 0xc2]);
        let x = ok(x.tensor("x", gpu));
        assert_eq!((x.dtype(), x.numel()), (DType::F16, 3));
        assert_eq!(ok(ok(x.cast(DType::F32)).to_vec::<f32>()), [1.0, 2.0, -3.0]);
        let x = weights("I64", "[2,1]", &[(-5i64).to_le_bytes(), 7i64.to_le_bytes()].concat());
        assert_eq!(ok(ok(x.tensor("x", gpu)).to_vec::<i32>()), [-5, 7]);
        let x = weights("U8", "[2]", &[255, 0]);
        assert_eq!(ok(ok(x.tensor_as("x", DType::U32, gpu)).to_vec::<u32>()), [255, 0]);
        let x = weights("BOOL", "[3]", &[1, 0, 1]);
        assert_eq!(ok(ok(x.tensor("x", gpu)).to_vec::<bool>()), [true, false, true]);
        let x = weights("F64", "[]", &2.5f64.to_le_bytes());
        assert_eq!(ok(ok(x.tensor("x", gpu)).item::<f32>()), 2.5);
        let x = weights("F32", "[0,4]", &[]);
        assert_eq!(*ok(x.tensor("x", gpu)).shape(), [0, 4]);
    });
}

#[test]
fn conversions_round_once() {
    let gpu = ok(Device::open("cpu"));
    // In f32 the double is a tie between two values of f16, of which it is above.
    let double = 1.0 + 2f64.powi(-11) + 2f64.powi(-40);
    let x = weights("F64", "[1]", &double.to_le_bytes());
    let half = ok(ok(x.tensor_as("x", DType::F16, &gpu)).cast(DType::F32));
    assert_eq!(ok(half.item::<f32>()), 1.0 + 2f32.powi(-10));
    let values = [f32::NAN, f32::INFINITY, 65504.0, 1.0 + 2f32.powi(-11)];
    let x = weights("F32", "[4]", &floats(&values));
    let halves = ok(ok(ok(x.tensor_as("x", DType::F16, &gpu)).cast(DType::F32)).to_vec::<f32>());
    assert!(halves[0].is_nan());
    assert_eq!(halves[1..], [f32::INFINITY, 65504.0, 1.0]);
}

#[test]
fn values_out_of_range_are_rejected() {
    let gpu = ok(Device::open("cpu"));
    let x = weights("F32", "[2]", &floats(&[1.0, 1e6]));
    let texts = [
        x.tensor_as("x", DType::F16, &gpu).unwrap_err(),
        weights("I64", "[1]", &(1i64 << 40).to_le_bytes()).tensor("x", &gpu).unwrap_err(),
        weights("I8", "[1]", &[0xff]).tensor_as("x", DType::U32, &gpu).unwrap_err(),
        weights("BOOL", "[2]", &[1, 2]).tensor("x", &gpu).unwrap_err(),
        x.tensor_as("x", DType::I32, &gpu).unwrap_err(),
        x.tensor_as("x", DType::Q8_0, &gpu).unwrap_err(),
        x.tensor("y", &gpu).unwrap_err(),
        weights("F8_E4M3", "[1]", &[0]).tensor("x", &gpu).unwrap_err(),
    ];
    compare("load_errors.txt", &texts.map(|error| error.to_string()));
}

/// Compares texts with a file.
fn compare(name: &str, texts: &[String]) {
    golden::compare_file(&expected(name), &(texts.join("\n") + "\n"));
}

#[test]
fn large_tensors_are_copied_in_pieces() {
    let gpu = ok(Device::open("cpu"));
    // Two pieces of 16 MiB and a part of one, of which each has other values.
    let count = (9 << 20) + 3;
    let values: Vec<f32> = (0..count).map(|n| (n >> 10) as f32).collect();
    let x = weights("F32", &format!("[{count}]"), bytes_of(&values));
    assert!(ok(ok(x.tensor("x", &gpu)).to_vec::<f32>()) == values);
    let integers = ok(x.tensor_as("x", DType::BF16, &gpu));
    let last = ok(ok(integers.i(count - 1)).cast(DType::F32));
    assert_eq!(ok(last.item::<f32>()), 9216.0);
    let start = ok(ok(integers.i((4 << 20) - 1)).cast(DType::F32));
    assert_eq!(ok(start.item::<f32>()), 4096.0);
}

fn bytes_of(values: &[f32]) -> &[u8] {
    // SAFETY: every byte of floats is initialised, and bytes need no alignment.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

#[test]
fn files_are_read_from_disk() {
    let gpu = ok(Device::open("cpu"));
    let folder = ok(tempfile::tempdir());
    let path = folder.path().join("weights.bin");
    ok(fs::write(&path, file("F32", "[2]", &floats(&[1.0, 2.0]))));
    let opened = ok(Weights::open(&path));
    assert_eq!(opened.format(), FileFormat::Safetensors);
    assert_eq!(ok(ok(opened.tensor("x", &gpu)).to_vec::<f32>()), [1.0, 2.0]);
    {
        // SAFETY: the file does not change in this block.
        let mapped = ok(unsafe { Weights::open_mapped(&path) });
        assert_eq!(ok(ok(mapped.tensor("x", &gpu)).to_vec::<f32>()), [1.0, 2.0]);
    }
    // A file that becomes shorter is an error, not a read beyond its end.
    ok(ok(fs::File::options().write(true).open(&path)).set_len(69));
    let error = opened.tensor("x", &gpu).unwrap_err();
    assert_eq!((error.kind(), error.tensor()), (ErrorKind::Io, Some("x")));
    assert!(error.help().contains("became shorter"), "{error}");
    let error = Weights::open(folder.path().join("missing")).unwrap_err();
    assert_eq!((error.kind(), error.help()), (ErrorKind::Io, "check the path"));
}

#[test]
fn folders_have_one_model() {
    let gpu = ok(Device::open("cpu"));
    let folder = ok(tempfile::tempdir());
    let write = |name: &str, bytes: &[u8]| ok(fs::write(folder.path().join(name), bytes));
    let part = |name: &str, value: f32| {
        let header = format!(r#"{{"{name}":{{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}}}"#);
        safetensors(&header, &floats(&[value]))
    };
    let mut texts = vec![Weights::open(folder.path()).unwrap_err()];
    write("model-1.safetensors", &part("a", 1.0));
    assert_eq!(ok(Weights::open(folder.path())).tensors().len(), 1);
    write("model-2.safetensors", &part("b", 2.0));
    texts.push(Weights::open(folder.path()).unwrap_err());

    let index = |map: &str| write("model.safetensors.index.json", map.as_bytes());
    index(r#"{"weight_map":{"b":"model-2.safetensors","a":"model-1.safetensors"}}"#);
    let weights = ok(Weights::open(folder.path()));
    assert_eq!((weights.files().count(), weights.tensors().len()), (2, 2));
    assert_eq!(ok(ok(weights.tensor("b", &gpu)).to_vec::<f32>()), [2.0]);
    for wrong in [
        r#"{"weight_map":{"a":"../model-1.safetensors"}}"#,
        r#"{"weight_map":{"a":"/etc/passwd"}}"#,
        r#"{"weight_map":{"a":"model-2.safetensors"}}"#,
        r#"{"weight_map":{}}"#,
        r#"{"weight_map":7}"#,
        r#"{"weight_map":"#,
    ] {
        index(wrong);
        texts.push(Weights::open(folder.path()).unwrap_err());
    }
    index(r#"{"weight_map":{"a":"model-1.safetensors","b":"model-2.safetensors"}}"#);
    let both = r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},
        "b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}"#;
    write("model-2.safetensors", &safetensors(both, &floats(&[1.0, 2.0])));
    texts.push(Weights::open(folder.path()).unwrap_err());
    let folder = format!("{}/", folder.path().display());
    let texts: Vec<String> = texts
        .iter()
        .map(|error| {
            (error.to_string() + " ")
                .replace(&folder, "")
                .replace(&folder[..folder.len() - 1], "FOLDER")
        })
        .map(|text| text.trim_end().to_owned())
        .collect();
    compare("folder_errors.txt", &texts);
}

#[test]
fn damage_is_described() {
    let entry = |ty: &str, shape: &str, offsets: &str| {
        let header =
            format!(r#"{{"x":{{"dtype":"{ty}","shape":{shape},"data_offsets":{offsets}}}}}"#);
        safetensors(&header, &[0; 8])
    };
    let sized = |size: u64| [size.to_le_bytes().as_slice(), b"{}"].concat();
    let files = [
        vec![1, 2, 3],
        sized(3),
        sized(1 << 40),
        sized(u64::MAX),
        safetensors("{]", &[]),
        safetensors("{\"x\":\n  {\"dtype\":\"F33\"}}", &[]),
        entry("F32", "[2]", "[0,4]"),
        entry("F32", "[2]", "[8,0]"),
        entry("F32", "[4]", "[0,16]"),
        entry("F32", "[1]", "[0,4]"),
        entry("F32", "[4294967296,4294967296,4]", "[0,8]"),
        entry("F32", "[-1]", "[0,8]"),
        b"PK\x03\x04\0\0\0\0\0\0".to_vec(),
        b"\x80\x02}q\0\0\0\0\0\0".to_vec(),
    ];
    let texts = files.map(|file| {
        let error = Weights::from_bytes(file).unwrap_err();
        assert!(error.kind() == ErrorKind::Format && error.offset().is_some(), "{error}");
        error.to_string()
    });
    compare("safetensors_errors.txt", &texts);
}
