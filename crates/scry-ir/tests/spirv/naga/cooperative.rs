//! Cooperative matrices, through naga's writer.

use rspirv::spirv::Op;
use scry_ir::{Features, ShaderErrorKind, SpirvOptions};

use crate::support::{CHECKED, code, load, parse};
use crate::writer::COOPERATIVE;

const UNCHECKED: SpirvOptions = SpirvOptions { checked: false, ..CHECKED };

#[test]
fn cooperative_matrix_indices_are_unchecked() {
    let program = parse("cooperative", COOPERATIVE);
    let module = load(&program.to_spirv_with_naga(&UNCHECKED).unwrap());
    let stores = code(&module).filter(|i| i.class.opcode == Op::CooperativeMatrixStoreKHR);
    assert_eq!(stores.count(), 2);
}

#[test]
fn cooperative_matrices_are_rejected_checked() {
    // The type of a value without a variable is not among the module's types.
    let values = "enable wgpu_cooperative_matrix;
        @group(0) @binding(0) var<storage, read_write> c: array<f32>;
        fn copy(i: u32) { let m = coopLoad<coop_mat8x8<f32, C>>(&c[i]); coopStore(m, &c[0]); }
        @compute @workgroup_size(32) fn main(@builtin(workgroup_id) g: vec3u) { copy(g.x); }";
    for source in [COOPERATIVE, values] {
        let error = parse("cooperative", source).to_spirv_with_naga(&CHECKED).unwrap_err();
        assert_eq!(error.kind, ShaderErrorKind::UnsupportedFeatures(Features::COOPERATIVE_MATRIX));
        assert!(error.message.contains("unchecked"), "{error}");
    }
}
