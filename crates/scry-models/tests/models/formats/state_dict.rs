//! Loading by path.

use scry_models::{DType, Device, ErrorKind, Weights};

use super::files::{Gguf, floats, small_gguf};
use crate::support::ok;

fn model() -> Weights {
    let layer = |file: Gguf, n: u32| {
        file.tensor(&format!("layer.{n}.weight"), &[2, 2], 0, &floats(&[n as f32; 4])).tensor(
            &format!("layer.{n}.bias"),
            &[2],
            0,
            &floats(&[0.5; 2]),
        )
    };
    ok(Weights::from_bytes(layer(layer(small_gguf(), 0), 1).build()))
}

#[test]
fn scopes_are_paths() {
    let gpu = ok(Device::open("cpu"));
    let weights = model();
    let dict = weights.state_dict(&gpu).with_float_dtype(DType::F16);
    let layers = dict.scope("layer");
    for n in 0..2 {
        let layer = layers.scope(&n.to_string());
        assert_eq!(layer.path("bias"), format!("layer.{n}.bias"));
        let weight = ok(layer.get("weight", [2, 2]));
        assert_eq!(weight.dtype(), DType::F16);
        assert_eq!(ok(layer.get_as("bias", [2], DType::F32)).dtype(), DType::F32);
        assert!(ok(layer.find("scale", [2])).is_none());
    }
    assert_eq!(ok(dict.get("q", [1, 32])).dtype(), DType::Q8_0);
    for name in ["x", "h", "b"] {
        dict.ignore(name);
    }
    ok(layers.finish());
    ok(dict.finish());
}

#[test]
fn ignored_paths_end_at_dots() {
    let gpu = ok(Device::open("cpu"));
    let weights = model();
    let dict = weights.state_dict(&gpu);
    dict.ignore("layer.0");
    dict.ignore("layer.1.wei");
    let error = dict.finish().unwrap_err();
    assert_eq!(error.unexpected(), ["x", "h", "b", "q", "layer.1.weight", "layer.1.bias"]);
}

#[test]
fn all_problems_are_in_one_error() {
    let gpu = ok(Device::open("cpu"));
    let weights = model();
    let dict = weights.state_dict(&gpu);
    let layer = dict.scope("layer.0");
    let wrong = ok(layer.get("weight", [4, 1]));
    assert!(ok(wrong.to_vec::<f32>()).iter().all(|value| value.is_nan()));
    let missing = ok(layer.get("scale", [2]));
    assert!(ok(missing.to_vec::<f32>()).iter().all(|value| value.is_nan()));
    dict.ignore("layer.1");
    let error = dict.finish().unwrap_err();
    assert_eq!(
        (error.kind(), error.missing()),
        (ErrorKind::Keys, &["layer.0.scale".to_owned()][..])
    );
    assert_eq!(
        error.to_string(),
        "StateDict::finish (memory): the tensors do not fit the model; missing (1): \
         `layer.0.scale`; shape mismatch (1): `layer.0.weight` has the shape [2, 2], but the model \
         needs [4, 1]; unexpected (5): `x`, `h`, `b`, `q`, `layer.0.bias`; help: use weights of \
         this \
         model, or call `StateDict::ignore` for tensors that it does not use"
    );
}

#[test]
fn shapes_alone_are_errors_of_shapes() {
    let gpu = ok(Device::open("cpu"));
    let weights = ok(Weights::from_bytes(
        Gguf::default().tensor("w", &[2, 2], 0, &floats(&[0.0; 4])).build(),
    ));
    let dict = weights.state_dict(&gpu);
    ok(dict.get("w", [4]));
    assert_eq!(dict.finish().unwrap_err().kind(), ErrorKind::Shape);
}
