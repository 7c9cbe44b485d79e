//! Integer divisions are of scalars, with a guard only if the divisor may need it.

use rspirv::dr::Module;
use rspirv::spirv::Op;
use scry_ir::{Features, Options, Program, SpirvOptions};

use crate::support::{CHECKED, WORKED_AROUND, code, have_validator, load, validate};

fn module(ty: &str, body: &str) -> Module {
    written(ty, body, &WORKED_AROUND)
}

fn written(ty: &str, body: &str, written: &SpirvOptions) -> Module {
    let source = format!(
        "enable wgpu_int16;
        @group(0) @binding(0) var<storage, read_write> s: array<{ty}>;
        @group(0) @binding(1) var<storage, read_write> v: array<vec3<{ty}>>;
        const FIVE = {ty}(5);
        const FIVES = vec3<{ty}>(5, 6, 7);
        @compute @workgroup_size(1) fn main() {{ {body} }}"
    );
    let options = Options { features: Features::all(), ..Options::default() };
    let program = Program::with_options(&source, &options).unwrap_or_else(|e| panic!("{e}"));
    let words = program.to_spirv_with_naga(&SpirvOptions { checked: false, ..*written }).unwrap();
    if have_validator("integers") {
        validate(&words).unwrap_or_else(|e| panic!("{ty}, {body}: {e}"));
    }
    load(&words)
}

fn count(module: &Module, ops: &[Op]) -> usize {
    code(module).filter(|i| ops.contains(&i.class.opcode)).count()
}

const DIVISIONS: [Op; 2] = [Op::SDiv, Op::UDiv];
const REMAINDERS: [Op; 3] = [Op::UMod, Op::SRem, Op::SMod];
const TYPES: [&str; 6] = ["i16", "i32", "i64", "u16", "u32", "u64"];

#[test]
fn constant_divisors_need_no_guard() {
    for ty in TYPES {
        for body in [
            "s[0] = s[1] / FIVE;",
            "v[0] = v[1] / FIVES;",
            "v[0] = v[1] / FIVE;",
            "s[0] = s[1] % FIVE;",
            "v[0] = v[1] % FIVES;",
        ] {
            let module = module(ty, body);
            assert_eq!(module.functions.len(), 1, "{ty}, {body}");
            assert_eq!(count(&module, &[Op::Select]), 0, "{ty}, {body}");
            let divided = count(&module, &DIVISIONS) + count(&module, &[Op::UMod]);
            assert_eq!(divided, components(body), "{ty}, {body}");
        }
    }
}

/// Vectors have three components here, which are divided separately.
fn components(body: &str) -> usize {
    if body.starts_with('v') { 3 } else { 1 }
}

#[test]
fn only_scalars_are_divided() {
    for ty in TYPES {
        for body in ["v[0] = v[1] / v[2];", "v[0] %= FIVES;", "v[0] = vec3(s[0]) / vec3(s[1]);"] {
            let module = module(ty, body);
            let vector = module.types_global_values.iter();
            let vector: Vec<_> =
                vector.filter(|i| i.class.opcode == Op::TypeVector).map(|i| i.result_id).collect();
            let ops = [&DIVISIONS[..], &REMAINDERS].concat();
            let mut divisions = code(&module).filter(|i| ops.contains(&i.class.opcode));
            assert!(divisions.all(|i| !vector.contains(&i.result_type)), "{ty}, {body}");
        }
    }
}

#[test]
fn vector_division_is_split_on_request() {
    for ty in TYPES {
        for body in ["v[0] = v[1] / v[2];", "v[0] %= v[2];", "v[0] = vec3(s[0]) / vec3(s[1]);"] {
            let module = written(ty, body, &CHECKED);
            let divided = count(&module, &DIVISIONS) + count(&module, &[Op::UMod]);
            assert_eq!((divided, count(&module, &[Op::Select])), (1, 1), "{ty}, {body}");
            assert_eq!(count(&module, &[Op::SRem, Op::SMod]), 0, "{ty}, {body}");
        }
        let module = written(ty, "v[0] = v[1] / FIVES;", &CHECKED);
        assert_eq!((count(&module, &DIVISIONS), count(&module, &[Op::Select])), (1, 0), "{ty}");
    }
}

#[test]
fn splat_operands_are_divided_once() {
    for ty in TYPES {
        for body in ["v[0] = vec3(s[0]) / FIVE;", "v[0] = vec3(s[0]) % vec3(s[1]);"] {
            let module = module(ty, body);
            let divided = count(&module, &DIVISIONS) + count(&module, &[Op::UMod]);
            assert_eq!(divided, 1, "{ty}, {body}");
        }
    }
}

#[test]
fn possible_zero_or_overflow_is_guarded() {
    for ty in TYPES {
        let is_signed = ty.starts_with('i');
        for body in ["s[0] = s[1] / s[2];", "v[0] = v[1] / v[2];", "v[0] %= v[2];"] {
            let module = module(ty, body);
            let parts = components(body);
            assert_eq!(count(&module, &[Op::Select]), parts, "{ty}, {body}");
            let compared = if is_signed { 3 } else { 1 };
            assert_eq!(count(&module, &[Op::IEqual]), parts * compared, "{ty}, {body}");
        }
        if is_signed {
            let by_minus_one = format!("s[0] = s[1] / {ty}(-1); v[0] = v[1] % {ty}(-1);");
            assert_eq!(count(&module(ty, &by_minus_one), &[Op::Select]), 4, "{ty}");
        }
    }
}

#[test]
fn signed_remainder_uses_the_quotient() {
    for ty in ["i16", "i32", "i64"] {
        for body in ["s[0] = s[1] % s[2];", "v[0] = v[1] % FIVES;", "s[0] %= FIVE;"] {
            let module = module(ty, body);
            assert_eq!(count(&module, &REMAINDERS), 0, "{ty}, {body}");
            let parts = [&DIVISIONS[..], &[Op::IMul], &[Op::ISub]];
            let all = components(body);
            assert_eq!(parts.map(|ops| count(&module, ops)), [all; 3], "{ty}, {body}");
        }
    }
}
