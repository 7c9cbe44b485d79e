//! Integer divisions: a guard where the divisor may need it, and only there.

use rspirv::dr::Module;
use rspirv::spirv::Op;
use scry_ir::{Features, Options, Program, SpirvOptions};

use crate::support::{CHECKED, code, have_validator, load, validate};

fn module(ty: &str, body: &str) -> Module {
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
    let words = program.to_spirv(&SpirvOptions { checked: false, ..CHECKED }).unwrap();
    if have_validator("divisions") {
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
fn constants_are_divided_by_as_they_are() {
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
            assert_eq!(divided, 1, "{ty}, {body}");
        }
    }
}

#[test]
fn what_may_be_zero_or_overflow_is_guarded() {
    for ty in TYPES {
        let is_signed = ty.starts_with('i');
        for body in ["s[0] = s[1] / s[2];", "v[0] = v[1] / v[2];", "v[0] %= v[2];"] {
            let module = module(ty, body);
            assert_eq!(count(&module, &[Op::Select]), 1, "{ty}, {body}");
            let compared = if is_signed { 3 } else { 1 };
            assert_eq!(count(&module, &[Op::IEqual]), compared, "{ty}, {body}");
        }
        if is_signed {
            let by_minus_one = format!("s[0] = s[1] / {ty}(-1); v[0] = v[1] % {ty}(-1);");
            assert_eq!(count(&module(ty, &by_minus_one), &[Op::Select]), 2, "{ty}");
        }
    }
}

#[test]
fn remainders_of_signed_numbers_come_from_the_quotient() {
    for ty in ["i16", "i32", "i64"] {
        for body in ["s[0] = s[1] % s[2];", "v[0] = v[1] % FIVES;", "s[0] %= FIVE;"] {
            let module = module(ty, body);
            assert_eq!(count(&module, &REMAINDERS), 0, "{ty}, {body}");
            let parts = [&DIVISIONS[..], &[Op::IMul], &[Op::ISub]];
            assert_eq!(parts.map(|ops| count(&module, ops)), [1, 1, 1], "{ty}, {body}");
        }
    }
}
