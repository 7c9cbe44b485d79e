//! `mix` as an expression: the SPIR-V has no `FMix`.

use rspirv::dr::Operand;
use rspirv::spirv::Op;

use crate::support::{WORKED_AROUND, code, have_validator, load, validate};

/// `FMix` of GLSL.std.450.
const FMIX: u32 = 46;

/// Counts `FMix`, subtractions, products and sums of a kernel.
fn counts(body: &str) -> [usize; 4] {
    let source = format!(
        "enable f16;
        @group(0) @binding(0) var<storage, read_write> data: array<vec3<f32>>;
        @group(0) @binding(1) var<storage, read_write> half: array<vec2<f16>>;
        @group(0) @binding(2) var<storage, read_write> double: array<vec4<f64>>;
        @compute @workgroup_size(1) fn main() {{ {body} }}"
    );
    let options = scry_ir::Options { features: scry_ir::Features::all(), ..Default::default() };
    let program =
        scry_ir::Program::with_options(&source, &options).unwrap_or_else(|e| panic!("{body}: {e}"));
    let words = program.to_spirv_with_naga(&WORKED_AROUND).unwrap();
    if have_validator("mix") {
        validate(&words).unwrap_or_else(|e| panic!("{body}: {e}"));
    }
    let module = load(&words);
    let count = |ops: &[Op]| code(&module).filter(|i| ops.contains(&i.class.opcode)).count();
    let mix = Operand::LiteralExtInstInteger(FMIX);
    let mixes = code(&module).filter(|i| i.class.opcode == Op::ExtInst && i.operands[1] == mix);
    let products = count(&[Op::FMul, Op::VectorTimesScalar]);
    [mixes.count(), count(&[Op::FSub]), products, count(&[Op::FAdd])]
}

#[test]
fn mixes_are_their_expression() {
    for body in [
        "data[0].x = mix(data[1].x, data[1].y, data[1].z);",
        "data[0] = mix(data[1], data[2], data[3]);",
        "data[0] = mix(data[1], data[2], data[3].y);",
        "half[0].x = mix(half[1].x, half[1].y, half[2].x);",
        "half[0] = mix(half[1], half[2], half[3]);",
        "half[0] = mix(half[1], half[2], half[3].x);",
        "double[0].x = mix(double[1].x, double[1].y, 0.25lf);",
        "double[0] = mix(double[1], double[2], double[3]);",
        "double[0] = mix(double[1], double[2], double[3].x);",
    ] {
        assert_eq!(counts(body), [0, 1, 2, 1], "{body}");
    }
}

#[test]
fn each_of_several_mixes_is_rewritten() {
    let body = "let m = mix(data[1], data[2], mix(data[3].x, 2.0, data[3].y));
        if m.x > 1.0 { data[0] = mix(m, m.yzx, vec3(0.5)); }
        half[0] = mix(half[1], half[2], 0.5h);";
    assert_eq!(counts(body), [0, 4, 8, 4]);
}
