//! Tests of errors on devices without optional features.

use scry_conformance::find;
use scry_gpu::{Device, Features, GpuError};

use crate::harness::assert_contains;

/// Checks that the device rejects the kernel because of the feature.
fn assert_unsupported(gpu: &Device, feature: Features, source: &str) {
    let error = gpu.compile(source).expect_err("the device lacks the feature");
    assert_contains(&error.to_string(), &["main", &feature.to_string(), gpu.name()]);
    let GpuError::Unsupported(error) = error else {
        panic!("not a capability error: {error}");
    };
    assert!(error.features().contains(feature));
}

/// Runs on the null device, which can be configured without features: others may have all of them.
#[test]
fn missing_features_are_named() {
    let mut info = scry_gpu::testing::null_info();
    info.features = Features::empty();
    let (gpu, _) = scry_gpu::testing::observed(info);
    for (feature, name) in [
        (Features::F16, "half_precision_floats"),
        (Features::I16, "integers_of_16_bits_wrap"),
        (Features::I64, "integers_of_64_bits"),
        (Features::F64, "double_precision_floats"),
        (Features::F32_ATOMICS, "atomic_floats"),
        (Features::I64_ATOMICS, "atomic_integers_of_64_bits"),
        (Features::SUBGROUPS, "subgroup_operations"),
    ] {
        let test = find("features", name).expect("a test of the list");
        for case in (test.cases)(gpu.info()) {
            assert_eq!(case.needs.features, feature);
            assert_unsupported(&gpu, feature, &case.source);
        }
    }
}
