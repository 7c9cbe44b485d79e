//! `sign`, `abs`, negation, `min`, `max` and `clamp`: none of the instructions that a driver
//! miscompiles.

use rspirv::dr::{Instruction, Module, Operand};
use rspirv::spirv::Op;
use scry_ir::{Features, Options, Program};

use crate::support::{WORKED_AROUND, code, have_validator, id, load, validate};

fn module(ty: &str, body: &str) -> Module {
    let source = format!(
        "enable f16;
        enable wgpu_int16;
        @group(0) @binding(0) var<storage, read_write> s: array<{ty}>;
        @group(0) @binding(1) var<storage, read_write> v: array<vec3<{ty}>>;
        @compute @workgroup_size(1) fn main() {{ {body} }}"
    );
    let options = Options { features: Features::all(), ..Options::default() };
    let program = Program::with_options(&source, &options).unwrap_or_else(|e| panic!("{e}"));
    let words = program.to_spirv_with_naga(&WORKED_AROUND).unwrap();
    if have_validator("numbers") {
        validate(&words).unwrap_or_else(|e| panic!("{ty}, {body}: {e}"));
    }
    load(&words)
}

fn count(module: &Module, op: Op) -> usize {
    code(module).filter(|i| i.class.opcode == op).count()
}

/// Returns the instructions for a function of GLSL.std.450.
fn calls(module: &Module, function: u32) -> Vec<&Instruction> {
    let function = Operand::LiteralExtInstInteger(function);
    let calls = code(module).filter(|i| i.class.opcode == Op::ExtInst);
    calls.filter(|i| i.operands[1] == function).collect()
}

const SABS: u32 = 5;
const FSIGN: u32 = 6;
const SSIGN: u32 = 7;
const UMIN: u32 = 38;
const SMIN: u32 = 39;
const UMAX: u32 = 41;
const SMAX: u32 = 42;
const UCLAMP: u32 = 44;
const SCLAMP: u32 = 45;

/// Returns the bits of an integer, or of a component of an integer vector.
fn width(module: &Module, ty: u32) -> u32 {
    let found = module.types_global_values.iter().find(|i| i.result_id == Some(ty));
    match found.unwrap().operands[0] {
        Operand::LiteralBit32(width) => width,
        ref component => width(module, id(component).unwrap()),
    }
}

#[test]
fn signs_of_integers_are_bounded_numbers() {
    for ty in ["i16", "i32", "i64"] {
        for body in ["s[0] = sign(~s[1]);", "v[0] = sign(v[1]);"] {
            let module = module(ty, body);
            let calls = [SSIGN, SMIN, SMAX].map(|function| calls(&module, function).len());
            assert_eq!(calls, [0, 1, 1], "{ty}, {body}");
        }
    }
}

#[test]
fn signs_of_floats_are_chosen() {
    for ty in ["f16", "f32", "f64"] {
        for body in ["s[0] = sign(s[1]);", "v[0] = sign(v[1]);"] {
            let module = module(ty, body);
            assert_eq!(calls(&module, FSIGN).len(), 0, "{ty}, {body}");
            assert_eq!(count(&module, Op::Select), 2, "{ty}, {body}");
        }
    }
}

#[test]
fn abs_is_written_as_max() {
    for ty in ["i16", "i32", "i64"] {
        for body in ["s[0] = abs(s[1]);", "v[0] = abs(v[1]);"] {
            let module = module(ty, body);
            let calls = [SABS, SMAX].map(|function| calls(&module, function).len());
            assert_eq!(calls, [0, 1], "{ty}, {body}");
            assert_eq!(count(&module, Op::SNegate), 0, "{ty}, {body}");
        }
    }
}

#[test]
fn mistaken_negations_are_rewritten() {
    for ty in ["i16", "i32", "i64"] {
        for (body, mistaken) in [
            ("s[0] = -s[1];", ty == "i16"),
            ("v[0] = -v[1];", ty == "i16"),
            ("s[0] = max(s[1], -s[1]);", true),
            ("let n = -v[1]; v[0] = clamp(v[2], v[1], n);", true),
            ("s[0] = sign(-s[1]);", true),
        ] {
            let module = module(ty, body);
            assert_eq!(count(&module, Op::SNegate), usize::from(!mistaken), "{ty}, {body}");
        }
    }
}

#[test]
fn subtraction_from_zero_is_negation() {
    for ty in ["i16", "i32", "i64"] {
        for (body, mistaken) in [
            ("s[0] = 0 - s[1];", ty == "i16"),
            ("v[0] = v[2] - v[1];", ty == "i16"),
            ("s[0] = max(s[1], 0 - s[1]);", true),
            ("v[0] = min(v[1], vec3() - v[1]);", true),
        ] {
            let body = body.replace("0 -", &format!("{ty}(0) -"));
            let module = module(ty, &body.replace("vec3()", &format!("vec3<{ty}>()")));
            // Lengths are also operands of subtractions.
            let subtracted = code(&module).filter(|i| i.class.opcode == Op::ISub);
            let numbers = subtracted.filter(|i| i.operands[1] != Operand::IdRef(one(&module)));
            assert_eq!(numbers.count(), usize::from(!mistaken), "{ty}, {body}");
        }
    }
}

/// The constant one of 32 bits.
fn one(module: &Module) -> u32 {
    let mut constants = module.types_global_values.iter();
    let one = constants.find(|i| i.operands == [Operand::LiteralBit32(1)]);
    one.and_then(|i| i.result_id).unwrap()
}

#[test]
fn bounds_16_bit_as_32_bit() {
    for ty in ["i16", "u16"] {
        for body in [
            "s[0] = min(s[1], s[2]);",
            "v[0] = max(v[1], v[2]);",
            "s[0] = clamp(s[1], s[2], s[3]);",
            "v[0] = clamp(v[1], v[2], v[3]);",
        ] {
            let module = module(ty, body);
            let bounds = [UMIN, SMIN, UMAX, SMAX, UCLAMP, SCLAMP];
            let bounds: Vec<_> = bounds.iter().flat_map(|bound| calls(&module, *bound)).collect();
            assert!(!bounds.is_empty(), "{ty}, {body}");
            for bound in bounds {
                assert_eq!(width(&module, bound.result_type.unwrap()), 32, "{ty}, {body}");
            }
        }
    }
}
