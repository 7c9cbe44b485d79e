//! Tests that kernels which WGSL cannot express are rejected, with an error that names the feature.

use scry_ir::{Features, ShaderErrorKind};

use crate::support::emit;

/// Emits a kernel, which must be rejected; returns the message and the kind of the error.
fn emit_error(source: &str) -> (String, ShaderErrorKind) {
    let error = emit(source).expect_err("WGSL lacks something that the kernel uses");
    assert!(error.message.contains("; help: "), "{}", error.message);
    (error.message, error.kind)
}

#[test]
fn types_of_64_bits_are_rejected() {
    let error_for = |ty: &str| {
        emit_error(&format!(
            "@group(0) @binding(0) var<storage, read_write> data: array<{ty}>;
             @compute @workgroup_size(1) fn main() {{ data[0] += data[1]; }}"
        ))
    };
    let kind = ShaderErrorKind::UnsupportedFeatures;
    let (message, f64) = error_for("f64");
    assert_eq!(
        message,
        "WGSL has no 64-bit floats (f64); help: emit SPIR-V or PTX, or use 32-bit types"
    );
    assert_eq!(f64, kind(Features::F64));
    assert_eq!(error_for("u64").1, kind(Features::I64));
    assert_eq!(error_for("i64").1, kind(Features::I64));
}

#[test]
fn atomics_of_floats_are_rejected() {
    let (message, kind) = emit_error(
        "@group(0) @binding(0) var<storage, read_write> sum: atomic<f32>;
         @compute @workgroup_size(1) fn main() { atomicAdd(&sum, 1.0); }",
    );
    assert!(message.starts_with("WGSL has no atomics of floats (atomic<f32>)"), "{message}");
    assert_eq!(kind, ShaderErrorKind::UnsupportedFeatures(Features::F32_ATOMICS));
}

#[test]
fn cooperative_matrices_are_rejected() {
    let (message, kind) = emit_error(
        "enable wgpu_cooperative_matrix;
         @group(0) @binding(0) var<storage, read_write> data: array<f32>;
         @compute @workgroup_size(32) fn main() {
             let a = coopLoad<coop_mat8x8<f32, A>>(&data[0], 8u);
             let b = coopLoad<coop_mat8x8<f32, B>>(&data[64], 8u);
             let c = coopLoad<coop_mat8x8<f32, C>>(&data[128], 8u);
             coopStore(coopMultiplyAdd(a, b, c), &data[128], 8u);
         }",
    );
    assert!(message.starts_with("WGSL has no cooperative matrices"), "{message}");
    assert_eq!(kind, ShaderErrorKind::UnsupportedFeatures(Features::COOPERATIVE_MATRIX));
}

#[test]
fn subgroup_barriers_are_rejected() {
    let (message, _) = emit_error("@compute @workgroup_size(1) fn main() { subgroupBarrier(); }");
    assert_eq!(message, "WGSL has no subgroup barriers; help: use workgroupBarrier() instead");
}

#[test]
fn deep_nesting_is_rejected() {
    let nested = |depth: usize| {
        let open = "if x[0] > 0 { x[0] -= 1;".repeat(depth);
        let close = "}".repeat(depth);
        emit(&format!(
            "@group(0) @binding(0) var<storage, read_write> x: array<i32>;
             fn inner() {{ {open} {close} }}
             @compute @workgroup_size(1) fn main() {{ {open} inner(); {close} }}"
        ))
    };
    assert!(nested(63).is_ok());
    let error = nested(64).expect_err("it is too deep");
    assert_eq!(error.kind, ShaderErrorKind::TooComplex);
    let expected = "statements are nested 129 deep, and in WGSL at most 127";
    assert!(error.message.starts_with(expected), "{}", error.message);
}
